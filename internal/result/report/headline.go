package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Headline has the figures that a person reads first.
type Headline struct {
	// Order ranks the models by their rate of full success on the tasks and conditions they share.
	Order []Rank
	// Without names the models that have no outcome.
	Without []string
	// Shared is true if models tried different tasks or conditions, so that Order leaves some out.
	Shared bool
	// Loss is nil if no factor or task costs any model anything.
	Loss   *Loss
	Causes []TopCause
	// Example is nil if no trial failed.
	Example *Example
	// Show is the command that shows a trial, up to the trial's ID. The default is "assay show".
	Show string
	// Faults counts the attempts that ended in faults, and USD is the cost of all attempts.
	// Unpriced names the models with replies of unknown cost, which USD leaves out.
	Faults   int
	USD      float64
	UserUSD  float64 // the simulated user's part of USD
	Unpriced []string
	// Runs counts the runs with outcomes that have ended, which took Seconds together.
	Runs    int
	Seconds float64
}

// A Rank is a model's place among the models. Next compares it (A) with the following one (B). It
// is nil for the last model, and if the two have no task in common.
type Rank struct {
	Model    string
	Done     int
	Rate     float64
	Interval stat.Interval
	Next     *Paired
}

// A Loss is the part of a model's full successes that a level of a factor costs. The factor is
// one of cells, or Task.
type Loss struct {
	Model, Factor, Level string
	// Against is the level that it is compared with. It is empty for all other levels.
	Against string
	// Points is the rate at Against minus the rate at Level.
	Points   float64
	Interval stat.Interval
	// Significant is true if the loss is more than chance, whatever else was compared.
	Significant bool
}

// Task is the factor of a loss on one task.
const Task = "task"

// A TopCause is a model's most frequent reason why trials did not fully succeed.
type TopCause struct {
	Model  string
	Cause  assay.Cause
	Count  int
	Failed int
}

// An Example is a trial that did not fully succeed.
type Example struct {
	Trial assay.TrialID
	Cell  assay.Cell
	Cause assay.Cause
}

// headline computes the figures. The tests of the analysis have to be adjusted already.
func (x *counted) headline(a *Analysis, parts int) Headline {
	h := Headline{Causes: causes(a.Errors)}
	h.Order, h.Shared = x.order(a.Models)
	for _, m := range byModel(x.cells) {
		h.Faults += m.faults
		h.USD = assay.RoundUSD(h.USD + m.costUSD + m.userUSD)
		h.UserUSD = assay.RoundUSD(h.UserUSD + m.userUSD)
		if m.done == 0 {
			h.Without = append(h.Without, m.key)
		}
		if m.usage.UnpricedTokens+m.userUnpriced > 0 {
			h.Unpriced = append(h.Unpriced, m.key)
		}
	}
	if a.Done == 0 {
		return h
	}
	alike := *x
	alike.cells = counting(x.cells)
	h.Loss = alike.loss(slices.Concat(a.Variants, a.Levels), parts)
	h.Example = alike.example(h.Loss, a.Reason)
	return h
}

// causes leaves out models without a failure.
func causes(e Errors) (all []TopCause) {
	for _, row := range e.Rows {
		if row.Total == 0 {
			continue
		}
		top := slices.MaxFunc(row.Cells, func(a, b ErrorCell) int { return a.Count - b.Count })
		all = append(all, TopCause{row.Model, top.Cause, top.Count, row.Total})
	}
	return all
}

// order ranks the models by their rates on the tasks and under the conditions that all of them
// have.
func (x *counted) order(tests []Paired) (ranks []Rank, shared bool) {
	cells, shared := sharedCells(x.cells)
	for _, m := range byModel(cells) {
		if m.done > 0 {
			r := m.rate(m.key, "")
			ranks = append(ranks, Rank{
				Model: m.key, Done: r.Done, Rate: r.Rate, Interval: r.Interval,
			})
		}
	}
	slices.SortStableFunc(ranks, func(a, b Rank) int { return cmp.Compare(b.Rate, a.Rate) })
	for i := range ranks[:max(0, len(ranks)-1)] {
		ranks[i].Next = Between(tests, ranks[i].Model, ranks[i+1].Model)
	}
	return ranks, shared
}

// Between returns the comparison of two models with a as the first side, or nil without one.
func Between(tests []Paired, a, b string) *Paired {
	for _, p := range tests {
		switch {
		case p.A == a && p.B == b:
			return &p
		case p.A == b && p.B == a:
			p.A, p.B, p.RateA, p.RateB = a, b, p.RateB, p.RateA
			p.Difference = -p.Difference
			p.Interval = stat.Interval{Low: -p.Interval.High, High: -p.Interval.Low}
			return &p
		}
	}
	return nil
}

// sharedCells returns the cells with only the tasks that all models with outcomes have done under
// the same conditions. It returns all cells and false if that leaves out no task, or all.
func sharedCells(cells []*cell) ([]*cell, bool) {
	type place struct {
		assay.Cell
		task task
	}
	models := make(map[string]bool)
	tried := make(map[place]int)
	for _, c := range cells {
		for of := range c.tasks {
			models[c.Model] = true
			tried[place{without(c.Cell, model), of}]++
		}
	}
	var out []*cell
	left := false
	for _, c := range cells {
		s := &cell{Cell: c.Cell}
		s.from, s.tasks = c.from, make(map[task]outcomes)
		for of, o := range c.tasks {
			if tried[place{without(c.Cell, model), of}] < len(models) {
				left = true
				continue
			}
			s.tasks[of] = o
			s.done += int(o[done])
			s.full += int(o[full])
		}
		if s.done > 0 {
			out = append(out, s)
		}
	}
	if !left || len(out) == 0 {
		return cells, false
	}
	return out, true
}

// compareLevels compares levels of the other factors with their first levels, such as the highest
// reliability, on the same tasks. Reliable tools meet no fault, so they stand for every mix of
// faults.
func compareLevels(cells []*cell) []Paired {
	out := []Paired{}
	first := reliability
	if slices.Contains(levels(cells, Tools), Reliable) && len(levels(cells, faultMix)) > 1 {
		first = Tools
	}
	for _, factor := range []string{first, difficulty, faultMix} {
		for _, m := range modelsOf(cells) {
			mine := ofModel(cells, m)
			all := levels(mine, factor)
			for _, name := range all[1:] {
				p := Paired{Model: m, Factor: factor, A: all[0], B: name}
				p.Comparison = pairs(mine, p.A, p.B, factor).bMinusA()
				if p.Tasks > 0 {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// loss finds the largest loss. Tests on the same tasks and differences between types of tasks
// come before single tasks, and losses that are more than chance before others.
func (x *counted) loss(tests []Paired, parts int) *Loss {
	var all []Loss
	for _, p := range tests {
		if len(ofModel(x.cells, p.Model)) > 0 {
			all = append(all, Loss{
				Model: p.Model, Factor: cmp.Or(p.Factor, variant), Level: p.B, Against: p.A,
				Points:      -p.Difference,
				Interval:    stat.Interval{Low: -p.Interval.High, High: -p.Interval.Low},
				Significant: p.Significant(),
			})
		}
	}
	if parts < 2 { // the types of several parts met different conditions
		all = append(all, x.typeLosses()...)
	}
	top := largest(all)
	if top != nil && top.Significant {
		return top
	}
	if single := largest(x.taskLosses()); single != nil && (top == nil || single.Significant) {
		return single
	}
	return top
}

// largest returns the largest loss, of those that are more than chance if there are any.
func largest(all []Loss) *Loss {
	var top *Loss
	for i, l := range all {
		if l.Points <= 0 {
			continue
		}
		if top == nil || cmp.Or(cmp.Compare(flag(l.Significant), flag(top.Significant)),
			cmp.Compare(l.Points, top.Points)) > 0 {
			top = &all[i]
		}
	}
	return top
}

// typeLosses compares each model's rate at a type of tasks with its rate at the others.
func (x *counted) typeLosses() []Loss {
	var all []separate
	for _, m := range modelsOf(x.cells) {
		mine := ofModel(x.cells, m)
		for _, name := range levels(mine, taskType) {
			here := sum(where(mine, func(c assay.Cell) bool { return c.TaskType == name }))
			rest := sum(where(mine, func(c assay.Cell) bool { return c.TaskType != name }))
			all = append(all, separate{
				Loss{Model: m, Factor: taskType, Level: name}, here.byTask(), rest.byTask(),
			})
		}
	}
	return losses(all, len(all))
}

// taskLosses compares each model's rate at its worst task with its rate at the others.
func (x *counted) taskLosses() []Loss {
	var worst []separate
	chosen := 0
	for _, m := range byModel(x.cells) {
		tasks := slices.Sorted(maps.Keys(m.tasks))
		if len(tasks) < 2 {
			continue
		}
		chosen += len(tasks)
		low := slices.MinFunc(tasks, func(a, b task) int {
			g, h := m.tasks[a].group(), m.tasks[b].group()
			return cmp.Or(cmp.Compare(g.Full*h.N, h.Full*g.N), cmp.Compare(h.N, g.N),
				cmp.Compare(x.tasks[a], x.tasks[b]))
		})
		u := separate{Loss: Loss{Model: m.key, Factor: Task, Level: string(x.tasks[low])}}
		for _, of := range tasks {
			if of != low {
				u.rest = append(u.rest, m.tasks[of].group())
			}
		}
		for k := range m.tasks[low][done] { // the trials of the one task are the sample
			u.here = append(u.here, stat.Group{Full: int(flag(k < m.tasks[low][full])), N: 1})
		}
		worst = append(worst, u)
	}
	return losses(worst, chosen)
}

// fewestHere is how many tasks of a type, or trials of a task, can show a loss. The worst one of
// many tasks with a single trial has failed, whatever the model.
const fewestHere = 3

// A separate loss compares different tasks.
type separate struct {
	Loss
	here, rest []stat.Group
}

// losses computes losses. One is more than chance if its interval excludes 0 at a level that is
// adjusted by Bonferroni for the number that they were chosen from.
func losses(all []separate, chosen int) (out []Loss) {
	level := 1 - level05/float64(max(1, chosen))
	for _, u := range all {
		if len(u.here) == 0 || len(u.rest) == 0 {
			continue
		}
		u.Points, u.Interval = stat.Separate(u.rest, u.here, 1-level05)
		_, wide := stat.Separate(u.rest, u.here, level)
		u.Significant = wide.Low > 0 && len(u.here) >= fewestHere
		out = append(out, u.Loss)
	}
	return out
}

// example finds a trial that shows the loss, with its most frequent cause. Without a loss, it
// shows the main reason where that is most frequent.
func (x *counted) example(l *Loss, r *Reason) *Example {
	switch {
	case r == nil:
		return nil
	case l != nil && l.Factor == Task:
		of := task(slices.Index(x.tasks, assay.TaskID(l.Level)))
		return x.failures[failure{model: l.Model, task: of}].example()
	case l != nil:
		return x.failureAt(l.Model, l.Factor, l.Level)
	}
	return x.failureAt(r.Place.Model, variant, r.Place.Level)
}

// failureAt finds a trial of a model that failed at a level of a factor for the most frequent
// reason there. It prefers the most reliable tools, because their faults explain least.
func (x *counted) failureAt(model, factor, name string) *Example {
	if factor == variant {
		factor = variantFactor(x.cells)
	}
	cells := where(ofModel(x.cells, model), func(c assay.Cell) bool { return level(c, factor) == name })
	reason := mainReason(cells)
	if reason == nil {
		return nil
	}
	var found failedTrial
	for _, c := range cells {
		f, ok := x.failures[failure{cell: c, cause: reason.Cause}]
		if ok && (found.cell == nil || c.Reliability > found.cell.Reliability) {
			found = f
		}
	}
	return found.example()
}
