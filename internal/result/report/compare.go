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
// takes from all cells of the experiment; mine are the model's own in the part, and
// by is the factor of its levels.
func (r *PivotRow) compare(all, mine []*cell, by string) {
	plain := make(map[string]*float64)
	var flawed, differences []*float64
	against := slices.Concat(where(mine, func(c assay.Cell) bool { return isFlawed(c.Variant) }),
		where(all, func(c assay.Cell) bool { return c.Model == mine[0].Model && c.Variant == optimal }))
	for _, c := range r.Cells {
		switch {
		case c.Planned == 0:
		case isFlawed(c.Level):
			flawed = append(flawed, c.known())
			differences = append(differences, pairedDifference(against, c.Level, optimal, by))
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
		if r.FlawedMean != nil && plain[optimal] != nil {
			r.Difference = mean(differences)
		}
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

// pairedDifference is the mean over the tasks that have outcomes at both levels, under
// the same conditions, of the difference of their rates; nil without such tasks.
func pairedDifference(cells []*cell, a, b, factor string) *float64 {
	both := pairs(cells, a, b, factor)
	if len(both) == 0 {
		return nil
	}
	sum := 0.0
	for _, p := range both {
		sum += float64(p.A)/float64(p.NA) - float64(p.B)/float64(p.NB)
	}
	return new(sum / float64(len(both)))
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
	for _, name := range levels(all, Graded) {
		if !isFlawed(name) {
			continue
		}
		if t := beside(all, mine, Graded, name); t != nil {
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
