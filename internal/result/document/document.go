// Package document holds documents for people to read and writes them: as text for a terminal,
// as Markdown, and as one HTML file that needs no network.
//
// It knows tables, charts, notes and transcripts, but not trials. Callers choose the content of a
// document.
package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Document is a report. It is written in the order of its fields.
type Document struct {
	Title string
	// Headline has the answers that a reader wants first, a line each.
	Headline []Point
	// Summary gives the most important answers, in sentences.
	Summary []Point
	// Lead describes the extent of the work in a sentence or two.
	Lead string
	// Chart shows the main result.
	Chart *Chart
	// Overview has the main result. It is nil if the sections do.
	Overview *Section
	Warnings []Warning
	Sections []Section
	// More describes further results.
	More string
	// Facts lists the settings that reproduce the results.
	Facts []Fact
	// Episodes are transcripts that cells link to.
	Episodes []Episode
	// Trail leads from the first page of a site to the page above this one, and Files to the same
	// figures in other formats. Only pages of a site have them; see [Document.WritePage].
	Trail, Files []Link
}

// A Link leads to another page or file. Its address is relative to the page that has it.
type Link struct{ Text, Address string }

// Brief leaves out the sections, the facts, and most places of warnings. command shows them.
func (d *Document) Brief(command string) *Document {
	if d.Overview == nil {
		return d
	}
	short := *d
	short.Sections, short.Facts, short.Warnings = nil, nil, nil
	for _, w := range d.Warnings {
		const most = 2
		if n := len(w.Where) - most; n > 1 {
			w.Where = append(slices.Clone(w.Where[:most]), fmt.Sprintf("and %d more", n))
		}
		short.Warnings = append(short.Warnings, w)
	}
	var titles []string
	for _, s := range d.Sections {
		titles = append(titles, s.Title)
	}
	if len(d.Facts) > 0 {
		titles = append(titles, factsTitle)
	}
	short.More = fmt.Sprintf("`%s` also shows: %s.", command, strings.Join(titles, "; "))
	return &short
}

// A Point is one answer of a summary.
type Point struct {
	// Label is a word or two.
	Label string `json:"label"`
	Text  string `json:"text"`
}

// A Warning marks figures that may be misleading.
type Warning struct {
	Title string
	// Text explains why the figures are suspicious, and how to check them.
	Text string
	// Where names the cells, models or runs that it is about.
	Where []string
}

// shownPlaces is the number of places of a warning that are shown at first.
const shownPlaces = 12

// places splits the places into those shown at first and the rest.
func (w Warning) places() (first, more []string) {
	n := min(len(w.Where), shownPlaces)
	return w.Where[:n], w.Where[n:]
}

// A Section has one subject.
type Section struct {
	// ID consists of letters, digits and dashes, and is unique in the document.
	ID    string
	Title string
	Lead  string
	Chart *Chart
	Table *Table
	// Verbatim is shown in fixed width, line by line.
	Verbatim string
	Notes    []string
}

// A Table has a cell for each of its columns in each row.
type Table struct {
	Columns []Column
	Rows    [][]Cell
	// Shown is the number of rows that are shown before the rest is folded; 0 for all.
	Shown int
}

// shown splits the rows into those shown at first and the number of folded ones. A single row
// is not worth folding.
func (t *Table) shown() (first [][]Cell, folded int) {
	if t.Shown == 0 || len(t.Rows) <= t.Shown+1 {
		return t.Rows, 0
	}
	return t.Rows[:t.Shown], len(t.Rows) - t.Shown
}

// cellAt returns a cell of a row, which may be shorter than the table is wide.
func cellAt(row []Cell, i int) Cell {
	if i < len(row) {
		return row[i]
	}
	return Cell{}
}

// rowHeads counts the columns of names that come first.
func (t *Table) rowHeads() int {
	if n := slices.IndexFunc(t.Columns, func(c Column) bool { return !c.Names }); n >= 0 {
		return n
	}
	return len(t.Columns)
}

// A Column holds names, aligned to the left, or figures, aligned to the right.
type Column struct {
	Head  string
	Names bool
	// Hint explains the head.
	Hint string
}

// A Cell is one field of a table.
type Cell struct {
	Text string
	// Value sorts the column; nil sorts it by text.
	Value *float64
	// Note stands below the text and shows how certain it is, such as an interval and n.
	Note string
	// Hint shows more when the reader points at the cell.
	Hint string
	// Episode is the ID of an episode that the cell links to. It is empty if there is no link.
	Episode string
	// Address is that of a page of the same site that the cell links to, or "".
	Address string
	Tone    Tone
}

// A Tone makes a cell stand out. The text has to be clear without it.
type Tone string

// The tones.
const (
	Plain Tone = ""
	Good  Tone = "good"  // significantly better
	Bad   Tone = "bad"   // significantly worse
	Muted Tone = "muted" // unreliable
)

// A Chart is a picture of a section's figures.
type Chart struct {
	// Text describes the picture for readers who cannot see it.
	Text string
	// Spec is a Vega-Lite specification with its data. The page adds the width, the fonts and
	// the colours of the surroundings.
	Spec json.RawMessage
	// Dots draw the picture where Spec cannot: on a terminal, in Markdown, and on a page without
	// scripts. A chart without them is replaced by its text there.
	Dots []Dot
}

// A Fact is a name and its value.
type Fact struct{ Name, Value string }

// An Episode is a transcript.
type Episode struct {
	ID    string
	Title string
	// Lead describes the task and the end of the episode.
	Lead  string
	Steps []Step
}

// A Step is a message, a call or a remark.
type Step struct {
	// Who is the speaker: system, user, assistant or tool. It is empty for a remark.
	Who  string
	Text string
}
