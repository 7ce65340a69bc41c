package report

// NewWideTable returns a table whose lines fit the screen.
var NewWideTable = newTable

// Screen is how many columns of text that is.
const Screen = screen
