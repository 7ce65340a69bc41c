package document

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
)

// Screen is the width of a line, in columns of text, if the terminal's width is unknown.
const Screen = 120

// MaxRows is how many rows of a table a terminal shows. A pipe or a file gets all of them.
const MaxRows = 40

// gap is the space between columns of a table.
const gap = 2

// A TextTable lays out text in columns with a line below the heads. The first columns are
// aligned to the left and the others to the right. A line feed in a cell starts its next line.
type TextTable struct {
	left  int    // number of columns that are aligned to the left
	names []bool // further columns that are
	width int    // of a line; 0 for unlimited
	most  int    // rows that are shown; 0 for all
	heads []string
	rows  [][]string
}

// NewTextTable returns a table with the given heads. The first two columns are aligned to the
// left. A line feed in a head starts its next line.
func NewTextTable(heads ...string) *TextTable { return &TextTable{left: 2, heads: heads} }

// NewScreenTable returns a table whose lines fit a terminal. Columns that do not fit continue
// below, after the ones that are aligned to the left. On a terminal it shows [MaxRows] rows.
func NewScreenTable(t Terminal, left int, heads ...string) *TextTable {
	return &TextTable{left: left, width: t.width(), most: t.maxRows(), heads: heads}
}

// Row adds a row. It may have fewer cells than there are heads.
func (t *TextTable) Row(cells ...string) { t.rows = append(t.rows, cells) }

// widths returns the width of each column.
func (t *TextTable) widths() []int {
	widths := make([]int, len(t.heads))
	for _, row := range append([][]string{t.heads}, t.rows...) {
		for i, c := range row {
			widths[i] = max(widths[i], lipgloss.Width(c))
		}
	}
	return widths
}

// lineWidth returns the width of a line with all columns.
func (t *TextTable) lineWidth() int {
	sum := 0
	for _, w := range t.widths() {
		sum += w + gap
	}
	return sum
}

// shown splits the rows into those that are shown and the number of the others. A single row is not
// worth leaving out.
func (t *TextTable) shown() (first [][]string, more int) {
	if t.most == 0 || len(t.rows) <= t.most+1 {
		return t.rows, 0
	}
	return t.rows[:t.most], len(t.rows) - t.most
}

// String returns the table, without trailing spaces.
func (t *TextTable) String() string {
	rows, more := t.shown()
	first := *t
	first.rows = rows
	t = &first
	t.breakNames()
	heads, widths := linesOf(t.heads, true), t.widths()
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
			for k, cells := range linesOf(row, false) {
				if l := t.line(cells, columns, widths); k == 0 ||
					l != "" { // only other blocks need this line
					lines = append(lines, l)
				}
			}
		}
		blocks = append(blocks, strings.Join(lines, "\n"))
	}
	if more > 0 {
		blocks = append(blocks, fmt.Sprintf("and %d more rows: a pipe or a file gets all, "+
			"for example `| less`", more))
	}
	return strings.Join(blocks, "\n\n")
}

// breakNames breaks long names in the columns that are aligned to the left, if the lines are too wide.
func (t *TextTable) breakNames() {
	if t.width == 0 || t.lineWidth() <= t.width {
		return
	}
	rows := make([][]string, len(t.rows))
	for r, row := range t.rows {
		rows[r] = slices.Clone(row)
		for i := range min(t.left, len(row)) {
			if !strings.Contains(row[i], "\n") {
				rows[r][i] = strings.Join(wrapName(row[i], t.width/4), "\n")
			}
		}
	}
	t.rows = rows
}

// linesOf splits the cells of a row into lines. Shorter ones are aligned to the top or the bottom.
func linesOf(row []string, bottom bool) [][]string {
	height := 1
	for _, c := range row {
		height = max(height, 1+strings.Count(c, "\n"))
	}
	lines := make([][]string, height)
	for k := range lines {
		lines[k] = make([]string, len(row))
	}
	for i, c := range row {
		parts := strings.Split(c, "\n")
		first := 0
		if bottom {
			first = height - len(parts)
		}
		for k, part := range parts {
			lines[first+k][i] = part
		}
	}
	return lines
}

// blocks divides the columns into blocks that fit the width. Each block has the columns that are
// aligned to the left and at least one other.
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
		if c >= t.left && !(c < len(t.names) && t.names[c]) {
			text, pad = pad, text
		}
		b.WriteString(text + pad + strings.Repeat(" ", gap))
	}
	return strings.TrimRight(b.String(), " ")
}
