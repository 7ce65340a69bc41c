// Package document holds what is written for people to read, and writes it: as text
// for a terminal, as Markdown, and as one HTML file that needs no network.
//
// It knows tables, charts, notes and transcripts, and nothing of trials: what is to
// be said, and what a number means, belongs to those who make a document.
package document

import (
	"encoding/json"
	"slices"
)

// A Document is a report.
type Document struct {
	Title string
	// Lead says in a sentence or two what was done and how far it got.
	Lead string
	// Alarms come before everything else.
	Alarms   []Alarm
	Sections []Section
	// Facts are what it takes to do the same again.
	Facts []Fact
	// Episodes are transcripts that cells link to.
	Episodes []Episode
}

// An Alarm says that a figure may not be what it seems.
type Alarm struct {
	Title string
	// Text says what is seen, why that is suspect, and what to do.
	Text string
	// Where names the cells, models or runs that it is about.
	Where []string
}

// shownPlaces is how many places of an alarm are shown before the reader asks for
// the others.
const shownPlaces = 12

// places parts those that are shown at first from the others.
func (a Alarm) places() (first, more []string) {
	n := min(len(a.Where), shownPlaces)
	return a.Where[:n], a.Where[n:]
}

// A Section has one subject.
type Section struct {
	// ID is a word of letters, digits and dashes that no other section has.
	ID    string
	Title string
	Lead  string
	Chart *Chart
	Table *Table
	Notes []string
}

// A Table has a cell for each of its columns in each row.
type Table struct {
	Columns []Column
	Rows    [][]Cell
}

// rowHeads is how many columns of names come first.
func (t *Table) rowHeads() int {
	if n := slices.IndexFunc(t.Columns, func(c Column) bool { return !c.Names }); n >= 0 {
		return n
	}
	return len(t.Columns)
}

// A Column is of names, to the left, or of figures, to the right.
type Column struct {
	Head string
	// Names are not numbers.
	Names bool
	// Hint explains the head.
	Hint string
}

// A Cell is what a table shows at one place.
type Cell struct {
	Text string
	// Value is what the column is sorted by; nil for the text.
	Value *float64
	// Note stands below the text and says how sure it is, such as an interval and n.
	Note string
	// Hint says more, for those who point at the cell.
	Hint string
	// Episode is the ID of an episode that tells more; empty for none.
	Episode string
	Tone    Tone
}

// A Tone is how a cell stands out. It never says more than its text does.
type Tone string

// The tones.
const (
	Plain Tone = ""
	Good  Tone = "good"  // significantly better
	Bad   Tone = "bad"   // significantly worse
	Muted Tone = "muted" // not to be relied on
)

// A Chart is a picture of a section's figures.
type Chart struct {
	// Text says in words what the picture shows, for those who cannot see it.
	Text string
	// Spec is a Vega-Lite specification with its data, without width, colours of
	// the surroundings or fonts, which are the page's.
	Spec json.RawMessage
}

// A Fact is a name and its value.
type Fact struct{ Name, Value string }

// An Episode is a transcript.
type Episode struct {
	ID    string
	Title string
	// Lead says what it was about and how it ended.
	Lead  string
	Steps []Step
}

// A Step is a message, a call or a remark.
type Step struct {
	// Who is the speaker: system, user, assistant, tool, or empty for a remark.
	Who  string
	Text string
}
