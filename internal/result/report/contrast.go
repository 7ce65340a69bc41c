package report

import (
	"maps"
	"math"
	"slices"

	"github.com/assay-eval/assay"
)

// together stands for all flawed variants.
const together = "flawed"

// IsFlawed reports whether a variant's plan has a flaw. The name may have a severity.
func IsFlawed(variant string) bool {
	_, flawed := assay.FlawOf(variant)
	return flawed
}

// plainOf returns a variant without the authority of its plan.
func plainOf(variant string) string {
	plain, _ := assay.PlainOf(variant)
	return plain
}

// sameAuthority reports whether a prompt says the same about the plans of two variants, or the first
// one shows no plan.
func sameAuthority(a, b string) bool {
	_, one := assay.PlainOf(a)
	_, other := assay.PlainOf(b)
	return one == other || !assay.ShowsPlan(a)
}

// compareVariants fills in the figures that set variants against each other. If the part
// lacks a variant for that, its cells are taken from the whole experiment. mine are the
// model's own cells in the part, and by is the factor of the row's levels.
func (r *PivotRow) compareVariants(all, mine []*cell, by string) {
	plain := make(map[string]*float64)
	var flawed []*float64
	var names []string
	hurting := hurtingOnly(mine)
	against := slices.Concat(
		hurting,
		where(all, func(c assay.Cell) bool {
			return c.Model == mine[0].Model && plainOf(c.Variant) == assay.Optimal
		}),
	)
	for _, c := range r.Cells {
		switch {
		case c.Planned == 0:
		case IsFlawed(c.Level):
			h := pivotCellAt(hurting, c.Level, by)
			r.Harmless += c.Done - h.Done
			if c.Done > 0 && h.Done == 0 {
				continue
			}
			flawed = append(flawed, h.known())
			names = append(names, c.Level)
		default:
			plain[c.Level] = c.known()
		}
	}

	if _, ok := plain[assay.Optimal]; !ok {
		if t := beside(all, mine, variant, assay.Optimal); t != nil {
			c := newPivotCell(assay.Optimal, t)
			r.Optimal, plain[assay.Optimal] = &c, c.known()
		}
	}
	if len(flawed) > 0 {
		r.FlawedMean = mean(flawed)
		if r.FlawedMean != nil && plain[assay.Optimal] != nil {
			optimal := slices.DeleteFunc(levels(against, by), func(l string) bool {
				return plainOf(l) != assay.Optimal
			})
			r.differ(pairsOf(against, optimal, names, by))
		}
	} else {
		flawed = flawedBeside(all, mine)
		r.FlawedMean = mean(flawed)
	}

	for _, name := range assay.PlainVariants {
		if _, ok := plain[name]; !ok {
			return
		}
	}
	if len(flawed) > 0 {
		plain[together] = r.FlawedMean
	}
	r.Sensitivity, r.Best = spread(plain)
}

// hurtingOnly returns the flawed cells with only those outcomes whose flaw hurts; see [Design]. Of
// these, only the number and the full successes are known.
func hurtingOnly(cells []*cell) []*cell {
	var out []*cell
	for _, c := range where(cells, func(c assay.Cell) bool { return IsFlawed(c.Variant) }) {
		some := &cell{Cell: c.Cell, tally: tally{from: c.from}}
		for of, o := range c.tasks {
			var kept outcomes
			if kept[done], kept[full] = o[hurt], o[hurtFull]; kept[done] > 0 {
				some.count(of, kept)
			}
		}
		out = append(out, some)
	}
	return out
}

// pivotCellAt pools the cells at a level of a factor.
func pivotCellAt(cells []*cell, name, factor string) PivotCell {
	t := sum(where(cells, func(c assay.Cell) bool { return level(c, factor) == name }))
	return newPivotCell(name, &t)
}

// conditionOf returns what has to be equal for two variants to be compared.
func conditionOf(c assay.Cell) assay.Cell {
	return assay.Cell{
		Difficulty: c.Difficulty, Reliability: c.Reliability, Faults: c.Faults, Interface: c.Interface, Phrasing: c.Phrasing,
	}
}

// beside pools the model's cells at a level that share the conditions and task types of
// mine. It returns nil if a condition has no such cell, because the two cannot be compared
// then.
func beside(all, mine []*cell, factor, name string) *tally {
	types, found := make(map[string]bool), make(map[assay.Cell]bool)
	for _, c := range mine {
		types[c.TaskType] = true
		found[conditionOf(c.Cell)] = false
	}

	var t tally
	for _, c := range all {
		if c.Model != mine[0].Model || level(c.Cell, factor) != name {
			continue
		}
		if _, ok := found[conditionOf(c.Cell)]; ok && types[c.TaskType] {
			found[conditionOf(c.Cell)] = true
			t.merge(&c.tally)
		}
	}
	for _, ok := range found {
		if !ok {
			return nil
		}
	}
	return &t
}

// flawedBeside returns the rates of the flawed variants, by severity, that can be compared
// with mine.
func flawedBeside(all, mine []*cell) []*float64 {
	var rates []*float64
	for _, name := range levels(all, Graded) {
		if !IsFlawed(name) {
			continue
		}
		t, h := beside(all, mine, Graded, name), beside(hurtingOnly(all), mine, Graded, name)
		if t != nil && (t.n(done) == 0 || h.n(done) > 0) {
			c := newPivotCell(name, h)
			rates = append(rates, c.known())
		}
	}
	return rates
}

// spread returns the population standard deviation of rates and the names of the highest
// ones. It returns nil if a rate is unknown.
func spread(rates map[string]*float64) (deviation *float64, highest []string) {
	names := slices.Sorted(maps.Keys(rates))
	var values []*float64
	for _, n := range names {
		values = append(values, rates[n])
	}
	m := mean(values)
	if m == nil {
		return nil, nil
	}

	squares, top := 0.0, 0.0
	for _, v := range values {
		squares += (*v - *m) * (*v - *m)
		top = max(top, *v)
	}
	for i, v := range values {
		if *v > top-1e-9 { // means differ in their last digits
			highest = append(highest, names[i])
		}
	}
	return new(math.Sqrt(squares / float64(len(values)))), highest
}
