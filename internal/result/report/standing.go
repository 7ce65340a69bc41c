package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Standing is the row of a model on the first screen.
type Standing struct {
	Model string `json:"model"`
	// Planned and Done count the model's trials. All other figures cover the Common trials: the
	// trials that all models that can be the best have done. Own is true if there is no such trial,
	// so that the common trials are all of the model's outcomes.
	Planned int  `json:"planned"`
	Done    int  `json:"done"`
	Common  int  `json:"common"`
	Own     bool `json:"own_trials,omitempty"`
	// Success is the rate of full success over the Ranked ones of them, those of
	// [Ranking.Condition]: the mean over tasks of a task's rate, as in [stat.Rank].
	Success Share `json:"full_success"`
	Ranked  int   `json:"ranked_trials"`
	// Skill is nil if no floor is known, or if the tasks leave no room for it.
	Skill *Skill `json:"skill"`
	// Conditions has the rates of full success that the costs compare, each over all common trials
	// under the condition: the first plan without a flaw with the most reliable tools, flawed plans
	// with the same tools, and the first plan with failing tools.
	Conditions []Condition `json:"conditions"`
	// FlawedPlan is the cost of a flawed plan, compared with the right plan at the same tasks under
	// the same conditions. FailingTools is the cost of failing tools with the right plan, compared
	// with reliable tools at the same tasks. Each is nil if there is no such comparison.
	FlawedPlan   *Cost `json:"flawed_plan"`
	FailingTools *Cost `json:"failing_tools"`
	// Recovery is the rate of full success on the Hit trials: trials that showed the right plan, in
	// which a call failed by chance or gave a wrong answer, and that the plan survives, if each call
	// is repeated until it has happened.
	Recovery Share `json:"recovery"`
	Hit      int   `json:"hit"`
	// FalseSuccess is the share of the Failed trials in which the model claimed to be done. Trials
	// of the pilot world are left out of both, because it ignores claims before the work is done.
	FalseSuccess Share `json:"false_success"`
	Failed       int   `json:"failed"`
	// Price is the money of all attempts at these trials, divided by the full successes. It is nil
	// without a cost. Unpriced counts the tokens with an unknown cost, which Price leaves out, so
	// that it has no upper limit.
	Price    *stat.Price `json:"usd_per_success"`
	Unpriced int         `json:"unpriced_tokens,omitempty"`
	// AtLeast is true if some of the model's costs are unknown, at whatever trials.
	AtLeast bool `json:"usd_at_least,omitempty"`
	// PerTrial is the same money divided by the common trials.
	PerTrial float64 `json:"usd_per_trial,omitempty"`
	// Selected is the reason why the missing trials may differ from the ones that are done, such as
	// "3 content_filter". It is empty if they don't, as far as is known.
	Selected string `json:"selected,omitempty"`
	// Compared is true if the model was compared with others to find the best one.
	Compared bool `json:"compared"`
	// Best is true if the first of the compared models has a success and does not beat this one; see
	// [stat.Ranked]. It is false for all if they have too few tasks in common. A model is compared if
	// at least 95 % of its trials are done and Selected is empty. Simulated models only are if there
	// are no others.
	Best bool `json:"best"`

	robustness
}

// A Skill says where a model's success lies between policies without skill and the best policy:
// (success − floor) ÷ (ceiling − floor), which is 0 for the former and 1 for the latter. All three
// are means over the same trials, and without luck: the success is the ceiling times the share of
// full successes among the trials that can be won with their luck; see [OfBest]. The interval is
// that of the share, transformed likewise, so it does not contain the uncertainty of the floor.
type Skill struct {
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
	Floor    float64       `json:"floor"`
	Ceiling  float64       `json:"ceiling"`
	Trials   int           `json:"trials"`
}

// minRange is how far the ceiling has to be above the floor. If they are closer, tasks leave little
// room for skill: the interval of a rate would be wider than the range.
const minRange = .20

// A Condition is the rate of a model under a condition. Name is [RightPlan] or another variant
// without a flaw, [FlawedPlans] or [FailingTools].
type Condition struct {
	Name string `json:"name"`
	Done int    `json:"done"`
	Share
}

// The names of conditions.
const (
	RightPlan    = "right plan"
	FlawedPlans  = "flawed plans"
	FailingTools = "failing tools"
)

// A Cost is the cost of a condition for a model: the difference in full success from a reference,
// at the same tasks.
type Cost struct {
	// Reference and Level name the two conditions.
	Reference string `json:"reference"`
	Level     string `json:"level"`
	// Paired compares the reference (A) with the level (B). Its Q is adjusted for all costs of flawed
	// plans and of failing tools, of all models.
	Paired
	// Lost is the share of the reference's success that the level lacks.
	Lost stat.Loss `json:"lost"`
	// Kinds has the costs of the kinds of the condition, the largest first. It is empty if there
	// is only one. Their Q is adjusted for the number of kinds, by Bonferroni's method.
	Kinds []Cost `json:"kinds,omitempty"`
}

// Reliable is the level of tools that never fail.
const Reliable = "reliable tools"

// Standing returns the row of a model, or nil if it has no outcome.
func (a *Analysis) Standing(model string) *Standing { return standingOf(a.Standings, model) }

func standingOf(all []Standing, model string) *Standing {
	i := slices.IndexFunc(all, func(s Standing) bool { return s.Model == model })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// standings computes the rows of all models with outcomes: the ranked ones in their order, then the
// others.
func (f *field) standings(models []*cell, ranking *Ranking) []Standing {
	out := []Standing{}
	place := make(map[string]int)
	for _, m := range models {
		if m.n(done) == 0 {
			continue
		}
		s := f.standing(m)
		place[s.Model] = 2 * len(models) // last, unless it decides which trials count
		if i := slices.Index(f.deciders, s.Model); i >= 0 {
			place[s.Model] = len(models)
			if ranking != nil {
				s.Compared, s.Best = m.complete(), ranking.Models[i].Best
				place[s.Model] = slices.Index(ranking.Order, i)
			}
		}
		out = append(out, s)
	}
	var costs []*Paired
	for _, s := range out {
		for _, c := range []*Cost{s.FlawedPlan, s.FailingTools} {
			if c != nil {
				costs = append(costs, &c.Paired)
			}
		}
	}
	adjust(costs)
	slices.SortStableFunc(out, func(a, b Standing) int {
		return cmp.Or(cmp.Compare(place[a.Model], place[b.Model]),
			cmp.Compare(b.Success.Rate, a.Success.Rate))
	})
	return out
}

// standing returns a model's row.
func (f *field) standing(m *cell) Standing {
	common, plain := ofModel(f.common, m.Model), ofModel(f.plain, m.Model)
	all, ranked := sum(common), sum(plain)
	s := Standing{
		Model: m.Model, Planned: m.planned, Done: m.n(done), Selected: m.selected(), Own: f.own,
		Common: all.n(done), Ranked: ranked.n(done), Skill: skill(common),
		Conditions: f.conditions(m.Model, common, plain), FlawedPlan: flawedPlan(common), FailingTools: failingTools(common),
		robustness: robustnessOf(common, plain),
		Recovery:   all.among(hit, survived), Hit: all.n(hit),
		FalseSuccess: all.among(unfinished, claimed), Failed: all.n(unfinished),
		Unpriced: int(all.amounts[unpriced]),
	}
	s.Success = f.rate(plain, m.Model)
	usd := 0.0
	for _, of := range slices.Sorted(maps.Keys(all.spent)) {
		usd += all.spent[of]
	}
	if usd > 0 {
		s.Price, s.PerTrial = new(all.price()), usd/float64(all.n(done))
		if s.AtLeast = m.leastCost(costs, unpriced); s.AtLeast {
			s.Price.High = nil
		}
	}
	return s
}

// rate returns the rate of full success of a model: the mean over tasks of a task's rate.
func (f *field) rate(mine []*cell, model string) Share {
	tasks, bySequence := f.shared(mine, []string{model})
	r, t := stat.SharedRate(tasks, 0, bySequence, 1-level05), sum(mine)
	return Share{Count: t.n(full), Rate: r.Rate, Interval: r.Interval, Of: t.n(done)}
}

// skill compares the success with the floors and ceilings of the same trials. It is nil if these are
// unknown, or too close to each other.
func skill(mine []*cell) *Skill {
	t := sum(slices.DeleteFunc(slices.Clone(mine), func(c *cell) bool { return c.amounts[floored] == 0 }))
	n, share := t.amounts[floored], t.among(winnable, reached)
	s := &Skill{Trials: int(n), Floor: t.amounts[floors] / n, Ceiling: t.amounts[ceilings] / n}
	if n == 0 || share.Of == 0 || s.Ceiling-s.Floor < minRange {
		return nil
	}
	between := func(rate float64) float64 { return (rate*s.Ceiling - s.Floor) / (s.Ceiling - s.Floor) }
	s.Rate = between(share.Rate)
	s.Interval = stat.Interval{Low: between(share.Interval.Low), High: between(share.Interval.High)}
	return s
}

// skilless reports whether floors are known, but no model has a skill because the tasks leave no room.
func (f *field) skilless() bool {
	some := func(is func(*cell) bool) bool { return slices.ContainsFunc(f.common, is) }
	return some(func(c *cell) bool { return c.amounts[floored] > 0 }) &&
		!some(func(c *cell) bool { return skill(ofModel(f.common, c.Model)) != nil })
}

// price divides the money by the successes. All tasks count, also free ones.
func (t *tally) price() stat.Price {
	var all []stat.Spent
	for _, of := range slices.Sorted(maps.Keys(t.tasks)) {
		all = append(all, stat.Spent{
			Sequence: t.from.of[of], USD: t.spent[of], Group: t.tasks[of].group(),
		})
	}
	return stat.PriceOf(all, t.from.bySequence())
}

// selected counts the trials without an outcome that have met a fault which depends on the content
// of the trial, by the fault.
func (t *tally) selected() string {
	var parts []string
	for i, kind := range contentFaults {
		if n := t.blocked[i]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}

// contentFaults are the faults that depend on the content of a trial.
var contentFaults = [...]assay.FaultKind{assay.ContentFilter, assay.BadRequest}

// Enough is the share of its trials that a model must have done to be called the best.
const Enough = .95

// flawedPlan compares the model's flawed variants with the right plan. It leaves out outcomes whose
// flaw hurts no agent that follows the plan; see [Design].
func flawedPlan(mine []*cell) *Cost {
	plain := where(mine, func(c assay.Cell) bool { return !IsFlawed(c.Variant) })
	hurting := slices.DeleteFunc(hurtingOnly(mine), func(c *cell) bool { return c.n(done) == 0 })
	mine = append(plain, hurting...)
	by := variantFactor(mine)
	flawed := slices.DeleteFunc(levels(mine, by), func(v string) bool { return !IsFlawed(v) })
	return costOf(mine, assay.Optimal, flawed, by)
}

// failingTools compares the kinds of failing tools with reliable ones, with the model's plain plan.
func failingTools(mine []*cell) *Cost {
	plain, _ := plainCells(mine)
	failing := slices.DeleteFunc(levels(plain, Tools), func(l string) bool { return l == Reliable })
	return costOf(plain, Reliable, failing, Tools)
}

// plainCells returns the cells with the right plan, or else the cells of the first variant without
// a flaw. It also returns a name for them.
func plainCells(mine []*cell) ([]*cell, string) {
	for _, v := range []string{assay.Optimal, assay.Baseline, assay.CoT} {
		plain := where(mine, func(c assay.Cell) bool { return plainOf(c.Variant) == v })
		switch {
		case len(plain) == 0:
		case v == assay.Optimal:
			return plain, RightPlan
		default:
			return plain, Readable(v)
		}
	}
	for _, v := range levels(mine, variant) {
		if !IsFlawed(v) {
			return where(mine, func(c assay.Cell) bool { return c.Variant == v }), Readable(v)
		}
	}
	return nil, ""
}

// conditions returns the rates of the conditions that have an outcome. The first one is that of
// [Ranking.Condition]; the others have flawed plans with the same tools, and the same plan with less
// reliable tools, in the same words and with the same interfaces. A rate is the mean over tasks, as in [stat.Rank].
func (f *field) conditions(model string, common, plain []*cell) []Condition {
	out := []Condition{}
	if len(plain) == 0 {
		return out
	}
	most := plain[0].Reliability
	_, name := plainCells(f.common)
	words := func(c assay.Cell) [2]string { return [2]string{c.Phrasing, c.Interface} }
	put := make(map[[2]string]bool)
	for _, c := range plain {
		put[words(c.Cell)] = true
	}
	common = where(common, func(c assay.Cell) bool { return put[words(c)] })
	same, _ := plainCells(common)
	for _, c := range []struct {
		name  string
		cells []*cell
	}{
		{cmp.Or(name, FlawedPlans), plain},
		{FlawedPlans, where(hurtingOnly(common), func(c assay.Cell) bool { return c.Reliability == most })},
		{FailingTools, where(same, func(c assay.Cell) bool { return c.Reliability < most })},
	} {
		if t := sum(c.cells); t.n(done) > 0 && (name != "" || c.name != FlawedPlans || len(out) == 0) {
			out = append(out, Condition{c.name, t.n(done), f.rate(c.cells, model)})
		}
	}
	return out
}

// costOf compares levels of a factor with a reference. It returns nil if they have no task in
// common.
func costOf(mine []*cell, reference string, all []string, factor string) *Cost {
	c := &Cost{Reference: reference}
	references := slices.DeleteFunc(levels(mine, factor), func(l string) bool { return plainOf(l) != reference })
	compare := func(names []string) (Paired, stat.Loss) {
		s := pairsOf(mine, references, names, factor)
		return Paired{Comparison: s.compare()}, stat.Lost(s.tasks(), s.from.bySequence())
	}
	c.Paired, c.Lost = compare(all)
	if c.Tasks == 0 {
		return nil
	}
	if len(all) == 1 {
		c.Level = all[0]
		return c
	}
	for _, name := range all {
		k := Cost{Reference: reference, Level: name}
		if k.Paired, k.Lost = compare([]string{name}); k.Tasks > 0 {
			k.Q = min(1, k.P*float64(len(all)))
			c.Kinds = append(c.Kinds, k)
		}
	}
	slices.SortStableFunc(c.Kinds, func(a, b Cost) int { return cmp.Compare(a.Difference, b.Difference) })
	return c
}
