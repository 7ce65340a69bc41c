package report

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A robustness has the shares of a model's successes under plain conditions that are left under others,
// at the same tasks and everything else equal; see [stat.Kept].
type robustness struct {
	phrasings, interfaces stat.Estimate
	// classes has those with failing tools by the class of their faults; see [assay.ToolFaultRule.Class].
	classes map[string]stat.Estimate
	// published has the rates with other levels of a factor divided by those under plain conditions, over all
	// trials of either.
	published map[string]Value
}

// robustnessOf compares a model's cells with those with plain words, the tools' own interfaces, and
// reliable tools. The plain ones are those on which models are ranked.
func robustnessOf(mine, ranked []*cell) robustness {
	kept := func(mine []*cell, factor, plain string, is func(level string) bool) stat.Estimate {
		others := slices.DeleteFunc(levels(mine, factor), func(name string) bool { return name == plain || !is(name) })
		if len(others) == 0 {
			return stat.Estimate{}
		}
		tasks := pairsOf(mine, []string{plain}, others, factor).tasks()
		return stat.Kept(stat.Lost(tasks, mine[0].from.bySequence()), len(tasks))
	}
	all := func(string) bool { return true }
	r := robustness{
		phrasings: kept(mine, phrasing, assay.Plain, all), interfaces: kept(mine, interfaces, assay.Plain, all),
		classes: make(map[string]stat.Estimate), published: make(map[string]Value),
	}
	for factor, usual := range map[string]string{phrasing: assay.Plain, interfaces: assay.Plain, Tools: Reliable} {
		r.published[factor] = overall(mine, ranked, factor, usual)
	}
	plain, _ := plainCells(mine)
	class := make(map[string]string) // of faults, by level
	for _, c := range plain {
		class[level(c.Cell, Tools)] = classOf(c.Faults)
	}
	delete(class, Reliable)
	for _, of := range class {
		if _, known := r.classes[of]; !known {
			r.classes[of] = kept(plain, Tools, Reliable, func(name string) bool { return class[name] == of })
		}
	}
	return r
}

// overall divides a model's rate with other levels of a factor than the usual one by that of plain cells, which
// are the same otherwise.
func overall(mine, plain []*cell, factor, usual string) Value {
	same := make(map[assay.Cell]bool)
	for _, c := range plain {
		if level(c.Cell, factor) != usual {
			return Value{}
		}
		same[without(c.Cell, factor)] = true
	}
	a := sum(plain)
	b := sum(where(mine, func(c assay.Cell) bool { return same[without(c, factor)] && level(c, factor) != usual }))
	if a.n(full) == 0 || b.n(done) == 0 {
		return Value{}
	}
	rate := func(t tally) float64 { return float64(t.n(full)) / float64(t.n(done)) }
	return number(min(1, rate(b)/rate(a)))
}

// keptOf returns the share of success that a condition leaves.
func keptOf(c *Cost) stat.Estimate {
	if c == nil {
		return stat.Estimate{}
	}
	return stat.Kept(c.Lost, c.Tasks)
}

// classOf returns the class of all faults of a mix, or "" if they are of several. What an attacker says
// is of none.
func classOf(faults string) (class string) {
	mix, err := assay.ParseFaultMix(MixName(faults))
	if err != nil {
		return ""
	}
	for kind := range mix {
		rule := kind.Rule()
		if rule.Attacks || class != "" && class != rule.Class() {
			return ""
		}
		class = rule.Class()
	}
	return class
}

// robustness returns the shares of all models, or nil if they are no more than what the first screen
// has, which is about flawed plans and failing tools.
func (x *counted) robustness(models []*cell, standings []Standing) *Grid {
	beyond := func(s Standing) bool {
		classes := 0
		for class, e := range s.classes {
			if class != "" && e.Tasks > 0 {
				classes++
			}
		}
		return s.phrasings.Tasks+s.interfaces.Tasks > 0 || classes > 1
	}
	if !slices.ContainsFunc(standings, beyond) {
		return nil
	}
	models = slices.DeleteFunc(slices.Clone(models), func(m *cell) bool { return standingOf(standings, m.Model) == nil })
	return gridOf(models, standings, []string{model}, union(Tables["robustness"], Tables["published-robustness"])...)
}

// keptMeasure declares a share of success that is left.
func keptMeasure(key, head, means string, of func(*Standing) stat.Estimate) *Measure {
	return measure("robustness_"+key, head, AsPercent, means, nil).ofModel(func(s *Standing) Value {
		return estimated(of(s))
	})
}

func keptInClass(key, class string) *Measure {
	return keptMeasure(key, class, "the same with faults that are all "+class,
		func(s *Standing) stat.Estimate { return s.classes[class] })
}

// publishedKept declares the published estimator of robustness against other levels of a factor.
func publishedKept(key, head, with, factor string) *Measure {
	means := "full success with " + with + " divided by that under the conditions of the first line, at most 100 %"
	return measure("published_robustness_"+key, head, AsPercent, means, nil).ofModel(func(s *Standing) Value {
		return s.published[factor]
	})
}
