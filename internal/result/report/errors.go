package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Errors tells, for each model, why outcomes are not full success.
type Errors struct {
	Categories []string   `json:"categories"`
	Rows       []ErrorRow `json:"rows"`
}

// An ErrorRow holds a cell for each of the categories. Their counts add up to
// Total, which is Done less the full successes.
type ErrorRow struct {
	Model string      `json:"model"`
	Done  int         `json:"done"`
	Total int         `json:"total"`
	Cells []ErrorCell `json:"cells"`
}

// An ErrorCell is the share of a category in the Total. The category is empty
// for outcomes that name none.
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
	for _, kind := range inOrder(slices.Values(slices.Sorted(maps.Keys(total.loops))), assay.LoopKinds) {
		out = append(out, LoopCount{kind, total.loops[kind]})
	}
	return out
}

func (t *Table) loopText() string {
	var kinds []string
	episodes := 0
	for _, l := range t.Loops {
		kinds = append(kinds, fmt.Sprintf("%d %s", l.Episodes, readable(string(l.Kind))))
		episodes += l.Episodes
	}
	if episodes == 0 {
		return ""
	}
	return fmt.Sprintf("loops: %d of %d episodes got into one, by its first kind: %s.", episodes, t.Done, strings.Join(kinds, ", "))
}
