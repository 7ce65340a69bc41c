package report

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Names that variants have in package episode.
const (
	baseline     = "baseline"
	cot          = "cot"
	optimal      = "optimal"
	flawedPrefix = "flawed_"
	// together stands for all flawed variants.
	together = "flawed"
)

func isFlawed(name string) bool { return strings.HasPrefix(name, flawedPrefix) }

// compare sets variants against each other. What the part lacks for that it
// takes from all cells of the experiment; mine are the model's own in the part.
func (r *PivotRow) compare(all, mine []*cell) {
	plain := make(map[string]*float64)
	var flawed []*float64
	for _, c := range r.Cells {
		switch {
		case c.Planned == 0:
		case isFlawed(c.Level):
			flawed = append(flawed, c.known())
		default:
			plain[c.Level] = c.known()
		}
	}
	if _, ok := plain[optimal]; !ok {
		if t := beside(all, mine, variant, optimal); t != nil {
			c := newPivotCell(optimal, t)
			r.Optimal, plain[optimal] = &c, c.known()
		}
	}
	if len(flawed) > 0 {
		r.FlawedMean = mean(flawed)
		r.Difference = difference(r.FlawedMean, plain[optimal])
	} else {
		flawed = flawedBeside(all, mine)
		r.FlawedMean = mean(flawed)
	}
	for _, name := range []string{baseline, cot, optimal} {
		if _, ok := plain[name]; !ok {
			return
		}
	}
	if len(flawed) > 0 {
		plain[together] = r.FlawedMean
	}
	r.Sensitivity, r.Best = spread(plain)
}

// A condition is what has to be the same for two variants to be compared.
type condition struct {
	difficulty  string
	reliability float64
}

func conditionOf(c assay.Cell) condition { return condition{c.Difficulty, c.Reliability} }

// beside pools the cells at a level under the conditions, and with the types of
// task, that a model's cells have. It returns nil where there is a condition
// for which there are none, for then the two do not compare.
func beside(all, mine []*cell, factor, name string) *tally {
	types, conditions := make(map[string]bool), make(map[condition]bool)
	for _, c := range mine {
		types[c.TaskType] = true
		conditions[conditionOf(c.Cell)] = false // not found yet
	}
	var t tally
	for _, c := range all {
		if c.Model != mine[0].Model || level(c.Cell, factor) != name {
			continue
		}
		if _, ok := conditions[conditionOf(c.Cell)]; ok && types[c.TaskType] {
			conditions[conditionOf(c.Cell)] = true
			t.merge(&c.tally)
		}
	}
	for _, found := range conditions {
		if !found {
			return nil
		}
	}
	return &t
}

// flawedBeside returns the rates of the flawed variants, in each of their
// severities, that stand beside a model's cells.
func flawedBeside(all, mine []*cell) []*float64 {
	var rates []*float64
	for _, name := range levels(all, graded) {
		if !isFlawed(name) {
			continue
		}
		if t := beside(all, mine, graded, name); t != nil {
			c := newPivotCell(name, t)
			rates = append(rates, c.known())
		}
	}
	return rates
}

// spread returns the population standard deviation of rates and the names of
// the highest, and nothing where one of them is not known.
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
		if *v > top-1e-9 { // a mean is a rate with the last digits rounded
			highest = append(highest, names[i])
		}
	}
	return new(math.Sqrt(squares / float64(len(values)))), highest
}
