package document

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// Screen is how many columns of text a table that fits the screen may take.
const Screen = 120

// gap is how far columns of a table are apart.
const gap = 2

// A TextTable lays text out in columns, the first ones to the left, all others
// to the right, with one line below the heads. A line feed in a cell begins its next
// line.
type TextTable struct {
	left  int // columns that stand to the left
	width int // of a line; 0 for any
	heads []string
	rows  [][]string
}

// NewTextTable returns a table with the given column heads, two of them to the
// left. A line feed in a head begins its next line.
func NewTextTable(heads ...string) *TextTable { return &TextTable{left: 2, heads: heads} }

// NewScreenTable returns a table whose lines fit a terminal: columns that find no
// room continue below, after those to the left.
func NewScreenTable(t Terminal, left int, heads ...string) *TextTable {
	return &TextTable{left: left, width: t.width(), heads: heads}
}

// Row adds a row of at most as many cells as there are heads.
func (t *TextTable) Row(cells ...string) { t.rows = append(t.rows, cells) }

// widths are those of the columns.
func (t *TextTable) widths() []int {
	widths := make([]int, len(t.heads))
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], lipgloss.Width(c))
		}
	}
	return widths
}

// lineWidth is how much room a line with all columns takes.
func (t *TextTable) lineWidth() int {
	sum := 0
	for _, w := range t.widths() {
		sum += w + gap
	}
	return sum
}

// String returns the table without spaces at the ends of lines.
func (t *TextTable) String() string {
	heads, widths := t.headLines(), t.widths()
	var blocks []string
	for _, columns := range t.blocks(widths) {
		var lines []string
		for _, row := range heads {
			if l := t.line(row, columns, widths); l != "" {
				lines = append(lines, l)
			}
		}
		rule := 0
		for _, c := range columns {
			rule += widths[c] + gap
		}
		lines = append(lines, strings.Repeat("─", rule))
		for _, row := range t.rows {
			for k, cells := range rowLines(row) {
				if l := t.line(cells, columns, widths); k == 0 || l != "" { // other blocks may need more lines
					lines = append(lines, l)
				}
			}
		}
		blocks = append(blocks, strings.Join(lines, "\n"))
	}
	return strings.Join(blocks, "\n\n")
}

// rowLines returns a row's lines; shorter cells stand at the top.
func rowLines(row []string) [][]string {
	lines := [][]string{make([]string, len(row))}
	for i, c := range row {
		for k, part := range strings.Split(c, "\n") {
			if k == len(lines) {
				lines = append(lines, make([]string, len(row)))
			}
			lines[k][i] = part
		}
	}
	return lines
}

// headLines returns the heads as rows; the shorter ones stand at the bottom.
func (t *TextTable) headLines() [][]string {
	height := 1
	for _, h := range t.heads {
		height = max(height, 1+strings.Count(h, "\n"))
	}
	lines := make([][]string, height)
	for i := range lines {
		lines[i] = make([]string, len(t.heads))
	}
	for i, h := range t.heads {
		parts := strings.Split(h, "\n")
		for k, part := range parts {
			lines[height-len(parts)+k][i] = part
		}
	}
	return lines
}

// blocks shares the columns out, as many to each block as its lines have room
// for, but at least one beside those to the left, which all blocks have.
func (t *TextTable) blocks(widths []int) [][]int {
	var labels []int
	room := t.width
	for i := range min(t.left, len(widths)) {
		labels = append(labels, i)
		room -= widths[i] + gap
	}
	blocks, used := [][]int{labels}, 0
	for i := len(labels); i < len(widths); i++ {
		last := len(blocks) - 1
		if t.width > 0 && used+widths[i]+gap > room && len(blocks[last]) > len(labels) {
			blocks, last, used = append(blocks, append([]int{}, labels...)), last+1, 0
		}
		blocks[last] = append(blocks[last], i)
		used += widths[i] + gap
	}
	return blocks
}

func (t *TextTable) line(row []string, columns, widths []int) string {
	var b strings.Builder
	for _, c := range columns {
		text := ""
		if c < len(row) {
			text = row[c]
		}
		pad := strings.Repeat(" ", widths[c]-lipgloss.Width(text))
		if c >= t.left {
			text, pad = pad, text
		}
		b.WriteString(text + pad + strings.Repeat(" ", gap))
	}
	return strings.TrimRight(b.String(), " ")
}
