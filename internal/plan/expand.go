package plan

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Refs returns the tasks that a library has of a type and difficulty.
type Refs func(ctx context.Context, taskType, difficulty string) ([]assay.TaskRef, error)

// A Plan is an experiment's trials. It holds a list of tasks for each type and
// difficulty; trials are made when they are asked for.
type Plan struct {
	experiment *Experiment
	strata     []stratum
	longest    int
}

// stratum is the part of a model's trials that has one variant, difficulty,
// task type and reliability.
type stratum struct {
	cell  assay.Cell // without the model
	tasks []assay.TaskRef
}

func (s stratum) of(model string) assay.Cell {
	s.cell.Model = model
	return s.cell
}

// Expand plans the experiment's trials over a library's tasks. A cell takes
// its tasks without replacement in an order that the seed decides, so that all
// models, variants and reliabilities meet the same tasks.
func (e *Experiment) Expand(ctx context.Context, refs Refs) (*Plan, error) {
	p := &Plan{experiment: e}
	for _, difficulty := range e.Difficulties {
		for _, taskType := range e.TaskTypes {
			tasks, err := refs(ctx, taskType, difficulty)
			if err != nil {
				return nil, err
			}
			if tasks, err = e.sample(tasks, taskType, difficulty); err != nil {
				return nil, err
			}
			for _, variant := range e.Variants {
				for _, reliability := range e.Reliabilities {
					p.strata = append(p.strata, stratum{
						cell:  assay.Cell{Variant: variant, Difficulty: difficulty, TaskType: taskType, Reliability: reliability},
						tasks: tasks,
					})
				}
			}
			p.longest = max(p.longest, len(tasks))
		}
	}
	slices.SortStableFunc(p.strata, longestFirst)
	return p, nil
}

func (e *Experiment) sample(refs []assay.TaskRef, taskType, difficulty string) ([]assay.TaskRef, error) {
	want := int(e.TasksPerType)
	switch {
	case len(refs) == 0:
		return nil, e.FieldError("task_types", fmt.Sprintf("library %s has no task of type %s and difficulty %s", e.Library, taskType, difficulty),
			"`assay library inspect` shows what it has")
	case e.TasksPerType == AllTasks:
		want = len(refs)
	case want > len(refs):
		return nil, e.FieldError("tasks_per_type", fmt.Sprintf("library %s has %d tasks of type %s and difficulty %s, fewer than %d",
			e.Library, len(refs), taskType, difficulty, want), "write `tasks_per_type: all` for every task, or `repeats:` for more trials a task")
	}
	type keyed struct {
		key [sha256.Size]byte
		ref assay.TaskRef
	}
	order := make([]keyed, len(refs))
	for i, r := range refs {
		order[i] = keyed{sha256.Sum256(fmt.Appendf(nil, "assay sample 1\x00%d\x00%s", e.Seed, r.ID)), r}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), strings.Compare(string(a.ref.ID), string(b.ref.ID)))
	})
	out := make([]assay.TaskRef, want)
	for i := range out {
		out[i] = order[i].ref
	}
	return out, nil
}

// byWork lists the types of task by how much work they are expected to be, most
// first.
var byWork = []string{"multi_stage_pipeline", "data_pipeline", "api_integration", "basic_task", "simple_task"}

// longestFirst orders strata within a round, so that what takes longest does
// not begin last. The less reliable tools are, the more calls are repeated.
func longestFirst(a, b stratum) int {
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

// Planned is the number of trials of one model.
func (p *Plan) Planned() int {
	n := 0
	for _, g := range p.strata {
		n += len(g.tasks)
	}
	return n * p.experiment.Repeats
}

// Cells yields one model's cells, each with its planned number of trials.
func (p *Plan) Cells(model string) iter.Seq2[assay.Cell, int] {
	return func(yield func(assay.Cell, int) bool) {
		for _, g := range p.strata {
			if !yield(g.of(model), len(g.tasks)*p.experiment.Repeats) {
				return
			}
		}
	}
}

// Trials yields one model's trials. Cells advance together, so that a run that
// is stopped early leaves balanced results; among equals those that are
// expected to take longest come first.
func (p *Plan) Trials(model string) iter.Seq[assay.Trial] {
	return p.Some(model, func(int) bool { return true })
}

// Some yields those of [Plan.Trials] whose place, from 0, want asks for. Making
// a trial costs a microsecond, and passing one over nothing.
func (p *Plan) Some(model string, want func(place int) bool) iter.Seq[assay.Trial] {
	set := p.experiment.Setting()
	return func(yield func(assay.Trial) bool) {
		place := -1
		for repeat := 1; repeat <= p.experiment.Repeats; repeat++ {
			for i := range p.longest {
				for _, g := range p.strata {
					if i >= len(g.tasks) {
						continue
					}
					if place++; want(place) && !yield(assay.NewTrial(g.of(model), g.tasks[i], set, p.experiment.Seed, repeat)) {
						return
					}
				}
			}
		}
	}
}
