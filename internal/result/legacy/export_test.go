package legacy

// The lists that the tests check.
var (
	Prompts    = prompts
	Categories = categories
	LeafFields = leafFields
)
