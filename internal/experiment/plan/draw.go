package plan

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A draw is a library's tasks of one type and difficulty in an order that
// depends on the seed. Every cell takes tasks from its start. The order depends
// only on the seed and the task IDs, so it is the same for all difficulties.
type draw struct {
	taskType, difficulty string
	tasks                []assay.TaskRef
	// flawed holds one entry per flawed variant and severity, in the order of
	// the first reserve.
	flawed []*flawedDraw
}

// A flawedDraw is a draw without the tasks to which a flawed variant does not
// apply at a severity.
type flawedDraw struct {
	variant, severity string

	most int             // tasks of the draw that a cell considers
	kept []assay.TaskRef // the tasks among them to which the flaw applies
	upTo []int           // upTo[n] of the first n tasks are kept
}

func (e *Experiment) draw(ctx context.Context, refs Refs, taskType, difficulty string) (*draw,
	error,
) {
	tasks, err := refs(ctx, taskType, difficulty)
	if err != nil {
		return nil, err
	}
	type keyed struct {
		key [sha256.Size]byte
		ref assay.TaskRef
	}
	order := make([]keyed, len(tasks))
	for i, r := range tasks {
		order[i] = keyed{sha256.Sum256(fmt.Appendf(nil, "assay sample 1\x00%d\x00%s", e.Seed,
			r.ID)), r}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		return cmp.Or(
			bytes.Compare(a.key[:], b.key[:]),
			strings.Compare(string(a.ref.ID), string(b.ref.ID)),
		)
	})
	d := &draw{taskType: taskType, difficulty: difficulty, tasks: make([]assay.TaskRef, len(order))}
	for i := range order {
		d.tasks[i] = order[i].ref
	}
	return d, nil
}

// count returns the number of tasks that a cell of part i takes. An error
// points at the field of the part, or at the experiment's if the part does not
// set it.
func (d *draw) count(e *Experiment, i int, want Count) (int, error) {
	field := func(name string) string {
		if at := fmt.Sprintf("parts[%d].%s", i, name); e.has(at) {
			return at
		}
		return name
	}
	n, kind := len(d.tasks), fmt.Sprintf("type %s and difficulty %s", d.taskType, d.difficulty)
	switch {
	case n == 0:
		return 0, assay.WithHint(e.FieldError(field("task_types"),
			fmt.Sprintf("library %s has no tasks of %s", e.Library, kind), ""), assay.HintLevels)
	case want == AllTasks:
		return n, nil
	case int(want) > n:
		return 0, e.FieldError(field("tasks_per_type"),
			fmt.Sprintf("library %s has %d tasks of %s, fewer than %d", e.Library, n, kind, want),
			"write tasks_per_type: all to use every task, or set repeats to run each task more "+
				"often")
	}
	return int(want), nil
}

// find returns the entry of a flawed variant at a severity, or nil if no tasks were reserved for
// it.
func (d *draw) find(variant, severity string) *flawedDraw {
	for _, f := range d.flawed {
		if f.variant == variant && f.severity == severity {
			return f
		}
	}
	return nil
}

// reserve notes that a cell of a conditional variant takes n tasks.
func (d *draw) reserve(variant, severity string, n int) {
	f := d.find(variant, severity)
	if f == nil {
		f = &flawedDraw{variant: variant, severity: severity}
		d.flawed = append(d.flawed, f)
	}
	f.most = max(f.most, n)
}

// findApplicable finds the tasks to which the flawed variants apply. It asks
// for all variants and severities of a task in a row, so that applies can cache
// the task.
func (d *draw) findApplicable(ctx context.Context, applies Applies) error {
	for i, task := range d.tasks {
		for _, f := range d.flawed {
			if i >= f.most {
				continue
			}
			ok := true
			if applies != nil {
				var err error
				if ok, err = applies(ctx, task, d.difficulty, f.variant, f.severity); err != nil {
					return err
				}
			}
			f.upTo = append(f.upTo, len(f.kept))
			if ok {
				f.kept = append(f.kept, task)
			}
		}
	}
	for _, f := range d.flawed {
		f.upTo = append(f.upTo, len(f.kept))
	}
	return nil
}

// take returns the tasks among the first n to which the variant applies at a
// severity.
func (d *draw) take(variant, severity string, n int) []assay.TaskRef {
	if f := d.find(variant, severity); f != nil {
		return f.kept[:f.upTo[n]]
	}
	return d.tasks[:n]
}
