package workflow

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Fair returns the success of an episode without its luck (see [policy.Policy.Fair]), and the best
// policy's chance of success, which it does not exceed. Without a known plan, both are as luck had
// it: the success, and 1.
func Fair(
	catalog *assay.Catalog, trial *assay.Trial, task *assay.Task, tr *assay.Transcript, success bool,
) (fair, best float64) {
	planned, known := Planned(trial.World, task)
	if !known {
		if success {
			return 1, 1
		}
		return 0, 1
	}
	problem := ProblemOf(trial, planned)
	p := Solve(catalog, problem)
	best = p.Success()
	if d := world.Of(trial.World); d.Trace != nil {
		marked := d.Trace(catalog, task, tr).Calls
		fair = anyOrder(catalog, problem, tr.Calls, success, func(i int) bool { return marked[i].Placed })
	} else {
		fair = p.Fair(callsOf(tr.Calls), success)
	}
	return min(fair, best), best // they may differ by rounding
}

// anyOrder is like [policy.Policy.Fair] in a world without memory, where the steps of a plan cost
// the same in any order. Placed reports whether a call is one of a step.
func anyOrder(
	catalog *assay.Catalog, problem Problem, calls []assay.CallRecord, success bool,
	placed func(int) bool,
) float64 {
	problem.Required = slices.Clone(problem.Required)
	fair := Solve(catalog, problem).Success()
	for i, c := range callsOf(calls) {
		if k := slices.Index(problem.Required, c.Tool); k >= 0 && placed(i) { // it comes first
			problem.Required = slices.Insert(slices.Delete(problem.Required, k, k+1), 0, c.Tool)
		} else {
			c.Idle = true // it costs a call
		}
		p := Solve(catalog, problem)
		fair += p.Fair([]Call{c}, true) - p.Success()
		if problem.Calls = max(0, problem.Calls-1); c.OK && !c.Idle {
			problem.Required = problem.Required[1:]
		}
		if c.Down {
			problem.Out = append(problem.Out, c.Tool)
		}
	}
	if !success {
		fair -= Solve(catalog, problem).Success()
	}
	return fair
}

func callsOf(records []assay.CallRecord) []Call {
	calls := make([]Call, len(records))
	first := spec.Planted(records)
	for i := range records {
		r := &records[i]
		calls[i] = Call{
			Tool: r.Tool, OK: r.Happened(), Fault: r.Met() != "", Mistake: r.Mistake, Chance: r.Chance,
			Down: r.Met().Rule().Permanent, Wait: r.Wait, Out: first[i] >= 0 && first[i] < i,
		}
	}
	return calls
}
