package live

// Draw is what a terminal shows, with its styles.
var Draw = draw

// Unasked is the environment that bubbletea gets.
var Unasked = unasked
