package export

// SetGroupRows sets the number of rows of a row group until undo is called.
func SetGroupRows(n int) (undo func()) {
	before := groupRows
	groupRows = n
	return func() { groupRows = before }
}
