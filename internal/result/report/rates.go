package report

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// ModelRate is the rate of full success of one model in one variant.
type ModelRate struct {
	Model string `json:"model"`
	PivotCell
}

// A condition has to be equal for two variants to be compared.
type condition struct {
	difficulty  string
	reliability float64
	faults      string
}

func conditionOf(c assay.Cell) condition {
	return condition{c.Difficulty, c.Reliability, c.Faults}
}

// fairCells returns the cells in which variants can be compared at a glance. If variants
// were tried under different conditions, these are the cells of the condition with the most
// variants.
func fairCells(cells []*cell) []*cell {
	by := variantFactor(cells)
	variants := make(map[condition]map[string]bool)
	all := make(map[string]bool)
	for _, c := range cells {
		k := conditionOf(c.Cell)
		if variants[k] == nil {
			variants[k] = make(map[string]bool)
		}
		variants[k][level(c.Cell, by)] = true
		all[level(c.Cell, by)] = true
	}

	var most condition
	balanced := true
	for _, c := range cells {
		k := conditionOf(c.Cell)
		if len(variants[k]) > len(variants[most]) {
			most = k
		}
		balanced = balanced && len(variants[k]) == len(all)
	}
	if balanced {
		return cells
	}
	return where(cells, func(c assay.Cell) bool { return conditionOf(c) == most })
}

// modelRates pools comparable cells by model and variant: all cells if every variant has the same
// conditions, and else the cells of the condition with the most variants.
func modelRates(cells []*cell) (rates []ModelRate) {
	by := variantFactor(cells)
	cells = fairCells(cells)
	pools, _ := byModelAnd(cells, by)
	for _, p := range pools {
		rates = append(rates, p.rate(p.key.model, p.key.level))
	}

	models, variants := modelsOf(cells), levels(cells, by)
	slices.SortStableFunc(rates, func(x, y ModelRate) int {
		return cmp.Or(
			cmp.Compare(slices.Index(models, x.Model), slices.Index(models, y.Model)),
			cmp.Compare(slices.Index(variants, x.Level), slices.Index(variants, y.Level)),
		)
	})
	return rates
}
