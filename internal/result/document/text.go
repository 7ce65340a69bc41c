package document

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// prose is the greatest width of a paragraph.
const prose = 100

// narrowest is the smallest width of a terminal that lines are broken for.
const narrowest = 60

// A Terminal describes where text is written. The zero Terminal is a pipe or a file.
type Terminal struct {
	Color bool
	// Width is the number of columns of a line; 0 means Screen.
	Width int
}

// A pen writes text for a terminal of a known width.
type pen struct {
	Terminal
	most int // rows of a table; 0 for all
}

func newPen(t Terminal) pen {
	most := t.maxRows()
	t.Width = t.width()
	return pen{t, most}
}

func (t Terminal) width() int {
	if t.Width == 0 {
		return Screen
	}
	return max(t.Width, narrowest)
}

// maxRows returns the number of rows of a table that are shown; 0 means all.
func (t Terminal) maxRows() int {
	if t.Width == 0 {
		return 0
	}
	return MaxRows
}

// prose returns the width of paragraphs.
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
		Good: lipgloss.NewStyle().Foreground(lipgloss.Green),
		Bad:  lipgloss.NewStyle().Foreground(lipgloss.Red), Muted: lipgloss.NewStyle().Faint(true),
	}
)

func (p pen) paint(style lipgloss.Style, text string) string {
	if !p.Color || text == "" {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = style.Render(l) // Render would turn several lines into a block
	}
	return strings.Join(lines, "\n")
}

// WriteText writes the document for a terminal. Charts are left out; a section without a table
// has the chart's text instead. Folded rows, hints and episodes are left out too.
func (d *Document) WriteText(w io.Writer, t Terminal) error {
	p := newPen(t)
	blocks := []string{
		p.title(d.Title, "═"), p.points(d.Headline, min(p.Width, Screen)),
		p.points(d.Summary, p.prose()), p.block(d.Lead),
	}
	if d.Overview != nil {
		blocks = append(blocks, p.section(*d.Overview))
	}
	blocks = append(blocks, p.warnings(d.Warnings))
	for _, s := range d.Sections {
		blocks = append(blocks, p.section(s))
	}
	blocks = append(blocks, p.facts(d.Facts), p.block(d.More))
	_, err := io.WriteString(w, join("\n\n", blocks...)+"\n")
	return err
}

// indented returns the verbatim text of the section, four spaces to the right, which is code in Markdown.
// It has no characters that a terminal would obey.
func (s Section) indented() string {
	var out []string
	for _, l := range strings.Split(s.Verbatim, "\n") {
		shown := strings.Map(func(r rune) rune {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(l, "\uFFFD"))
		if shown = strings.TrimRight(shown, " "); shown != "" {
			shown = "    " + shown
		}
		out = append(out, shown)
	}
	return strings.Trim(strings.Join(out, "\n"), "\n")
}

// points writes each point as a paragraph after its label. Long labels have their own lines.
func (p pen) points(points []Point, longest int) string {
	width := 0
	for _, point := range points {
		width = max(width, lipgloss.Width(line(point.Label)))
	}
	var out []string
	for _, point := range points {
		label := line(point.Label)
		if width > p.prose()/3 {
			out = append(out, p.paint(bold, p.block(label)))
			out = append(out, p.hang("  ", point.Text)...)
			continue
		}
		indent := strings.Repeat(" ", width-lipgloss.Width(label)+gap)
		for i, l := range hang(label+indent, point.Text, longest) {
			if i == 0 {
				l = p.paint(bold, label) + strings.TrimPrefix(l, label)
			}
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// join joins the parts that are not empty.
func join(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), between)
}

// block breaks text into lines that fit the screen.
func (p pen) block(text string) string {
	var out []string
	for _, l := range paragraphs(text) {
		out = append(out, wrap(l, p.prose())...)
	}
	return strings.Join(out, "\n")
}

func (p pen) hang(label, text string) []string { return hang(label, text, p.prose()) }

// hang writes text after a label and indents its further lines.
func hang(label, text string, width int) []string {
	indent := strings.Repeat(" ", lipgloss.Width(label))
	var out []string
	for _, par := range paragraphs(text) {
		for _, l := range wrap(par, width-len(indent)) {
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

// warnings stand behind a bar between lines as wide as the screen.
func (p pen) warnings(all []Warning) string {
	if len(all) == 0 {
		return ""
	}
	rule := p.paint(alarming, strings.Repeat("━", p.Width))
	out := []string{rule, p.paint(alarming, "┃ "+warningsHead(len(all))), rule}
	for i, w := range all {
		lines := p.warning(i+1, w)
		if i > 0 {
			lines = slices.Insert(lines, 0, "")
		}
		for _, l := range lines {
			out = append(out, strings.TrimRight(p.paint(alarming, "┃")+" "+l, " "))
		}
	}
	return strings.Join(append(out, rule), "\n")
}

func (p pen) warning(number int, w Warning) []string {
	p.Width -= 2 // for the bar
	var lines []string
	for _, l := range p.hang(fmt.Sprintf("%d. ", number), w.Title) {
		lines = append(lines, p.paint(bold, l))
	}
	lines = append(lines, p.hang("   ", w.Text)...)
	first, more := w.places()
	for _, place := range first {
		lines = append(lines, p.hang("   - ", place)...)
	}
	if len(more) > 0 {
		lines = append(lines, p.hang("   ",
			fmt.Sprintf("and %d more; --format html or json lists all", len(more)))...)
	}
	return lines
}

func warningsHead(n int) string {
	if n == 1 {
		return "1 warning: some figures may be misleading"
	}
	return fmt.Sprintf("%d warnings: some figures may be misleading", n)
}

func (p pen) section(s Section) string {
	parts := []string{join("\n", p.title(s.Title, "─"), p.block(s.Lead)), s.indented()}
	var notes []string
	switch {
	case s.Table != nil:
		if s.Chart != nil && len(s.Chart.Dots) > 0 {
			parts = append(parts, p.plot(s.Chart.Dots))
		}
		parts = append(parts, p.table(s.Table))
		notes = append(notes, p.block(s.Table.foldedText()), p.block(s.Table.legend()))
	case s.Chart != nil:
		parts = append(parts, p.block(s.Chart.Text))
	}
	for _, n := range s.Notes {
		notes = append(notes, p.block(n))
	}
	return join("\n\n", append(parts, join("\n", notes...))...)
}

// table lays out a table. If its columns do not fit side by side, they continue below, after the
// leading columns of names, and long names take several lines.
func (p pen) table(t *Table) string {
	tab := p.layOut(t, p.Width)
	if tab.lineWidth() > p.Width {
		tab = p.layOut(t, p.Width/4)
	}
	return tab.String()
}

// layOut lays out a table and breaks names that are wider than widest.
func (p pen) layOut(t *Table, widest int) *TextTable {
	tab := &TextTable{left: t.rowHeads(), width: p.Width, most: p.most}
	columns := make([][]string, len(t.Columns))
	for i, c := range t.Columns {
		var head string
		head, columns[i] = p.column(t, i, widest)
		tab.heads, tab.names = append(tab.heads, head), append(tab.names, c.Names)
	}
	first, _ := t.shown()
	for r := range first {
		var row []string
		for i := range columns {
			row = append(row, columns[i][r])
		}
		tab.Row(row...)
	}
	return tab
}

// column returns the head and the cells of a column. The head is broken to the width of the
// cells. All cells have room for a sign if one of them has a sign.
func (p pen) column(t *Table, i, widest int) (head string, cells []string) {
	rows, _ := t.shown()
	marked := func(row []Cell) bool { return cellAt(row, i).Tone != Plain }
	signs := slices.ContainsFunc(rows, marked)
	width := 0
	for _, row := range rows {
		c := cellAt(row, i)
		if c.Text = line(c.Text); t.Columns[i].Names {
			c.Text = strings.Join(wrapName(c.Text, widest), "\n")
		}
		text := p.cell(c, signs)
		cells = append(cells, text)
		width = max(width, lipgloss.Width(text))
	}
	for _, word := range strings.Fields(line(t.Columns[i].Head)) {
		width = max(width, lipgloss.Width(word))
	}
	parts := wrap(line(t.Columns[i].Head), width)
	if signs && !t.Columns[i].Names {
		for k := range parts {
			parts[k] += "  " // aligns the head with the figures
		}
	}
	return strings.Join(parts, "\n"), cells
}

// cell returns the text with its note, and with two columns for a sign if its column has signs.
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
