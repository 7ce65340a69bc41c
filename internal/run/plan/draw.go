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

// A draw is a library's tasks of one type and difficulty in the order that the
// seed decides, of which every cell takes the first. The order depends on the
// tasks' IDs alone, so that it is the same for all difficulties.
type draw struct {
	taskType, difficulty string
	tasks                []assay.TaskRef
	// flawed holds what cells take of flawed variants, in the order in which
	// they asked.
	flawed []*flawedDraw
}

// A flawedDraw is a draw without the tasks to which a variant does not apply.
type flawedDraw struct {
	variant string
	most    int             // tasks of the draw that a cell takes
	kept    []assay.TaskRef // those of them to which the variant applies
	upTo    []int           // how many of the first n tasks are kept, by n
}

func (e *Experiment) draw(ctx context.Context, refs Refs, taskType, difficulty string) (*draw, error) {
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
		order[i] = keyed{sha256.Sum256(fmt.Appendf(nil, "assay sample 1\x00%d\x00%s", e.Seed, r.ID)), r}
	}
	slices.SortFunc(order, func(a, b keyed) int {
		return cmp.Or(bytes.Compare(a.key[:], b.key[:]), strings.Compare(string(a.ref.ID), string(b.ref.ID)))
	})
	d := &draw{taskType: taskType, difficulty: difficulty, tasks: make([]assay.TaskRef, len(order))}
	for i := range order {
		d.tasks[i] = order[i].ref
	}
	return d, nil
}

// count returns how many tasks a cell of part i takes. An error is at the
// field of the part, or of the experiment where the part leaves it out.
func (d *draw) count(e *Experiment, i int, want Count) (int, error) {
	field := func(name string) string {
		if at := fmt.Sprintf("parts[%d].%s", i, name); e.has(at) {
			return at
		}
		return name
	}
	switch n := len(d.tasks); {
	case n == 0:
		return 0, e.FieldError(field("task_types"), fmt.Sprintf("library %s has no task of type %s and difficulty %s", e.Library, d.taskType, d.difficulty),
			"`assay library inspect` shows what it has")
	case want == AllTasks:
		return n, nil
	case int(want) > n:
		return 0, e.FieldError(field("tasks_per_type"), fmt.Sprintf("library %s has %d tasks of type %s and difficulty %s, fewer than %d",
			e.Library, n, d.taskType, d.difficulty, want), "write `tasks_per_type: all` for every task, or `repeats:` for more trials a task")
	}
	return int(want), nil
}

// of returns what cells take of a flawed variant, nil if none has asked.
func (d *draw) of(variant string) *flawedDraw {
	for _, f := range d.flawed {
		if f.variant == variant {
			return f
		}
	}
	return nil
}

// reserve says that a cell of the variant takes n tasks.
func (d *draw) reserve(variant string, n int) {
	if !flawed(variant) {
		return
	}
	f := d.of(variant)
	if f == nil {
		f = &flawedDraw{variant: variant}
		d.flawed = append(d.flawed, f)
	}
	f.most = max(f.most, n)
}

// sift finds the tasks to which flawed variants apply. All variants of a task
// are asked for in a row, so that who answers can keep the task.
func (d *draw) sift(ctx context.Context, applies Applies) error {
	for i, task := range d.tasks {
		for _, f := range d.flawed {
			if i >= f.most {
				continue
			}
			ok := true
			if applies != nil {
				var err error
				if ok, err = applies(ctx, task, d.difficulty, f.variant); err != nil {
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

// take returns those of the first n tasks to which a variant applies.
func (d *draw) take(variant string, n int) []assay.TaskRef {
	if f := d.of(variant); f != nil {
		return f.kept[:f.upTo[n]]
	}
	return d.tasks[:n]
}
