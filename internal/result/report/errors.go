package report

import (
	"maps"
	"slices"

	"github.com/assay-eval/assay"
)

// Errors holds the reasons why trials did not fully succeed, by model.
type Errors struct {
	Categories []string   `json:"categories"`
	Rows       []ErrorRow `json:"rows"`
}

// An ErrorRow has a cell for each category. Their counts add up to Total, which is Done
// minus the full successes.
type ErrorRow struct {
	Model string      `json:"model"`
	Done  int         `json:"done"`
	Total int         `json:"total"`
	Cells []ErrorCell `json:"cells"`
}

// An ErrorCell is a category's share of the Total. The category is empty for outcomes
// without one.
type ErrorCell struct {
	Category string `json:"category"`
	Share
}

func (d Design) errors(cells []*cell) Errors {
	total := sum(cells)
	e := Errors{Rows: []ErrorRow{}}
	e.Categories = inOrder(slices.Concat(d.Categories, total.categories()), nil)
	for _, m := range byModel(cells) {
		row := ErrorRow{Model: m.key, Done: m.done, Total: m.done - m.full, Cells: []ErrorCell{}}
		for _, category := range e.Categories {
			row.Cells = append(row.Cells, ErrorCell{category, m.mistaken(category)})
		}
		e.Rows = append(e.Rows, row)
	}
	return e
}

// A LoopCount counts the episodes whose first loop was of a kind.
type LoopCount struct {
	Kind     assay.LoopKind `json:"kind"`
	Episodes int            `json:"episodes"`
}

// loops lists the kinds that occurred, in the order of [assay.LoopKinds].
func loops(cells []*cell) []LoopCount {
	total := sum(cells)
	out := []LoopCount{}
	for _, kind := range inOrder(slices.Sorted(maps.Keys(total.loops)), assay.LoopKinds) {
		out = append(out, LoopCount{kind, total.loops[kind]})
	}
	return out
}
