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
	// trials at tasks that all models have settled under the same conditions. Own is true if there
	// is no such task, so that the common trials are all of the model's outcomes.
	Planned int  `json:"planned"`
	Done    int  `json:"done"`
	Common  int  `json:"common"`
	Own     bool `json:"own_trials,omitempty"`
	// Success is the rate of full success.
	Success Share `json:"full_success"`
	// Skill is nil if no floor is known, or if it is hardly below the ceiling.
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
	// Recovery is the rate of full success on the Hit trials: trials with the right plan that met a
	// fault of a tool and that the plan survives, if each call is repeated until it has happened.
	Recovery Share `json:"recovery"`
	Hit      int   `json:"hit"`
	// FalseSuccess is the share of the Failed trials in which the model claimed to be done. Trials
	// of the pilot world are left out of both, because it ignores claims before the work is done.
	FalseSuccess Share `json:"false_success"`
	Failed       int   `json:"failed"`
	// Price is the money of all attempts at the tasks of these trials, divided by the full
	// successes. It is nil without a cost. Unpriced counts the tokens with an unknown cost, which
	// Price leaves out, so that it has no upper limit.
	Price    *stat.Price `json:"usd_per_success"`
	Unpriced int         `json:"unpriced_tokens,omitempty"`
	// PerTrial is the same money divided by the common trials.
	PerTrial float64 `json:"usd_per_trial,omitempty"`
	// Selected is the reason why the missing trials may differ from the ones that are done, such as
	// "3 content_filter". It is empty if they don't, as far as is known.
	Selected string `json:"selected,omitempty"`
	// Compared is true if the model was compared with the others to find the best one.
	Compared bool `json:"compared"`
	// Best is true if no model that can be the best did better by more than chance. A model can be
	// the best if at least 95 % of its trials are done and Selected is empty. Simulated models only
	// can if there are no others.
	Best bool `json:"best"`
}

// A Skill says where a model's success lies between policies without skill and the best policy:
// (success − floor) ÷ (ceiling − floor), which is 0 for the former and 1 for the latter. All three
// are means over the same trials. The interval is the interval of the success, transformed
// likewise, so it does not contain the uncertainty of the floor.
type Skill struct {
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
	Floor    float64       `json:"floor"`
	Ceiling  float64       `json:"ceiling"`
	Trials   int           `json:"trials"`
}

// leastRange is how far the ceiling has to be above the floor. If they are closer, trials show
// hardly any skill.
const leastRange = .05

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
	// Paired compares the reference (A) with the level (B).
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
func (a *Analysis) Standing(model string) *Standing {
	i := slices.IndexFunc(a.Standings, func(s Standing) bool { return s.Model == model })
	if i < 0 {
		return nil
	}
	return &a.Standings[i]
}

// standings computes the rows of all models with outcomes, the best first.
func standings(cells []*cell) []Standing {
	out := []Standing{}
	common, shares := sharedCells(cells)
	for _, m := range byModel(cells) {
		if m.n(done) > 0 {
			shared := ofModel(common, m.Model)
			s := m.standing(m.Model, shared)
			s.Own = !shares
			s.Skill = new(sum(shared)).skill()
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b Standing) int {
		return cmp.Compare(b.Success.Rate, a.Success.Rate)
	})
	best(out, cells)
	return out
}

// standing returns a model's row. common are the model's cells with only the tasks that all models
// have.
func (t *tally) standing(model string, common []*cell) Standing {
	shared := sum(common)
	s := Standing{
		Model: model, Planned: t.planned, Done: t.n(done), Selected: t.selected(),
		Success: shared.among(done, full), Common: shared.n(done), Conditions: conditions(common),
		FlawedPlan: flawedPlan(common), FailingTools: failingTools(common),
		Recovery: shared.among(hit, survived), Hit: shared.n(hit),
		FalseSuccess: shared.among(unfinished, claimed), Failed: shared.n(unfinished),
	}
	for _, tokens := range shared.unpriced {
		s.Unpriced += tokens
	}
	usd := 0.0
	for _, spent := range shared.spent {
		usd += spent
	}
	if usd > 0 {
		s.Price, s.PerTrial = new(shared.price()), usd/float64(shared.n(done))
		if s.Unpriced > 0 {
			s.Price.High = nil
		}
	}
	return s
}

// skill compares the success with the floors and ceilings of the same trials. It is nil if these are
// unknown, or too close to each other.
func (t *tally) skill() *Skill {
	b := t.bound()
	if b.n == 0 {
		return nil
	}
	s := &Skill{Trials: b.n, Floor: b.floor / float64(b.n), Ceiling: b.ceiling / float64(b.n)}
	if s.Ceiling-s.Floor < leastRange {
		return nil
	}
	between := func(rate float64) float64 { return (rate - s.Floor) / (s.Ceiling - s.Floor) }
	success := t.share(func(of task, _ outcomes) (some, among int32) {
		return int32(t.bounds[of].full), int32(t.bounds[of].n)
	})
	s.Rate = between(success.Rate)
	s.Interval = stat.Interval{
		Low: between(success.Interval.Low), High: between(success.Interval.High),
	}
	return s
}

// price divides the money by the successes.
func (t *tally) price() stat.Price {
	tasks := maps.Clone(t.spent)
	for of := range t.tasks {
		tasks[of] += 0 // all tasks count, also free ones
	}
	var all []stat.Spent
	for _, of := range slices.Sorted(maps.Keys(tasks)) {
		sequence, known := t.from.of[of]
		if !known { // no model has an outcome
			sequence = -1 - int(of)
		}
		all = append(all, stat.Spent{
			Sequence: sequence, USD: tasks[of],
			Group: stat.Group{Full: int(t.tasks[of][full]), N: int(t.tasks[of][done])},
		})
	}
	return stat.PriceOf(all, t.from.bySequence())
}

// selected lists the faults of trials that are not done which depend on the content of the trial.
func (t *tally) selected() string {
	if t.n(done) == t.planned {
		return ""
	}
	var parts []string
	for _, kind := range []assay.FaultKind{assay.ContentFilter, assay.BadRequest} {
		if n := t.faultKinds[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(parts, ", ")
}

// enough is the share of its trials that a model must have done to be called the best.
const enough = .95

// best marks the models that may be the best. Each pair is compared on the tasks that both have
// done under the same conditions, and the p-values are adjusted by Holm's method.
func best(all []Standing, cells []*cell) {
	simulated := !slices.ContainsFunc(all, func(s Standing) bool { return !Simulated(s.Model) })
	var able []int
	for i, s := range all {
		if Simulated(s.Model) == simulated && s.Selected == "" && len(able) < mostModels &&
			float64(s.Done) >= enough*float64(s.Planned) {
			able = append(able, i)
		}
	}
	type pair struct {
		worse int
		p     float64
	}
	var tests []pair
	for n, i := range able {
		all[i].Compared, all[i].Best = true, true
		for _, k := range able[n+1:] {
			c := pairs(cells, all[i].Model, all[k].Model, model).compare()
			worse := k
			if c.Difference > 0 {
				worse = i
			}
			tests = append(tests, pair{worse, c.P})
		}
	}
	slices.SortFunc(tests, func(a, b pair) int { return cmp.Compare(a.p, b.p) })
	for i, t := range tests {
		if t.p*float64(len(tests)-i) >= level05 {
			return
		}
		all[t.worse].Best = false
	}
}

// flawedPlan compares the model's flawed variants with the right plan.
func flawedPlan(mine []*cell) *Cost {
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
	return nil, ""
}

// conditions returns the rates of the conditions that have an outcome.
func conditions(mine []*cell) []Condition {
	out := []Condition{}
	plain, name := plainCells(mine)
	reliable := slices.ContainsFunc(plain, func(c *cell) bool { return c.Reliability == 1 })
	calm := func(c assay.Cell) bool { return !reliable || c.Reliability == 1 }
	for _, c := range []struct {
		name  string
		cells []*cell
	}{
		{name, where(plain, calm)},
		{FlawedPlans, where(mine, func(c assay.Cell) bool { return IsFlawed(c.Variant) && calm(c) })},
		{FailingTools, where(plain, func(c assay.Cell) bool { return !calm(c) })},
	} {
		if t := sum(c.cells); t.n(done) > 0 {
			out = append(out, Condition{c.name, t.n(done), t.among(done, full)})
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
		return Paired{Comparison: s.compare()}, stat.Lost(s.tasks, s.bySequence)
	}
	c.Paired, c.Lost = compare(all)
	if c.Tasks == 0 {
		return nil
	}
	c.Q = c.P
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
