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

// narrowest is the width of a terminal below which lines are left to wrap.
const narrowest = 60

// A Terminal is what text is written for.
type Terminal struct {
	Color bool
	// Width is how many columns of text its lines have, Screen if it is 0.
	Width int
}

// A pen writes text for a terminal of a width that is known.
type pen struct{ Terminal }

func newPen(t Terminal) pen {
	t.Width = t.width()
	return pen{t}
}

func (t Terminal) width() int {
	if t.Width == 0 {
		return Screen
	}
	return max(t.Width, narrowest)
}

// prose is how wide its paragraphs are.
func (p pen) prose() int { return min(prose, p.Width) }

// Hang wraps text to the width of the terminal, with a label in front of the first line and the
// others indented below it.
func (t Terminal) Hang(label, text string) string {
	return strings.Join(newPen(t).hang(label, text), "\n")
}

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
	if !p.Color || text == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = style.Render(l) // of several lines, Render would make a block
	}
	return strings.Join(lines, "\n")
}

// WriteText writes the document for a terminal. A section with a table goes
// without its chart, any other has the chart's text. Hints and episodes are left
// out.
func (d *Document) WriteText(w io.Writer, t Terminal) error {
	p := newPen(t)
	blocks := []string{p.title(d.Title, "═"), p.alarms(d.Alarms), p.block(d.Lead)}
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
func (p pen) block(text string) string {
	var out []string
	for _, l := range paragraphs(text) {
		out = append(out, wrap(l, p.prose())...)
	}
	return strings.Join(out, "\n")
}

// hang returns text after a label, its further lines below its first.
func (p pen) hang(label, text string) []string {
	indent := strings.Repeat(" ", lipgloss.Width(label))
	var out []string
	for _, par := range paragraphs(text) {
		for _, l := range wrap(par, p.prose()-len(indent)) {
			out = append(out, label+l)
			label = indent
		}
	}
	return out
}

func (p pen) title(text, rule string) string {
	text = p.block(text)
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
	rule := p.paint(alarming, strings.Repeat("━", p.Width))
	out := []string{rule, p.paint(alarming, "┃ "+alarmsHead(len(alarms))), rule}
	for i, a := range alarms {
		lines := p.alarm(i+1, a)
		if i > 0 {
			lines = slices.Insert(lines, 0, "")
		}
		for _, l := range lines {
			out = append(out, strings.TrimRight(p.paint(alarming, "┃")+" "+l, " "))
		}
	}
	return strings.Join(append(out, rule), "\n")
}

func (p pen) alarm(number int, a Alarm) []string {
	p.Width -= 2 // for the bar
	var lines []string
	for _, l := range p.hang(fmt.Sprintf("%d. ", number), a.Title) {
		lines = append(lines, p.paint(bold, l))
	}
	lines = append(lines, p.hang("   ", a.Text)...)
	first, more := a.places()
	for _, w := range first {
		lines = append(lines, p.hang("   - ", w)...)
	}
	if len(more) > 0 {
		lines = append(lines, p.hang("   ", fmt.Sprintf("and %d more; --format html or json lists all", len(more)))...)
	}
	return lines
}

func alarmsHead(n int) string {
	if n == 1 {
		return "ALARM: some figures may not be what they seem"
	}
	return fmt.Sprintf("%d ALARMS: some figures may not be what they seem", n)
}

func (p pen) section(s Section) string {
	parts := []string{join("\n", p.title(s.Title, "─"), p.block(s.Lead))}
	var notes []string
	switch {
	case s.Table != nil:
		parts = append(parts, p.table(s.Table))
		notes = append(notes, p.block(s.Table.legend()))
	case s.Chart != nil:
		parts = append(parts, p.block(s.Chart.Text))
	}
	for _, n := range s.Notes {
		notes = append(notes, p.block(n))
	}
	return join("\n\n", append(parts, join("\n", notes...))...)
}

// table lays a table out. The columns of names that come first are repeated
// where others continue below; then long names take several lines.
func (p pen) table(t *Table) string {
	tab := p.layOut(t, p.Width)
	if tab.lineWidth() > p.Width {
		tab = p.layOut(t, p.Width/4)
	}
	return tab.String()
}

// layOut breaks names that are wider than widest.
func (p pen) layOut(t *Table, widest int) *TextTable {
	left := t.rowHeads()
	columns := make([][]string, len(t.Columns))
	heads := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		heads[i], columns[i] = p.column(t, i, widest)
		if c.Names && i >= left {
			heads[i], columns[i] = alignLeft(heads[i], columns[i])
		}
	}
	tab := &TextTable{left: left, width: p.Width, heads: heads}
	for r := range t.Rows {
		var row []string
		for i := range columns {
			row = append(row, columns[i][r])
		}
		tab.Row(row...)
	}
	return tab
}

// column returns the head of a column, with breaks that make it no wider than
// it must be, and its cells, with room for a sign where any has one.
func (p pen) column(t *Table, i, widest int) (head string, cells []string) {
	signs := slices.ContainsFunc(t.Rows, func(row []Cell) bool { return i < len(row) && row[i].Tone != Plain })
	width := 0
	for _, row := range t.Rows {
		text := ""
		if i < len(row) {
			c := row[i]
			if c.Text = line(c.Text); t.Columns[i].Names {
				c.Text = strings.Join(wrap(c.Text, widest), "\n")
			}
			text = p.cell(c, signs)
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

// cell is two wider than its text, which may have several lines, if there are signs
// in its column.
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
	text, mark := c.Text, "  "
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

// alignLeft makes all lines as wide as the widest.
func alignLeft(head string, cells []string) (string, []string) {
	width := lipgloss.Width(head)
	for _, c := range cells {
		width = max(width, lipgloss.Width(c))
	}
	pad := func(text string) string {
		lines := strings.Split(text, "\n")
		for i, l := range lines {
			lines[i] = l + strings.Repeat(" ", width-lipgloss.Width(l))
		}
		return strings.Join(lines, "\n")
	}
	for i, c := range cells {
		cells[i] = pad(c)
	}
	return pad(head), cells
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
		lines := p.hang(label, f.Value)
		if len(lines) == 0 {
			lines = []string{strings.TrimRight(label, " ")}
		}
		out = append(out, lines...)
	}
	return strings.Join(out, "\n")
}
