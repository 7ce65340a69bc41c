package legacy

// The lists that the tests check.
var (
	Prompts    = prompts
	Categories = categories
	Columns    = columns
)

// Parses reports whether a text is accepted as JSON.
func Parses(data []byte) bool {
	_, err := parse(data)
	return err == nil
}
