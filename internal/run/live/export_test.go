package live

// Draw renders a snapshot as a terminal shows it, with styles.
var Draw = draw

// WithoutQueries returns the environment that bubbletea gets.
var WithoutQueries = withoutQueries
