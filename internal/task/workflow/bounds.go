package workflow

import (
	"fmt"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world"
)

// The solver's types, for callers that plan in a world.
type (
	Problem = policy.Problem
	Policy  = policy.Policy
	Call    = policy.Call
)

// Solve returns the best policy for a problem in its world.
func Solve(catalog *assay.Catalog, problem Problem) *Policy {
	return policy.Solve(catalog, problem, world.Of(problem.World).Planner)
}

// Bounds remembers the probability of full success under the best policy. Tasks with equal
// problems share it. It is safe for concurrent use.
type Bounds struct {
	catalog *assay.Catalog
	known   *lru.Cache[string, float64] // by problem
}

// maxKnown limits the memory to a few megabytes.
const maxKnown = 1 << 15

// NewBounds returns the bounds for tasks over a catalog.
func NewBounds(catalog *assay.Catalog) *Bounds {
	known, err := lru.New[string, float64](maxKnown)
	if err != nil {
		panic("workflow: " + err.Error()) // the size is positive
	}
	return &Bounds{catalog, known}
}

// Best returns the best policy's probability of full success in a trial of a task with these
// required tools, by the rules of the trial's world.
func (b *Bounds) Best(trial *assay.Trial, required []string) float64 {
	problem := ProblemOf(trial, required)
	key := fmt.Sprintf("%q %v", problem.Required, problem)
	p, known := b.known.Get(key)
	if !known {
		p = Solve(b.catalog, problem).Success()
		b.known.Add(key, p)
	}
	return p
}

// BestKnown reports whether [assay.Outcome.Best] is the best policy's chance at a trial: a plan for
// its task is known, and [Exact] holds for it.
func BestKnown(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) bool {
	planned, known := Planned(trial.World, task)
	return known && Exact(catalog, trial, planned)
}

// Exact reports whether [Bounds.Best] is the best policy's chance, and not only an upper limit: the
// trial's setting has no limits that the policy does not know, and answers say what has happened.
func Exact(catalog *assay.Catalog, trial *assay.Trial, planned []string) bool {
	hidden := world.Of(trial.World).Hidden
	return !trial.LimitsBest() && (hidden == nil || !hidden(catalog, trial, planned))
}

// ProblemOf returns the problem that a trial poses. Its calls are the trial's budget, so its best
// policy makes them one at a time: each call can depend on all earlier results, and no policy that
// knows less at a call does better. A trial without a budget is limited by its replies, with one
// call in each; if the world requires a separate reply to claim completion, one is reserved for it.
func ProblemOf(trial *assay.Trial, required []string) Problem {
	d := world.Of(trial.World)
	p := Problem{
		World: d.Name, Required: required, Reliability: trial.Reliability,
		Calls: trial.Calls,
	}
	if p.Calls == 0 {
		p.Calls = trial.Setting.Turns
		if d.ClaimTakesReply {
			p.Calls = max(0, p.Calls-1)
		}
	}
	if d.FailuresLast {
		p.Persistence, p.Burst = trial.Persistence, trial.Burst
	}
	if mix, err := assay.ParseFaultMix(trial.Faults); d.FaultKinds && err == nil {
		p.Spared = mix.Happens()
		p.Down = mix.That(func(r assay.ToolFaultRule) bool { return r.Permanent })
		if !d.OwnTools { // there, the planner does not count waits
			p.Throttled = mix.That(func(r assay.ToolFaultRule) bool { return r.Waits })
		}
	}
	return p
}
