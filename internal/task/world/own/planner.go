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
	down    []float64 // and of those after which the tool always fails
}

func planner(catalog *assay.Catalog, problem policy.Problem) (policy.Work, policy.Rules) {
	w := policy.NewWork(catalog, problem.Required, policy.Distinct(problem.Required))
	r := &rules{work: w}
	for _, part := range w.Tools {
		tool, _ := catalog.Tool(part.Name)
		r.chances = append(r.chances, reliabilityOf(tool, problem.Reliability))
		spared, down := problem.Spared, problem.Down
		if mix, err := assay.ParseFaultMix(tool.Faults); err == nil && len(mix) > 0 {
			spared, down = mix.Happens(), mix.That(permanent)
		}
		r.spared, r.down = append(r.spared, spared), append(r.down, down)
	}
	return w, r
}

func permanent(r assay.ToolFaultRule) bool { return r.Permanent }

// Worth implements [policy.Rules]. No call is worth it if one of the plan's tools is down.
func (r *rules) Worth(s policy.State) policy.Set {
	for _, tool := range r.work.Required[s.Done:] {
		if s.Down.Has(tool) {
			return 0
		}
	}
	if next := r.work.Next(s); next >= 0 {
		return policy.Only(next)
	}
	return 0
}

// Chance implements [policy.Rules].
func (r *rules) Chance(_ policy.State, tool int) float64 { return r.chances[tool] }

// Shares returns the share of a tool's faults at which a call happens nevertheless, and of those after
// which the tool always fails.
func (r *rules) Shares(tool int) (spared, down float64) { return r.spared[tool], r.down[tool] }

// Remember implements [policy.Rules]. Other steps may be possible while a tool takes no calls, so that
// nobody knows what a wait costs. It costs nothing here.
func (r *rules) Remember(s policy.State, _ int, _ bool) policy.State {
	s.Waits = [policy.LongestWait]policy.Set{}
	return s
}

// Stopped implements [policy.Rules].
func (r *rules) Stopped(policy.State) bool { return false }
