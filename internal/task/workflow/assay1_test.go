//go:build !race

package workflow_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// TestPlainAssay1IsBinomial checks that without persistence and burst, only the number of
// successful calls matters.
func TestPlainAssay1IsBinomial(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		catalog := anyCatalog(t, 8)
		p := anyProblem(t, catalog)
		p.World, p.Persistence, p.Burst = world.Assay1Name, 0, 0
		p.Calls = rapid.IntRange(0, 20).Draw(t, "more calls")
		seq := policy.Sequence(catalog, p.Required)
		policy := workflow.Solve(catalog, p)
		want := atLeast(len(seq), p.Calls, p.Reliability)
		if got := policy.Success(); math.Abs(got-want) > 1e-9 {
			t.Errorf("success = %v, want %v", got, want)
		}
		if got, want := policy.Linear(), seq[:min(len(seq), p.Calls)]; !slices.Equal(got, want) {
			t.Errorf("the linear plan is %v, want %v", got, want)
		}
	})
}

// atLeast returns the probability of at least k successes in n tries.
func atLeast(k, n int, p float64) float64 {
	// dist holds the probability of each number of successes below k.
	dist := make([]float64, k+1)
	dist[0] = 1
	for range n {
		for i := k; i >= 0; i-- {
			stay := 1 - p
			if i == k {
				stay = 1
			}
			dist[i] *= stay
			if i > 0 {
				dist[i] += p * dist[i-1]
			}
		}
	}
	return dist[k]
}

// TestAssay1IsOptimal compares the policy with the best that any choice of calls can reach by the
// world's rules: from the start, along the policy's own path and, unless failures both last and
// cluster, after arbitrary calls.
func TestAssay1IsOptimal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		catalog := anyCatalog(t, 4)
		p := anyProblem(t, catalog)
		p.World, p.Required = world.Assay1Name, p.Required[:min(3, len(p.Required))]
		policy := workflow.Solve(catalog, p)
		r := referee{catalog, p, make(map[string]float64)}
		s := standing{left: p.Calls}
		if got, want := policy.Success(), r.best(s); math.Abs(got-want) > 1e-9 {
			t.Errorf("success = %v, want %v", got, want)
		}
		var history []workflow.Call
		for range min(p.Calls, rapid.IntRange(0, 5).Draw(t, "made")) {
			tool := policy.Next(history)
			if p.Persistence == 0 || p.Burst == 0 {
				tool = rapid.SampledFrom(r.callable(s)).Draw(t, "tool")
			}
			if tool == "" {
				break
			}
			ok := rapid.Bool().Draw(t, "ok")
			s = s.after(tool, ok)
			history = append(history, workflow.Call{Tool: tool, OK: ok})
		}
		want := r.best(s)
		if next := policy.Next(history); next != "" {
			if got := r.value(s, next); math.Abs(got-want) > 1e-9 {
				t.Errorf("after %v the policy's call of %s has value %v, want %v",
					history, next, got, want)
			}
		} else if want > 0 && want < 1 {
			t.Errorf("after %v the policy stops, want value %v", history, want)
		}
	})
}

// TestFailuresEnd checks that after a success, a tool's earlier failures no longer matter.
func TestFailuresEnd(t *testing.T) {
	t.Parallel()
	for _, p := range []workflow.Problem{
		{Persistence: .5},
		{Burst: .5},
		{Persistence: .5, Burst: .5},
	} {
		p.World, p.Required, p.Reliability, p.Calls = world.Assay1Name, []string{"b", "a", "d"}, .7, 7
		r := referee{chain(), p, make(map[string]float64)}
		got, want := workflow.Solve(chain(), p).Success(), r.best(standing{left: p.Calls})
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("persistence %v, burst %v: success = %v, want %v",
				p.Persistence, p.Burst, got, want)
		}
	}
}

// referee does not plan. It tries every call that is not a mistake.
type referee struct {
	catalog *assay.Catalog
	problem workflow.Problem
	known   map[string]float64
}

// standing is the state that an episode's chances depend on.
type standing struct {
	worked  []string // in order
	failed  []string // tools whose latest call failed, by name
	cluster bool     // the latest call failed
	left    int
}

func (s standing) after(tool string, ok bool) standing {
	isTool := func(name string) bool { return name == tool }
	failed := slices.DeleteFunc(slices.Clone(s.failed), isTool)
	if ok {
		return standing{append(slices.Clone(s.worked), tool), failed, false, s.left - 1}
	}
	return standing{s.worked, slices.Sorted(slices.Values(append(failed, tool))), true, s.left - 1}
}

func (r *referee) callable(s standing) []string {
	var names []string
	for _, tool := range r.catalog.All() {
		missing := func(d string) bool { return !slices.Contains(s.worked, d) }
		if !slices.ContainsFunc(tool.Dependencies, missing) {
			names = append(names, tool.Name)
		}
	}
	return names
}

// best returns the maximum probability of full success.
func (r *referee) best(s standing) float64 {
	if inOrder(r.problem.Required, s.worked) {
		return 1
	}
	if s.left == 0 {
		return 0
	}
	key := fmt.Sprint(s)
	best, ok := r.known[key]
	if !ok {
		for _, tool := range r.callable(s) {
			best = max(best, r.value(s, tool))
		}
		r.known[key] = best
	}
	return best
}

// value returns the probability of full success if a tool is called first.
func (r *referee) value(s standing, tool string) float64 {
	set := assay.Setting{Persistence: r.problem.Persistence, Burst: r.problem.Burst}
	chance := assay1.Chance(set, r.problem.Reliability, slices.Contains(s.failed, tool), s.cluster)
	return chance*r.best(s.after(tool, true)) + (1-chance)*r.best(s.after(tool, false))
}
