package document

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// prose is how wide a paragraph is on the screen.
const prose = 100

// A pen writes text, in colours or not.
type pen struct{ color bool }

var (
	bold      = lipgloss.NewStyle().Bold(true)
	alarming  = lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Red)
	toneStyle = map[Tone]lipgloss.Style{
		Good:  lipgloss.NewStyle().Foreground(lipgloss.Green),
		Bad:   lipgloss.NewStyle().Foreground(lipgloss.Red),
		Muted: lipgloss.NewStyle().Faint(true),
	}
)

func (p pen) paint(style lipgloss.Style, text string) string {
	if !p.color || text == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = style.Render(l) // of several lines, Render would make a block
	}
	return strings.Join(lines, "\n")
}

// WriteText writes the document for a terminal, in colours if color. A section
// with a table goes without its chart, any other has the chart's text. Hints
// and episodes are left out.
func (d *Document) WriteText(w io.Writer, color bool) error {
	p := pen{color}
	blocks := []string{p.title(d.Title, "═"), p.alarms(d.Alarms), block(d.Lead)}
	for _, s := range d.Sections {
		blocks = append(blocks, p.section(s))
	}
	blocks = append(blocks, p.facts(d.Facts))
	_, err := io.WriteString(w, join("\n\n", blocks...)+"\n")
	return err
}

// join leaves out what is empty.
func join(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), between)
}

// block returns text as paragraphs that fit the screen.
func block(text string) string {
	var out []string
	for _, p := range paragraphs(text) {
		out = append(out, wrap(p, prose)...)
	}
	return strings.Join(out, "\n")
}

// hang returns text after a label, its further lines below its first.
func hang(label, text string) []string {
	indent := strings.Repeat(" ", lipgloss.Width(label))
	var out []string
	for _, p := range paragraphs(text) {
		for _, l := range wrap(p, prose-len(indent)) {
			out = append(out, label+l)
			label = indent
		}
	}
	return out
}

func (p pen) title(text, rule string) string {
	text = block(text)
	if text == "" {
		return ""
	}
	return p.paint(bold, text) + "\n" + strings.Repeat(rule, lipgloss.Width(text))
}

// alarms stand between heavy lines as wide as the screen, behind a bar.
func (p pen) alarms(alarms []Alarm) string {
	if len(alarms) == 0 {
		return ""
	}
	rule := p.paint(alarming, strings.Repeat("━", Screen))
	out := []string{rule, p.paint(alarming, "┃ "+alarmsHead(len(alarms))), rule}
	for i, a := range alarms {
		var lines []string
		for _, l := range hang(fmt.Sprintf("%d. ", i+1), a.Title) {
			lines = append(lines, p.paint(bold, l))
		}
		lines = append(lines, hang("   ", a.Text)...)
		for _, w := range a.Where {
			lines = append(lines, hang("   - ", w)...)
		}
		if i > 0 {
			lines = slices.Insert(lines, 0, "")
		}
		for _, l := range lines {
			out = append(out, strings.TrimRight(p.paint(alarming, "┃")+" "+l, " "))
		}
	}
	return strings.Join(append(out, rule), "\n")
}

func alarmsHead(n int) string {
	if n == 1 {
		return "ALARM: some figures may not be what they seem"
	}
	return fmt.Sprintf("%d ALARMS: some figures may not be what they seem", n)
}

func (p pen) section(s Section) string {
	parts := []string{join("\n", p.title(s.Title, "─"), block(s.Lead))}
	var notes []string
	switch {
	case s.Table != nil:
		parts = append(parts, p.table(s.Table))
		notes = append(notes, s.Table.legend())
	case s.Chart != nil:
		parts = append(parts, block(s.Chart.Text))
	}
	for _, n := range s.Notes {
		notes = append(notes, block(n))
	}
	return join("\n\n", append(parts, join("\n", notes...))...)
}

// table lays a table out. The columns of names that come first are repeated
// where others continue below.
func (p pen) table(t *Table) string {
	left := slices.IndexFunc(t.Columns, func(c Column) bool { return !c.Names })
	if left < 0 {
		left = len(t.Columns)
	}
	columns := make([][]string, len(t.Columns))
	heads := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		heads[i], columns[i] = p.column(t, i)
		if c.Names && i >= left {
			heads[i], columns[i] = alignLeft(heads[i], columns[i])
		}
	}
	tab := NewScreenTable(left, heads...)
	for r := range t.Rows {
		var row []string
		for i := range columns {
			row = append(row, columns[i][r])
		}
		tab.Row(row...)
	}
	return tab.String()
}

// column returns the head of a column, with breaks that make it no wider than
// it must be, and its cells, with room for a sign where any has one.
func (p pen) column(t *Table, i int) (head string, cells []string) {
	signs := slices.ContainsFunc(t.Rows, func(row []Cell) bool { return i < len(row) && row[i].Tone != Plain })
	width := 0
	for _, row := range t.Rows {
		text := ""
		if i < len(row) {
			text = p.cell(row[i], signs)
		}
		cells = append(cells, text)
		width = max(width, lipgloss.Width(text))
	}
	for _, word := range strings.Fields(line(t.Columns[i].Head)) {
		width = max(width, lipgloss.Width(word))
	}
	parts := wrap(line(t.Columns[i].Head), width)
	if signs && !t.Columns[i].Names {
		for k := range parts {
			parts[k] += "  " // heads end where figures do
		}
	}
	return strings.Join(parts, "\n"), cells
}

// cell is two wider than its text if there are signs in its column.
func (p pen) cell(c Cell, signs bool) string {
	text := p.marked(c, signs)
	if note := line(c.Note); note != "" {
		text += "\n" + p.paint(toneStyle[Muted], note)
		if signs {
			text += "  "
		}
	}
	return text
}

func (p pen) marked(c Cell, signs bool) string {
	text, mark := line(c.Text), "  "
	switch {
	case !signs:
		return text
	case c.Tone == Muted:
		return p.paint(toneStyle[Muted], "("+text+")") + " "
	case sign[c.Tone] != "":
		text += " " + sign[c.Tone]
		mark = ""
	}
	if style, ok := toneStyle[c.Tone]; ok {
		text = p.paint(style, text)
	}
	return text + mark
}

// alignLeft makes all cells as wide as the widest.
func alignLeft(head string, cells []string) (string, []string) {
	heads := strings.Split(head, "\n")
	width := 0
	for _, c := range slices.Concat(heads, cells) {
		width = max(width, lipgloss.Width(c))
	}
	pad := func(texts []string) {
		for i, t := range texts {
			texts[i] = t + strings.Repeat(" ", width-lipgloss.Width(t))
		}
	}
	pad(heads)
	pad(cells)
	return strings.Join(heads, "\n"), cells
}

func (p pen) facts(facts []Fact) string {
	if len(facts) == 0 {
		return ""
	}
	width := 0
	for _, f := range facts {
		width = max(width, lipgloss.Width(line(f.Name)))
	}
	out := []string{p.title(factsTitle, "─")}
	for _, f := range facts {
		name := line(f.Name)
		label := name + strings.Repeat(" ", width-lipgloss.Width(name)+gap)
		lines := hang(label, f.Value)
		if len(lines) == 0 {
			lines = []string{strings.TrimRight(label, " ")}
		}
		out = append(out, lines...)
	}
	return strings.Join(out, "\n")
}
