package report

import (
	"maps"
	"slices"

	"github.com/assay-eval/assay"
)

// Errors holds the reasons why trials did not fully succeed, by model.
type Errors struct {
	Causes []assay.Cause `json:"causes"`
	Rows   []ErrorRow    `json:"rows"`
}

// An ErrorRow has a cell for each cause. Their counts add up to Total, which is Done
// minus the full successes.
type ErrorRow struct {
	Model string      `json:"model"`
	Done  int         `json:"done"`
	Total int         `json:"total"`
	Cells []ErrorCell `json:"cells"`
}

// An ErrorCell is a cause's share of the Total. The cause is empty for outcomes without one, which
// come from other programs.
type ErrorCell struct {
	Cause assay.Cause `json:"cause"`
	Share
}

func (d Design) errors(cells []*cell) Errors {
	total := sum(cells)
	e := Errors{Rows: []ErrorRow{}}
	e.Causes = total.causes()
	for _, m := range byModel(cells) {
		row := ErrorRow{
			Model: m.Model, Done: m.n(done), Total: m.n(done) - m.n(full), Cells: []ErrorCell{},
		}
		for _, cause := range e.Causes {
			row.Cells = append(row.Cells, ErrorCell{cause, m.failedBy(cause)})
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
