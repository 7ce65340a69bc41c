package plan

import (
	"context"

	"github.com/assay-eval/assay"
)

// Drawn visits the tasks that the experiment draws from a library, including those to which a
// flawed variant does not apply. [Experiment.Expand] finds the same trials in a library with these
// tasks only.
func (e *Experiment) Drawn(
	ctx context.Context, refs Refs, visit func(difficulty string, task assay.TaskRef),
) error {
	x := expansion{experiment: e, refs: refs}
	if err := x.allotAll(ctx); err != nil {
		return err
	}
	most := make(map[*draw]int)
	for _, a := range x.allotments {
		most[a.draw] = max(most[a.draw], a.tasks)
	}
	for _, d := range x.draws {
		for _, task := range d.tasks[:most[d]] {
			visit(d.difficulty, task)
		}
	}
	return nil
}
