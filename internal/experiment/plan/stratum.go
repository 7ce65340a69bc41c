package plan

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// A stratum is a cell, shared by all models that have it, with its trials in
// order.
type stratum struct {
	cell  assay.Cell // without a model
	tasks []assay.TaskRef
	// steps describe the trials. Each part that has the cell adds a step: its
	// first tasks, repeated a number of times. After merge, the steps are
	// sorted by repeats, and no step has more tasks than the one before it.
	steps   []step
	planned int
	plays   int // of each task and repeat
}

type step struct{ tasks, repeats int }

// of returns the cell of the given model.
func (s *stratum) of(model string) assay.Cell {
	c := s.cell
	c.Model = model
	return c
}

// add adds the tasks and repeats of a part. If two parts differ in their number
// of tasks, the shorter list is a prefix of the longer one.
func (s *stratum) add(tasks []assay.TaskRef, repeats int) {
	if len(tasks) > len(s.tasks) {
		s.tasks = tasks
	}
	s.steps = append(s.steps, step{len(tasks), repeats})
}

// merge makes the trials the union of the added steps.
func (s *stratum) merge() {
	slices.SortFunc(s.steps, func(a, b step) int { return cmp.Compare(a.repeats, b.repeats) })
	for i := len(s.steps) - 2; i >= 0; i-- {
		s.steps[i].tasks = max(s.steps[i].tasks, s.steps[i+1].tasks)
	}
	before := 0
	for _, f := range s.steps {
		s.planned += f.tasks * (f.repeats - before)
		before = f.repeats
	}
	s.planned *= s.plays
}

// at returns the task, the repeat and the replay of the k-th trial, counted from 0. All
// tasks of a repeat come before the next repeat, and all repeats before they are played again.
func (s *stratum) at(k int) (task assay.TaskRef, repeat, replay int) {
	before, each := 0, s.planned/s.plays
	replay, k = k/each, k%each
	for _, f := range s.steps {
		n := f.tasks * (f.repeats - before)
		if k < n {
			return s.tasks[k%f.tasks], before + k/f.tasks + 1, replay
		}
		k -= n
		before = f.repeats
	}
	panic("plan: trial index out of range")
}

// byWork lists the task types by expected amount of work, most first.
var byWork = []string{
	"multi_stage_pipeline", "data_pipeline", "api_integration", "basic_task",
	"simple_task",
}

// longestFirst orders strata by expected duration, so that long trials do not
// start last. Less reliable tools mean more repeated calls.
func longestFirst(a, b *stratum) int {
	return cmp.Or(
		cmp.Compare(workRank(a.cell.TaskType), workRank(b.cell.TaskType)),
		cmp.Compare(a.cell.Reliability, b.cell.Reliability),
		cmp.Compare(a.cell.Faults, b.cell.Faults),
		cmp.Compare(a.cell.Interface, b.cell.Interface),
		cmp.Compare(a.cell.Phrasing, b.cell.Phrasing),
	)
}

func workRank(taskType string) int {
	if i := slices.Index(byWork, taskType); i >= 0 {
		return i
	}
	return len(byWork) / 2
}

// remaining deletes the strata that have no trials left after the given number
// of rounds.
func remaining(rounds int, strata []*stratum) []*stratum {
	return slices.DeleteFunc(strata, func(s *stratum) bool { return s.planned <= rounds })
}

// interleave returns the order of a round. It takes strata sorted by
// longestFirst and picks one of each task type in turn until all are used.
//
// However short a run is, two types with equally many strata are therefore
// never more than one trial apart. Each type starts one place further in its
// list than the type before it, so even a few trials are spread over variants,
// reliabilities and the other factors.
func interleave(strata []*stratum) []*stratum {
	var types [][]*stratum
	for _, s := range strata {
		i := slices.IndexFunc(types,
			func(list []*stratum) bool { return list[0].cell.TaskType == s.cell.TaskType })
		if i < 0 {
			i = len(types)
			types = append(types, nil)
		}
		types[i] = append(types[i], s)
	}
	order := make([]*stratum, 0, len(strata))
	for i := 0; len(order) < len(strata); i++ {
		for t, list := range types {
			if i < len(list) {
				order = append(order, list[(i+t)%len(list)])
			}
		}
	}
	return order
}
