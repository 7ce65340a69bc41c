// Package workflow makes plans: the exact best policy for a task in a world
// whose chances are known, and the linear plan that is shown to a model.
//
// It does not execute anything and does not word prompts.
package workflow

import (
	"math"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/world"
)

// A Problem is what a policy is solved for: a task's required tools in the
// pilot world.
type Problem struct {
	Required    []string
	Reliability float64
	// Calls is how many calls can be made at most.
	Calls int
	// InOrder forbids to insert dependencies that are not required: the
	// policy then is to run the required tools in order and to retry.
	InOrder bool
	// NoEarlyStop leaves out the rule that five failed calls in a row end
	// the episode.
	NoEarlyStop bool
}

// A Policy is the exact solution of a [Problem]: finite-horizon dynamic
// programming over (required tools done, inserted dependencies done, outcomes
// of the last calls, calls left). Its actions are the
// next required tool, or a dependency that is not required, so that a success
// never breaks the required order. It is not safe for concurrent use.
type Policy struct {
	problem Problem
	extra   []string // insertable dependencies, by name
	// needs holds for each action (required tools, then extra) its
	// dependencies as action numbers; -1 is one that can never be ready.
	needs [][]int
	value []float64 // by state; NaN until solved
	best  []int16   // by state
}

// state determines the distribution of all that follows.
type state struct {
	done  int // required tools that have succeeded: a prefix
	extra int // bit set of inserted dependencies that have succeeded
	// recent holds the last outcomes, newest in the lowest bit, below a
	// leading one: 1 before any call, 8 after three failures. A fourth failure
	// in a row gives fourFailed, a fifth ended, where that rule holds.
	recent int
	left   int // calls left
}

const (
	threeFailed = 8
	fourFailed  = 0
	recents     = 16
	ended       = recents
)

// maxExtra bounds the bit set. The deepest chain of the known tools has four.
const maxExtra = 10

// Solve returns the policy for a problem. It is cheap: below a millisecond for
// the tasks of the known libraries.
func Solve(catalog *assay.Catalog, problem Problem) *Policy {
	p := &Policy{problem: problem}
	if !problem.InOrder {
		p.extra = Missing(catalog, problem.Required)
		p.extra = p.extra[:min(len(p.extra), maxExtra)]
	}
	actions := slices.Concat(problem.Required, p.extra)
	for _, a := range actions {
		tool, _ := catalog.Tool(a)
		var needs []int
		for _, d := range tool.Dependencies {
			needs = append(needs, slices.Index(actions, d))
		}
		p.needs = append(p.needs, needs)
	}
	n := (len(problem.Required) + 1) << len(p.extra) * recents * (problem.Calls + 1)
	p.value = make([]float64, n)
	for i := range p.value {
		p.value[i] = math.NaN()
	}
	p.best = make([]int16, n)
	return p
}

// Success is the probability of full success from the start.
func (p *Policy) Success() float64 { return p.solve(p.start()) }

// Next returns the tool to call after the given calls, or "" when all required
// tools have succeeded or no call is left. Calls of tools outside the policy
// count as history only.
func (p *Policy) Next(calls []Call) string {
	s := p.start()
	for _, c := range calls {
		s = p.after(s, p.action(s, c.Tool), c.OK)
	}
	if p.over(s) {
		return ""
	}
	p.solve(s)
	if a := int(p.best[p.index(s)]); a < len(p.problem.Required) {
		return p.problem.Required[a]
	} else {
		return p.extra[a-len(p.problem.Required)]
	}
}

// Size is about how many bytes the policy holds.
func (p *Policy) Size() int { return 10 * len(p.value) }

// A Call is one executed call, as a policy sees it.
type Call struct {
	Tool string
	OK   bool
}

func (p *Policy) start() state { return state{recent: 1, left: p.problem.Calls} }

func (p *Policy) over(s state) bool {
	return s.done == len(p.problem.Required) || s.left <= 0 || s.recent == ended
}

// action returns the action number of a tool, -1 where it has no effect but
// its place in the history.
func (p *Policy) action(s state, tool string) int {
	if s.done < len(p.problem.Required) && p.problem.Required[s.done] == tool {
		return s.done
	}
	if i := slices.Index(p.extra, tool); i >= 0 {
		return len(p.problem.Required) + i
	}
	return -1
}

// after returns the state that follows when an action was called.
func (p *Policy) after(s state, action int, ok bool) state {
	s.left = max(0, s.left-1)
	if !ok {
		s.recent = p.afterFailure(s.recent)
		return s
	}
	s.recent = afterSuccess(s.recent)
	switch {
	case action < 0:
	case action < len(p.problem.Required):
		s.done++
	default:
		s.extra |= 1 << (action - len(p.problem.Required))
	}
	return s
}

// afterFailure and afterSuccess move the last outcomes on. Five failures in a
// row are what world.PilotFailureStreak says.
func (p *Policy) afterFailure(recent int) int {
	switch {
	case p.problem.NoEarlyStop || recent != threeFailed && recent != fourFailed:
		return lastThree(recent << 1)
	case recent == threeFailed:
		return fourFailed
	}
	return ended
}

func afterSuccess(recent int) int {
	if recent == fourFailed {
		recent = threeFailed
	}
	return lastThree(recent<<1 | 1)
}

// lastThree keeps three outcomes below the leading one.
func lastThree(recent int) int {
	if recent < recents {
		return recent
	}
	return recent&(recents/2-1) | recents/2
}

func (p *Policy) index(s state) int {
	i := s.done<<len(p.extra) | s.extra
	return (i*recents+s.recent)*(p.problem.Calls+1) + s.left
}

// solve returns the value of a state and notes its best action. Of equal
// actions the first wins, and the required tool comes first.
func (p *Policy) solve(s state) float64 {
	if s.done == len(p.problem.Required) {
		return 1
	}
	if p.over(s) {
		return 0
	}
	i := p.index(s)
	if v := p.value[i]; !math.IsNaN(v) {
		return v
	}
	best, bestAction := -1.0, 0
	try := func(action int) {
		chance := p.chance(s, action)
		v := chance*p.solve(p.after(s, action, true)) + (1-chance)*p.solve(p.after(s, action, false))
		if v > best+1e-12 {
			best, bestAction = v, action
		}
	}
	try(s.done)
	for e := range p.extra {
		if s.extra&(1<<e) == 0 {
			try(len(p.problem.Required) + e)
		}
	}
	p.value[i], p.best[i] = best, int16(bestAction)
	return best
}

func (p *Policy) chance(s state, action int) float64 {
	deps := make([]world.Dependency, len(p.needs[action]))
	for i, need := range p.needs[action] {
		if !p.ready(s, need) {
			deps[i] = world.Missing
		}
	}
	var recent []bool
	if r := s.recent; r >= recents/2 || r == fourFailed {
		recent = []bool{r&4 != 0, r&2 != 0, r&1 != 0}
	}
	return world.PilotChance(p.problem.Reliability, deps, recent)
}

func (p *Policy) ready(s state, need int) bool {
	switch n := len(p.problem.Required); {
	case need < 0:
		return false
	case need < n:
		return need < s.done
	default:
		return s.extra&(1<<(need-n)) != 0
	}
}

// Missing returns, by name, the tools that the required ones depend on,
// directly or through others, and that are not required themselves.
func Missing(catalog *assay.Catalog, required []string) []string {
	var missing []string
	todo := slices.Clone(required)
	for len(todo) > 0 {
		tool, _ := catalog.Tool(todo[0])
		todo = todo[1:]
		for _, d := range tool.Dependencies {
			if !slices.Contains(required, d) && !slices.Contains(missing, d) {
				missing = append(missing, d)
				todo = append(todo, d)
			}
		}
	}
	slices.Sort(missing)
	return missing
}
