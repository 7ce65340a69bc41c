package report

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// A Part is a group of cells in an experiment that answers one question.
type Part struct {
	Name string
	// Models lists the models in the order of the rows. If it is empty, the part has all models
	// with cells.
	Models []string
	// Varies names the factors that vary in the part, by the fields of an export: variant,
	// severity, difficulty, reliability, fault_mix, interface, phrasing or task_type.
	Varies []string
	// Has reports whether a cell of these models belongs to the part. If it is nil, all of them do.
	Has func(assay.Cell) bool
}

func (p Part) has(c assay.Cell) bool {
	return (len(p.Models) == 0 || slices.Contains(p.Models, c.Model)) && (p.Has == nil || p.Has(c))
}

// factor returns the factor of the part's columns: the first of these that varies.
func (p Part) factor() string {
	for _, f := range []string{variant, severity, difficulty, reliability, faultMix, interfaces, phrasing} {
		if slices.Contains(p.Varies, f) {
			return f
		}
	}
	return taskType
}

// models pools the part's cells by model, in the order of Models.
func (p Part) models(cells []*cell) []*cell {
	models := byModel(cells)
	slices.SortStableFunc(models, func(a, b *cell) int {
		return cmp.Compare(slices.Index(p.Models, a.Model), slices.Index(p.Models, b.Model))
	})
	return models
}

// leftOut returns the entries that concern the part: the ones about variants and types whose cells
// it has or would have.
func (p Part) leftOut(cells []*cell, left []LeftOut) []LeftOut {
	out := []LeftOut{}
	for _, l := range left {
		if slices.ContainsFunc(cells, func(c *cell) bool {
			would := c.Cell
			would.Severity, would.TaskType = l.Severity, l.TaskType
			return c.Variant == l.Variant && p.has(would)
		}) {
			out = append(out, l)
		}
	}
	return out
}

func ofModel(cells []*cell, model string) []*cell {
	return where(cells, func(c assay.Cell) bool { return c.Model == model })
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

// Compare orders cells for tables: by model, variant, severity, reliability, difficulty, mix of
// faults, interface, phrasing and task type.
func (d Design) Compare(a, b assay.Cell) int {
	names := func(x, y string, known ...string) int {
		place := func(name string) uint { return uint(slices.Index(known, name)) } // unknown ones last
		return cmp.Or(cmp.Compare(place(x), place(y)), cmp.Compare(x, y))
	}
	severities := append([]string{""}, assay.Severities...)
	return cmp.Or(
		names(a.Model, b.Model, d.Models...),
		names(a.Variant, b.Variant, slices.Concat(assay.Variants, d.Variants)...),
		names(a.Severity, b.Severity, severities...),
		cmp.Compare(a.Reliability, b.Reliability),
		names(a.Difficulty, b.Difficulty, assay.Difficulties...),
		cmp.Compare(a.Faults, b.Faults),
		names(assay.InterfaceName(a.Interface), assay.InterfaceName(b.Interface), assay.Interfaces...),
		names(PhrasingName(a.Phrasing), PhrasingName(b.Phrasing), assay.Phrasings...),
		names(a.TaskType, b.TaskType, d.TaskTypes...),
	)
}

// levels lists the levels of a factor in their natural order. Unknown levels come last, in the
// order of the plan.
func levels(cells []*cell, factor string) []string {
	known := map[string][]string{
		variant: assay.PlainVariants, taskType: assay.TaskTypes, difficulty: assay.Difficulties,
		severity: append([]string{""}, assay.Severities...), faultMix: {MixName("")},
		Tools: {Reliable}, interfaces: assay.Interfaces, phrasing: assay.Phrasings,
	}[factor]
	if factor == Graded {
		for _, name := range levels(cells, variant) {
			for _, s := range levels(cells, severity) {
				known = append(known, PromptKey(name, s))
			}
		}
	}
	if factor == reliability {
		var rates []float64
		for _, c := range cells {
			rates = append(rates, c.Reliability)
		}
		slices.Sort(rates)
		for _, r := range slices.Backward(slices.Compact(rates)) {
			known = append(known, assay.FormatReliability(r))
		}
	}
	var all []string
	for _, c := range cells {
		all = append(all, level(c.Cell, factor))
	}
	return inOrder(all, known)
}

// inOrder removes duplicates and moves the known names to the front, in the given order.
func inOrder[K comparable](names, known []K) []K {
	out := []K{}
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	place := func(n K) uint { return uint(slices.Index(known, n)) } // unknown ones come last
	slices.SortStableFunc(out, func(a, b K) int { return cmp.Compare(place(a), place(b)) })
	return out
}
