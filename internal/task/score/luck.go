package score

import (
	"context"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// luckless returns bad luck as the reason if there was any, and the best policy would have failed with
// the same luck, too. A model that only talked in a turn might have used it.
func (q *inquiry) luckless() Reason {
	last := -1
	for i := range q.tr.Calls {
		if c := &q.tr.Calls[i]; !c.Mistake && !c.Happened() && q.chancy(c.Tool) {
			last = i
		}
	}
	switch q.ended {
	case assay.TurnLimit:
		if slices.Contains(q.acted, false) {
			return Reason{}
		}
	case assay.CallLimit, assay.FailureStreak:
	default: // the luck did not use up tokens, dollars or time
		return Reason{}
	}
	if last < 0 || q.winnable() {
		return Reason{}
	}
	c := &q.tr.Calls[last]
	return q.at(last, assay.BadLuck, fmt.Sprintf(
		"call %d (%s) failed by chance, and with this luck the best policy fails, too", last+1, c.Tool),
		"the same, with better luck")
}

// chancy reports whether users asked for failures of a tool. The pilot world adds some more.
func (q *inquiry) chancy(name string) bool {
	tool, _ := q.catalog.Tool(name)
	return q.trial.Reliability < 1 || tool.Reliability > 0 && tool.Reliability < 1
}

// winnable reports whether the best policy completes the task's plan with the luck of the episode, or
// cannot be asked.
func (q *inquiry) winnable() bool {
	planned, known := workflow.Planned(q.trial.World, q.task)
	if !known {
		planned = q.e.Outcome.RequiredTools
	}
	if len(planned) == 0 {
		return true
	}
	problem := workflow.ProblemOf(q.trial, planned)
	d := world.Of(q.trial.World)
	if q.trial.Calls == 0 && q.tr.Ended == assay.TurnLimit {
		problem.Calls = len(q.tr.Turns)
		if d.ClaimTakesReply {
			problem.Calls--
		}
		if q.e.Outcome.Extra > 0 { // so can another policy
			problem.Calls = max(problem.Calls, len(q.tr.Calls))
		}
	}
	if d.Throws == nil {
		return q.replayed(problem)
	}
	throw, spent := d.Throws(q.catalog, q.trial), make(map[string]int)
	met := make(map[string][]assay.ToolFault) // by the episode
	for i := range q.tr.Calls {
		if c := &q.tr.Calls[i]; !c.Mistake {
			met[c.Tool] = append(met[c.Tool], c.Met())
		}
	}
	_, survives := spec.Scheduled(q.catalog, problem.Calls, d.Steps(q.catalog, planned), func(tool string) assay.ToolFault {
		fault, k := throw(tool), spent[tool]
		if spent[tool]++; k < len(met[tool]) {
			fault = met[tool][k]
		}
		return fault
	})
	return survives
}

// replayed lets the best policy act in a world without outside effects.
func (q *inquiry) replayed(problem workflow.Problem) bool {
	policy := workflow.Solve(q.catalog, problem)
	w := world.Begin(context.Background(), q.catalog, q.trial, q.task)
	var made []workflow.Call
	for range problem.Calls {
		tool := policy.Next(made)
		rec, err := w.Call(len(made)+1, tool, "")
		if err != nil {
			break
		}
		made = append(made, workflow.Call{Tool: tool, OK: rec.OK})
		if _, stopped := w.Stop(); stopped {
			break
		}
	}
	left := problem.Required
	for _, c := range made {
		if len(left) > 0 && c.OK && c.Tool == left[0] {
			left = left[1:]
		}
	}
	return len(left) == 0
}
