// Package world holds the rules by which the tools of an episode behave: the
// chance of a call, its luck, its output or error, when the calls so far end
// the episode, and what a search for tools finds.
//
// A world is deterministic: its answers are a function of the trial and of the
// calls made so far. It does not talk to models (package episode), does not
// judge (package score) and does not plan (package workflow).
package world
