package report

import (
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Paired compares two sides on the same tasks under the same conditions. Every difference,
// interval and effect size in this package is B minus A: it is positive if B did better.
// A is the reference, such as the optimal variant. See [stat.Compare].
type Paired struct {
	// Model names the model whose variants are compared. It is empty in comparisons of models.
	Model string `json:"model,omitempty"`
	// Condition describes the trials that are compared. It is empty for all of them.
	Condition string `json:"condition,omitempty"`
	A         string `json:"a,omitempty"`
	B         string `json:"b,omitempty"`
	stat.Comparison
	// Q is P adjusted for all comparisons in the same list with Benjamini and Hochberg's
	// procedure. Of the differences with q below .05, one in twenty is a false discovery.
	Q float64 `json:"q"`
}

// Significant reports whether the difference is more than chance.
func (p Paired) Significant() bool { return p.Tasks > 0 && p.Q < level05 }

// level05 is the significance level of every test.
const level05 = 0.05

// compareVariants compares each variant of a model, and each severity of it, with the
// optimal variant. If the two share no task under the same conditions, it takes the first
// variant that shares one.
func compareVariants(cells []*cell) []Paired {
	by := variantFactor(cells)
	out := []Paired{}
	for _, m := range modelsOf(cells) {
		mine := ofModel(cells, m)
		names := levels(mine, by)
		if i := slices.Index(names, assay.Optimal); i > 0 {
			names = slices.Insert(slices.Delete(names, i, i+1), 0, assay.Optimal)
		}
		for i, name := range names {
			for _, reference := range names[:i] {
				p := Paired{Model: m, A: reference, B: name}
				p.Comparison = bMinusA(pairs(mine, reference, name, by))
				if p.Tasks > 0 {
					out = append(out, p)
					break
				}
			}
		}
	}
	return adjust(out)
}

// mostModels limits the models that are compared with every other model. Models beyond it
// are compared with models of their own family only.
const mostModels = 16

// compareModels compares each pair of models.
func compareModels(cells []*cell) []Paired {
	models := modelsOf(cells)
	out := []Paired{}
	for i, a := range models {
		for k, b := range models[i+1:] {
			if i+1+k >= mostModels && !sameFamily(a, b) {
				continue
			}
			p := Paired{A: a, B: b, Comparison: bMinusA(pairs(cells, a, b, model))}
			if p.Tasks > 0 {
				out = append(out, p)
			}
		}
	}
	return adjust(out)
}

func modelsOf(cells []*cell) []string { return levels(cells, model) }

// adjust fills in Q over all comparisons of a list.
func adjust(all []Paired) []Paired {
	p := make([]float64, len(all))
	for i := range all {
		p[i] = all[i].P
	}
	for i, q := range stat.BenjaminiHochberg(p) {
		all[i].Q = q
	}
	return all
}

// bMinusA compares both sides of pairs. [stat.Compare] subtracts its second side from its
// first one, so the sides are exchanged on the way in and back on the way out.
func bMinusA(pairs []stat.Pair) stat.Comparison {
	c := stat.Compare(exchanged(pairs))
	c.RateA, c.RateB = c.RateB, c.RateA
	c.OnlyA, c.OnlyB = c.OnlyB, c.OnlyA
	return c
}

func exchanged(pairs []stat.Pair) []stat.Pair {
	out := make([]stat.Pair, len(pairs))
	for i, p := range pairs {
		out[i] = stat.Pair{A: p.B, NA: p.NB, B: p.A, NB: p.NA}
	}
	return out
}

// pairs pairs the tasks that have outcomes at both levels of a factor. Only cells that are
// equal in all other factors are paired.
func pairs(cells []*cell, a, b, factor string) []stat.Pair {
	type side = map[assay.Cell]*cell
	at := map[string]side{a: make(side), b: make(side)}
	for _, c := range cells {
		if s, ok := at[level(c.Cell, factor)]; ok {
			s[without(c.Cell, factor)] = c
		}
	}

	sums := make(map[task]stat.Pair)
	for condition, x := range at[a] {
		y := at[b][condition]
		if y == nil {
			continue
		}
		for of, g := range x.tasks {
			if h, ok := y.tasks[of]; ok {
				sums[of] = add(sums[of], pairOf(g, h))
			}
		}
	}

	out := make([]stat.Pair, 0, len(sums))
	for _, of := range slices.Sorted(maps.Keys(sums)) {
		out = append(out, sums[of])
	}
	return out
}

func pairOf(a, b outcomes) stat.Pair {
	return stat.Pair{A: int(a[full]), NA: int(a[done]), B: int(b[full]), NB: int(b[done])}
}

func add(p, q stat.Pair) stat.Pair {
	return stat.Pair{A: p.A + q.A, NA: p.NA + q.NA, B: p.B + q.B, NB: p.NB + q.NB}
}
