package document

// paperWidth is the number of characters of a table in the page's style that surely fit side by
// side on A4. Type there is proportional, so most tables would have room for a few more.
const paperWidth = 110

// sheets splits a table into tables that fit on paper, like the blocks of a terminal. Each has the
// leading columns of names. It returns nil if the table fits as it is. Hints and episodes are left
// out on paper.
func (t *Table) sheets() (all []*Table) {
	whole := *t
	whole.Shown = 0
	laid := newPen(Terminal{Width: paperWidth}).layOut(&whole, paperWidth/4)
	blocks := laid.blocks(laid.widths())
	if len(blocks) < 2 {
		return nil
	}
	for _, columns := range blocks {
		all = append(all, t.part(columns))
	}
	return all
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
