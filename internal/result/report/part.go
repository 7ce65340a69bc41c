package report

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
)

// A Part is some cells of an experiment that answer one question.
type Part struct {
	Name string
	// Models are the rows in their order; without any, all that have cells.
	Models []string
	// Varies names, as an export's fields, the factors that vary in the part:
	// any of variant, severity, difficulty, reliability and task_type.
	Varies []string
	// Has tells the part's cells; nil for all. Where the part names models, it
	// has none of the others.
	Has func(assay.Cell) bool
}

func (p Part) has(c assay.Cell) bool {
	return (len(p.Models) == 0 || slices.Contains(p.Models, c.Model)) && (p.Has == nil || p.Has(c))
}

// factor is what the part is about: the first of these that varies.
func (p Part) factor() string {
	for _, f := range []string{variant, severity, difficulty, reliability} {
		if slices.Contains(p.Varies, f) {
			return f
		}
	}
	return taskType
}

// models pools the part's cells by model, in the order of its models.
func (p Part) models(cells []*cell) []*pooled[string] {
	models, _ := pool(cells, func(c assay.Cell) string { return c.Model })
	slices.SortStableFunc(models, func(a, b *pooled[string]) int {
		return cmp.Compare(slices.Index(p.Models, a.key), slices.Index(p.Models, b.key))
	})
	return models
}

// leftOut returns what concerns the part: it has, or would have, cells of that
// variant and type.
func (p Part) leftOut(cells []*cell, left []LeftOut) []LeftOut {
	out := []LeftOut{}
	for _, l := range left {
		if slices.ContainsFunc(cells, func(c *cell) bool {
			would := c.Cell
			would.TaskType = l.TaskType
			return c.Variant == l.Variant && p.has(would)
		}) {
			out = append(out, l)
		}
	}
	return out
}

func where(cells []*cell, is func(assay.Cell) bool) []*cell {
	var out []*cell
	for _, c := range cells {
		if is(c.Cell) {
			out = append(out, c)
		}
	}
	return out
}

// levels lists those of a factor in their natural order: the others come after
// those that are known, as they were planned.
func levels(cells []*cell, factor string) []string {
	known := map[string][]string{
		variant:    assay.PlainVariants,
		taskType:   assay.TaskTypes,
		difficulty: assay.Difficulties,
		severity:   append([]string{""}, assay.Severities...),
	}[factor]
	if factor == Graded {
		for _, name := range levels(cells, variant) {
			for _, s := range levels(cells, severity) {
				known = append(known, PromptKey(name, s))
			}
		}
	}
	if factor == reliability {
		rates := make(map[float64]bool)
		for _, c := range cells {
			rates[c.Reliability] = true
		}
		for _, r := range slices.Backward(slices.Sorted(maps.Keys(rates))) {
			known = append(known, assay.FormatReliability(r))
		}
	}
	return inOrder(func(yield func(string) bool) {
		for _, c := range cells {
			if !yield(level(c.Cell, factor)) {
				return
			}
		}
	}, known)
}

// inOrder drops repetitions and puts those that are known first, in that order.
func inOrder[K comparable](names iter.Seq[K], known []K) []K {
	out, seen := []K{}, make(map[K]bool)
	for n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	place := func(n K) int {
		if i := slices.Index(known, n); i >= 0 {
			return i
		}
		return len(known)
	}
	slices.SortStableFunc(out, func(a, b K) int { return cmp.Compare(place(a), place(b)) })
	return out
}
