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
	models, _ := pool(cells, func(c assay.Cell) string { return c.Model })
	var total tally
	for _, m := range models {
		total.merge(&m.tally)
	}
	e := Errors{Categories: append([]string{}, d.Categories...), Rows: []ErrorRow{}}
	for _, category := range total.categories() {
		if !slices.Contains(e.Categories, category) {
			e.Categories = append(e.Categories, category)
		}
	}
	for _, m := range models {
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
	var total tally
	for _, c := range cells {
		total.merge(&c.tally)
	}
	out := []LoopCount{}
	occurred := slices.Values(slices.Sorted(maps.Keys(total.loops)))
	for _, kind := range inOrder(occurred, assay.LoopKinds) {
		out = append(out, LoopCount{kind, total.loops[kind]})
	}
	return out
}
