package validate

import (
	"context"
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// room returns limits of an episode that leave room for twice the calls of a task's plan, and for an
// answer to each message of its user. Others wrote these tasks, some of them longer than usual.
func room(task *assay.Task, calls, turns int) (int, int) {
	if task.Reference == nil || len(task.Reference.Calls) == 0 {
		return calls, turns
	}
	plan := task.Reference.Calls
	calls = max(calls, 2*len(plan))
	const unplanned = 5 // messages of the user after the last call
	return calls, max(turns, calls+plan[len(plan)-1].Turn+unplanned)
}

// playTwice plays the task twice with the same seed, with its plan if it has one, and compares the
// answers of its tools and the verdicts.
func (v *taskPlayer) playTwice(ctx context.Context) {
	cell := cellOf(sim.Optimal, assay.Optimal, Reliability)
	if v.task.Reference == nil {
		cell = cellOf(sim.Claimer, assay.Baseline, Reliability)
	}
	trial := v.trial(cell, assay.Listed, 0)
	first, before := v.runner.Run(ctx, v.models, &trial, v.task)
	second, after := v.runner.Run(ctx, v.models, &trial, v.task)
	if first.FaultKind != "" || second.FaultKind != "" {
		return // a doubt of its own
	}
	if first.Level != second.Level {
		v.doubt(PlayedTwice, fmt.Sprintf("first %s, then %s", first.Level, second.Level))
		return
	}
	for i := range before.Calls {
		if i >= len(after.Calls) || before.Calls[i].Output != after.Calls[i].Output {
			v.doubt(PlayedTwice, fmt.Sprintf("call %d of %s has another answer", i+1, before.Calls[i].Tool))
			return
		}
	}
}
