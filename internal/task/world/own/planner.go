package own

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// rules are this world's rules for a policy: it makes the calls of the reference plan in order, and
// each of them until it succeeds.
type rules struct {
	work    policy.Work
	chances []float64
	spared  []float64 // shares of faults at which a call happens
}

func planner(catalog *assay.Catalog, problem policy.Problem) (policy.Work, policy.Rules) {
	w := policy.NewWork(catalog, problem.Required, policy.Distinct(problem.Required))
	r := &rules{work: w}
	for _, part := range w.Tools {
		tool, _ := catalog.Tool(part.Name)
		r.chances = append(r.chances, reliabilityOf(tool, problem.Reliability))
		spared := problem.Spared
		if mix, err := assay.ParseFaultMix(tool.Faults); err == nil && len(mix) > 0 {
			spared = mix.Happens()
		}
		r.spared = append(r.spared, spared)
	}
	return w, r
}

// Worth implements [policy.Rules].
func (r *rules) Worth(s policy.State) policy.Set {
	if next := r.work.Next(s); next >= 0 {
		return policy.Only(next)
	}
	return 0
}

// Chance implements [policy.Rules].
func (r *rules) Chance(_ policy.State, tool int) float64 { return r.chances[tool] }

// Spared returns the share of a tool's faults at which a call happens nevertheless.
func (r *rules) Spared(tool int) float64 { return r.spared[tool] }

// Remember implements [policy.Rules].
func (r *rules) Remember(s policy.State, _ int, _ bool) policy.State { return s }

// Stopped implements [policy.Rules].
func (r *rules) Stopped(policy.State) bool { return false }
