package report

import (
	"cmp"
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
	// Factor is the one of A and B in [Analysis.Levels], and else empty.
	Factor string `json:"factor,omitempty"`
	// Condition describes the trials that are compared. It is empty for all of them.
	Condition string `json:"condition,omitempty"`
	A         string `json:"a,omitempty"`
	B         string `json:"b,omitempty"`
	stat.Comparison
	// Q is P adjusted for all tests of the report with Benjamini and Hochberg's procedure. Of the
	// differences with q below .05, one in twenty is a false discovery.
	Q float64 `json:"q"`

	data []stat.Matched
}

// compare fills in the comparison of the two sides' tasks.
func (p *Paired) compare(data *pairing[task]) { p.data, p.Comparison = data.tasks(), data.compare() }

// Significant reports whether the difference is significant.
func (p Paired) Significant() bool { return p.Tasks > 0 && p.Q < level05 }

// Uneven reports whether the difference depends on the condition.
func (p Paired) Uneven() bool { return Uneven(p.Comparison) }

// Uneven reports whether a difference depends on the condition.
func Uneven(c stat.Comparison) bool { return c.Conditions > 1 && c.PConditions < level05 }

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
				if p.compare(pairs(mine, reference, name, by)); p.Tasks > 0 {
					out = append(out, p)
					break
				}
			}
		}
	}
	return out
}

// compareModels compares each pair of the ranked models on the trials that they were ranked on. Q is
// the p-value of the ranking, which is adjusted for all pairs of models.
func compareModels(f *field, r *Ranking) []Paired {
	out := []Paired{}
	if r == nil {
		return out
	}
	for i, a := range r.Names {
		for _, b := range r.Names[i+1:] {
			p := Paired{A: a, B: b}
			p.compare(pairs(f.plain, a, b, model))
			p.Q, _ = r.between(a, b)
			if p.Tasks > 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

func modelsOf(cells []*cell) []string { return levels(cells, model) }

// adjust fills in Q over a family of tests.
func adjust(family []*Paired) {
	p := make([]float64, len(family))
	for i, test := range family {
		p[i] = test.P
	}
	for i, q := range stat.BenjaminiHochberg(p) {
		family[i].Q = q
	}
}

// references returns pointers to the elements of lists.
func references(lists ...[]Paired) (all []*Paired) {
	for _, list := range lists {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// A pairing has the tasks that two sides have in common, with their cells.
type pairing[K comparable] struct {
	from  *population[K]
	order func(a, b K) int
	cells map[K][]stat.Cell
}

func newPairing[K comparable](from *population[K], order func(a, b K) int) *pairing[K] {
	return &pairing[K]{from, order, make(map[K][]stat.Cell)}
}

func (p *pairing[K]) add(of K, c stat.Cell) { p.cells[of] = append(p.cells[of], c) }

// tasks returns the tasks in their order.
func (p *pairing[K]) tasks() (all []stat.Matched) {
	for _, of := range slices.SortedFunc(maps.Keys(p.cells), p.order) {
		all = append(all, stat.Matched{Sequence: p.from.of[of], Cells: p.cells[of]})
	}
	return all
}

func (p *pairing[K]) compare() stat.Comparison { return stat.Compare(p.tasks(), p.from.bySequence()) }

// pairs pairs the tasks that have outcomes at both levels of a factor. Only cells that are equal in
// all other factors are paired.
func pairs(cells []*cell, a, b, factor string) *pairing[task] {
	return pairsOf(cells, []string{a}, []string{b}, factor)
}

// pairsOf pairs each of the levels a with each of the levels b. A flawed plan is only paired with a
// plan that the prompt gives the same authority, and reliable tools with failing ones of another mix only if
// there are none of the same mix.
func pairsOf(cells []*cell, a, b []string, factor string) *pairing[task] {
	at := make(map[assay.Cell][]*cell)
	for _, c := range cells {
		if slices.Contains(b, level(c.Cell, factor)) {
			k := without(c.Cell, factor)
			at[k] = append(at[k], c)
		}
	}
	reliable := make(map[string]bool) // mixes
	for _, c := range cells {
		reliable[c.Faults] = reliable[c.Faults] || c.Reliability == 1
	}
	p, condition := newPairing(nil, cmp.Compare[task]), 0
	for _, x := range cells {
		if !slices.Contains(a, level(x.Cell, factor)) {
			continue
		}
		p.from = x.from
		for _, y := range at[without(x.Cell, factor)] {
			if factor == Tools && x.Faults != y.Faults && reliable[x.Faults] && reliable[y.Faults] {
				continue // there are reliable tools with the same mix
			}
			if IsFlawed(y.Variant) && !sameAuthority(x.Variant, y.Variant) {
				continue
			}
			for of, g := range x.tasks {
				if h, ok := y.tasks[of]; ok {
					p.add(of, stat.Cell{Condition: condition, Pair: pairOf(g, h)})
				}
			}
			condition++
		}
	}
	return p
}

func pairOf(a, b outcomes) stat.Pair {
	return stat.Pair{A: int(a[full]), NA: int(a[done]), B: int(b[full]), NB: int(b[done])}
}
