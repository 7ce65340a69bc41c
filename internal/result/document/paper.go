package document

import (
	"math"
	"strings"
	"unicode"

	"charm.land/lipgloss/v2"
)

// The sizes of a table on paper in the page's style, in tenths of a point: the width of A4 between
// the margins, the type sizes of cells, notes and heads, and the space beside each cell.
const (
	paperWidth = 5200
	cellType   = 70
	noteType   = 60
	headType   = 65
	cellRoom   = 85
)

// bolder is the ratio of the widths of bold and regular type.
const bolder = 1.1

// sheets splits a table into tables that fit on paper. Each has the leading columns of names. It
// returns nil if the table fits as it is. Hints and episodes are left out on paper.
func (t *Table) sheets() []*Table {
	widths := make([]int, len(t.Columns))
	for i := range widths {
		widths[i] = t.paperColumn(i) + cellRoom
	}
	blocks := evenBlocks(t.rowHeads(), widths)
	if len(blocks) < 2 {
		return nil
	}
	var out []*Table
	for _, columns := range blocks {
		out = append(out, t.part(columns))
	}
	return out
}

// part returns a table of some of the columns.
func (t *Table) part(columns []int) *Table {
	part := &Table{}
	for _, c := range columns {
		column := t.Columns[c]
		column.Hint = ""
		part.Columns = append(part.Columns, column)
	}
	for _, row := range t.Rows {
		cells := make([]Cell, len(columns))
		for i, c := range columns {
			from := cellAt(row, c)
			cells[i] = Cell{Text: from.Text, Note: from.Note, Tone: from.Tone}
		}
		part.Rows = append(part.Rows, cells)
	}
	return part
}

// evenBlocks divides columns into as few blocks as fit on paper, and makes the widest block as
// narrow as possible.
func evenBlocks(left int, widths []int) [][]int {
	lay := TextTable{left: left, width: paperWidth}
	blocks := lay.blocks(widths)
	for lay.width > 1 && len(blocks) > 1 {
		lay.width--
		narrower := lay.blocks(widths)
		if len(narrower) > len(blocks) {
			break
		}
		blocks = narrower
	}
	return blocks
}

// paperColumn estimates the width of a column on paper. Heads break between words there, and names
// take two lines.
func (t *Table) paperColumn(i int) int {
	width := 0.0
	for word := range strings.FieldsSeq(line(t.Columns[i].Head)) {
		width = max(width, headType*breadth(word))
	}
	for _, row := range t.Rows {
		c := cellAt(row, i)
		text := line(c.Text)
		em := breadth(text)
		if t.Columns[i].Names {
			em *= 2. / 3
			for word := range strings.FieldsSeq(text) {
				em = max(em, breadth(word))
			}
		}
		switch {
		case i == 0, sign[c.Tone] != "":
			em *= bolder
		case c.Tone == Muted:
			em += breadth("()")
		}
		width = max(width, cellType*em, noteType*breadth(line(c.Note)))
	}
	return int(math.Ceil(width))
}

// breadth estimates the width of text in the widest of the common typefaces, in multiples of the
// type size.
func breadth(text string) float64 {
	em := 0.0
	for _, r := range text {
		switch {
		case strings.ContainsRune(" .,:;'|!()[]/-fijlrt", r):
			em += .41
		case strings.ContainsRune("_cksvxyz", r):
			em += .56
		case strings.ContainsRune("mMW%@", r), lipgloss.Width(string(r)) > 1:
			em++
		case r == 'w', unicode.IsUpper(r), r > unicode.MaxLatin1 && !strings.ContainsRune("–−", r):
			em += .85
		default:
			em += .63
		}
	}
	return em
}
