package terminal

// Draw renders progress as a terminal shows it, with styles.
var Draw = draw

// WithoutQueries returns the environment that bubbletea gets.
var WithoutQueries = withoutQueries
