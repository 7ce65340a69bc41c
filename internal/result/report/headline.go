package report

import (
	"cmp"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

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

// An Example is a trial that did not fully succeed.
type Example struct {
	Trial assay.TrialID
	Cell  *assay.Cell
	Cause assay.Cause
}

// findLoss finds the largest loss, and a trial that shows it or the main reason. The tests of the
// analysis have to be adjusted already.
func (a *Analysis) findLoss(x counted, parts int) {
	x.cells = counting(x.cells)
	a.Loss = x.loss(slices.Concat(a.Variants, a.Levels), parts)
	a.Example = x.example(a.Loss, a.Reason)
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
// the same conditions. It returns all cells, and false, if that leaves out all tasks.
func sharedCells(cells []*cell) (shared []*cell, ok bool) {
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
	for _, c := range cells {
		at := without(c.Cell, model)
		shared := c.only(func(of task, o outcomes) outcomes {
			if tried[place{at, of}] < len(models) {
				return outcomes{}
			}
			return o
		})
		if shared.n(done) > 0 {
			out = append(out, shared)
		}
	}
	if len(out) == 0 {
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
				p.Comparison = pairs(mine, p.A, p.B, factor).compare()
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
		u := separate{Loss: Loss{Model: m.Model, Factor: Task, Level: string(x.tasks[low])}}
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
		return x.failures[failure{model: l.Model, task: of}]
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
	var found *Example
	for _, c := range cells {
		e := x.failures[failure{cell: c, cause: reason.Cause}]
		if e != nil && (found == nil || c.Reliability > found.Cell.Reliability) {
			found = e
		}
	}
	return found
}
