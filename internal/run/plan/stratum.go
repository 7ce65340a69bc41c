package plan

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// A stratum is a cell of each model that has it, and its trials in order.
type stratum struct {
	cell  assay.Cell // without the model
	tasks []assay.TaskRef
	// steps say which trials there are. Each part that has the cell adds one:
	// the first tasks, in the repeats up to a number. Once settled they are in
	// the order of repeats, and the tasks of none are more than those of the
	// one before.
	steps   []step
	planned int
}

type step struct{ tasks, repeats int }

// of returns the cell of one model.
func (s *stratum) of(model string) assay.Cell {
	c := s.cell
	c.Model = model
	return c
}

// add takes in the tasks and repeats of a part. The tasks of two parts are the
// same as far as both go.
func (s *stratum) add(tasks []assay.TaskRef, repeats int) {
	if len(tasks) > len(s.tasks) {
		s.tasks = tasks
	}
	s.steps = append(s.steps, step{len(tasks), repeats})
}

// settle makes the trials the union of what was added.
func (s *stratum) settle() {
	slices.SortFunc(s.steps, func(a, b step) int { return cmp.Compare(a.repeats, b.repeats) })
	for i := len(s.steps) - 2; i >= 0; i-- {
		s.steps[i].tasks = max(s.steps[i].tasks, s.steps[i+1].tasks)
	}
	before := 0
	for _, f := range s.steps {
		s.planned += f.tasks * (f.repeats - before)
		before = f.repeats
	}
}

// at returns the task and the repeat of the k-th trial, from 0. All tasks of a
// repeat come before the next repeat.
func (s *stratum) at(k int) (task assay.TaskRef, repeat int) {
	before := 0
	for _, f := range s.steps {
		n := f.tasks * (f.repeats - before)
		if k < n {
			return s.tasks[k%f.tasks], before + k/f.tasks + 1
		}
		k -= n
		before = f.repeats
	}
	panic("plan: a cell has no such trial")
}

// byWork lists the types of task by how much work they are expected to be, most
// first.
var byWork = []string{"multi_stage_pipeline", "data_pipeline", "api_integration", "basic_task", "simple_task"}

// longestFirst orders strata, so that what takes longest does not begin last.
// The less reliable tools are, the more calls are repeated.
func longestFirst(a, b *stratum) int {
	return cmp.Or(
		cmp.Compare(workRank(a.cell.TaskType), workRank(b.cell.TaskType)),
		cmp.Compare(a.cell.Reliability, b.cell.Reliability),
	)
}

func workRank(taskType string) int {
	if i := slices.Index(byWork, taskType); i >= 0 {
		return i
	}
	return len(byWork) / 2
}

// after deletes the strata that have no trial left after some rounds.
func after(rounds int, strata []*stratum) []*stratum {
	return slices.DeleteFunc(strata, func(s *stratum) bool { return s.planned <= rounds })
}

// inTurn returns strata, which are the longest first, in the order of a round:
// one of each type of task in turn, as long as the type has any. However short
// a run is, no type is then more than one trial ahead of another with as many
// strata. Each type begins one place further in its list than the type before,
// so that few trials are also spread over variants, reliabilities and the like.
func inTurn(strata []*stratum) []*stratum {
	var types [][]*stratum
	for _, s := range strata {
		i := slices.IndexFunc(types, func(list []*stratum) bool { return list[0].cell.TaskType == s.cell.TaskType })
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
