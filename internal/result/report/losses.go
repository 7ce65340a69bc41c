package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Loss is the part of a model's full successes that a level of a factor costs, beyond chance. The
// factor is one of cells, or Task.
type Loss struct {
	Model  string `json:"model"`
	Factor string `json:"factor"`
	Level  string `json:"level"`
	// Against is the level that it is compared with. It is empty for all other levels.
	Against string `json:"against,omitempty"`
	stat.ShownLoss
}

// Losses says what costs models most; see [stat.LargestLoss].
type Losses struct {
	// Largest is nil if nothing costs any model anything beyond chance.
	Largest *Loss `json:"largest"`
	// Compared counts the levels, types of tasks and tasks that could have been it.
	Compared int `json:"compared"`
	// TaskTrials is how many trials of a task would show that it always fails, and Fewest how many
	// some task has. Both are 0 without tasks to compare.
	TaskTrials int `json:"task_trials_needed,omitempty"`
	Fewest     int `json:"task_trials,omitempty"`
	// Clusters is how many independent tasks or sequences levels have in common, and ClustersNeeded
	// how many can show what a level costs, for the model that is closest to it; see [stat.Losing].
	Clusters       int `json:"clusters,omitempty"`
	ClustersNeeded int `json:"clusters_needed,omitempty"`
}

// Task is the factor of a loss on one task.
const Task = "task"

// An Example is a trial that did not fully succeed.
type Example struct {
	Trial assay.TrialID
	Cell  *assay.Cell
	Cause assay.Cause
}

// findLoss finds the largest loss of the models that figures are about, and a trial that shows it or
// the main reason.
func (a *Analysis) findLoss(x counted) {
	if a.Reason == nil {
		return // nothing failed
	}
	x.cells = counting(x.cells)
	models := slices.DeleteFunc(byModel(x.cells), func(m *cell) bool { return m.n(done) == 0 })
	contrasts := slices.Concat(a.Variants, a.Levels)
	for _, m := range models {
		mine := slices.DeleteFunc(slices.Clone(contrasts), func(p Paired) bool { return p.Model != m.Model })
		data, tasks, types := x.lossData(m.Model)
		data.Models = len(models)
		for _, p := range mine {
			data.Levels = append(data.Levels, p.data)
		}
		found := stat.LargestLoss(data)
		a.Losses.Compared += found.Compared
		closer := cmp.Or(
			cmp.Compare(found.ClustersNeeded-found.Clusters, a.Losses.ClustersNeeded-a.Losses.Clusters),
			cmp.Compare(found.ClustersNeeded, a.Losses.ClustersNeeded)) < 0
		if found.ClustersNeeded > 0 && (closer || a.Losses.ClustersNeeded == 0) {
			a.Losses.Clusters, a.Losses.ClustersNeeded = found.Clusters, found.ClustersNeeded
		}
		if a.Losses.Fewest == 0 || found.Fewest < a.Losses.Fewest {
			a.Losses.TaskTrials, a.Losses.Fewest = found.TaskTrials, found.Fewest
		}
		top := found.Top
		if top == nil || a.Losses.Largest != nil && a.Losses.Largest.AtLeast >= top.AtLeast {
			continue
		}
		l := &Loss{Model: m.Model, ShownLoss: *top}
		switch top.Family {
		case stat.ByLevel:
			p := mine[top.Index]
			l.Factor, l.Level, l.Against = cmp.Or(p.Factor, variant), p.B, p.A
		case stat.ByType:
			l.Factor, l.Level = taskType, types[top.Index]
		case stat.BySoleTask:
			l.Factor, l.Level = Task, string(x.tasks[tasks[top.Index]])
		}
		a.Losses.Largest = l
	}
	a.Example = x.example(a.Losses.Largest, a.Reason)
}

// lossData returns the trials of a model by task and type, without replays: their luck is no further
// evidence about a task. The indices of the tasks and types in the data belong to the other results.
func (x *counted) lossData(model string) (d stat.LossData, tasks []task, types []string) {
	mine, plays := ofModel(x.cells, model), x.firstPlays(model)
	types = levels(mine, taskType)
	type place struct {
		task task
		kind string
	}
	at := make(map[place]*stat.TriedTask)
	conditions := make(map[assay.Cell]int)
	for _, c := range mine {
		d.BySequence = c.from.bySequence()
		condition := without(c.Cell, taskType)
		if _, ok := conditions[condition]; !ok {
			conditions[condition] = len(conditions)
		}
		for of, g := range plays[c] {
			p := place{of, c.TaskType}
			if at[p] == nil {
				at[p] = &stat.TriedTask{Type: slices.Index(types, c.TaskType), Sequence: c.from.of[of]}
			}
			at[p].Cells = append(at[p].Cells, stat.TriedCell{
				Condition: conditions[condition], Group: g,
			})
		}
	}
	x.addUnits(model, func(r *record) (*stat.TriedTask, int) {
		if !slices.Contains(mine, r.cell) {
			return nil, 0
		}
		return at[place{r.task, r.cell.TaskType}], conditions[without(r.cell.Cell, taskType)]
	})
	for _, p := range slices.SortedFunc(maps.Keys(at), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.kind, b.kind))
	}) {
		tasks = append(tasks, p.task)
		d.Tasks = append(d.Tasks, *at[p])
	}
	return d, tasks, types
}

// addUnits adds to tasks the trials of a model that are independent of each other. Trials of a task with the
// same repeat share their luck under all conditions in which tools fail.
// Of returns the task of a record and its condition, or nil if the record does not count.
func (x *counted) addUnits(model string, of func(*record) (*stat.TriedTask, int)) {
	type luck struct {
		task   *stat.TriedTask
		repeat int32
	}
	sets := make(map[string]int)
	add := func(t *stat.TriedTask, set string, g stat.Group) {
		if _, known := sets[set]; !known {
			sets[set] = len(sets)
		}
		t.Units = append(t.Units, stat.TriedUnit{Set: sets[set], Group: g})
	}
	shared := make(map[luck]map[int]*record) // by condition
	var order []luck
	for r := range x.plays(model) {
		t, condition := of(r)
		if t == nil {
			continue
		}
		if r.cell.Reliability == 1 && r.cell.amounts[scheduled] == 0 {
			add(t, fmt.Sprint(condition), r.addTo(stat.Group{}))
			continue
		}
		l := luck{t, r.repeat}
		if shared[l] == nil {
			shared[l] = make(map[int]*record)
			order = append(order, l)
		}
		shared[l][condition] = r
	}
	for _, l := range order {
		set, g := "", stat.Group{}
		for _, condition := range slices.Sorted(maps.Keys(shared[l])) {
			set += fmt.Sprint(condition, " of one luck, ")
			g = shared[l][condition].addTo(g)
		}
		add(l.task, set, g)
	}
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

// compareLevels compares levels of the other factors with their first levels, such as the highest
// reliability, on the same tasks. Reliable tools meet no fault, so they stand for every mix of
// faults.
func compareLevels(cells []*cell) []Paired {
	out := []Paired{}
	first := reliability
	if slices.Contains(levels(cells, Tools), Reliable) && len(levels(cells, faultMix)) > 1 {
		first = Tools
	}
	for _, factor := range []string{first, difficulty, faultMix, interfaces, phrasing} {
		for _, m := range modelsOf(cells) {
			mine := ofModel(cells, m)
			all := levels(mine, factor)
			for _, name := range all[1:] {
				p := Paired{Model: m, Factor: factor, A: all[0], B: name}
				if p.compare(pairs(mine, p.A, p.B, factor)); p.Tasks > 0 {
					out = append(out, p)
				}
			}
		}
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
