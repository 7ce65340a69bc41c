// Package workflow makes plans: the exact best policy for a task in a world
// whose chances are known, the linear plan that is shown to a model, and plans
// with a known flaw.
//
// It does not execute anything and does not word prompts.
package workflow

import (
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// A Problem is what a policy is solved for: a task's required tools in a
// world, and how many calls there are for them.
type Problem struct {
	// World is the name of the world; empty for the pilot world.
	World string
	// Required are the tools that have to succeed, in this order.
	Required    []string
	Reliability float64
	// Persistence and Burst make failures last and cluster in assay-1.
	Persistence, Burst float64
	// Calls is how many calls can be made at most.
	Calls int
	// InOrder forbids, in the pilot world, to insert dependencies that are not
	// required: the policy then is to run the required tools in order and to
	// retry.
	InOrder bool
	// NoEarlyStop leaves out the pilot world's rule that five failed calls in
	// a row end the episode.
	NoEarlyStop bool
}

// A Call is one executed call, as a policy sees it.
type Call struct {
	Tool string
	OK   bool
	// Mistake says that the world refused the call: it took its place among
	// the calls and changed nothing else.
	Mistake bool
}

// A Policy is the exact solution of a [Problem]: finite-horizon dynamic
// programming over the true chances. It is not safe for concurrent use.
type Policy struct {
	work
	rules  rules
	calls  int
	solved map[state]node
}

// state determines the distribution of all that follows.
type state struct {
	left   uint32 // calls left
	done   uint16 // required tools that have succeeded in their order
	recent uint16 // how the latest calls went, as the rules remember it
	have   set    // tools that have succeeded, among those that others depend on
	failed set    // tools whose latest call failed, where that matters
}

// node is what a state is worth under the best policy.
type node struct {
	success float64 // probability of full success
	calls   float64 // expected number of calls from here on
	best    int     // the tool to call, none where it is over
}

// What stands for a tool where there is none.
const (
	none     = -1
	finished = -2 // all required tools are done
)

// rules are what sets a world apart for a policy. Tools are numbers, none for
// one that has no part in the work.
type rules interface {
	// worth returns the tools among which a best policy chooses in a state.
	worth(s state) set
	// chance is that of a call that is worth making.
	chance(s state, tool int) float64
	// remember returns a state with the outcome of the latest call in its
	// memory.
	remember(s state, tool int, ok bool) state
	// stopped reports whether the calls so far have ended the episode.
	stopped(s state) bool
}

// Solve returns the policy for a problem. A task that takes more than 64
// different tools is beyond it: it has no success.
func Solve(catalog *assay.Catalog, problem Problem) *Policy {
	p := &Policy{calls: max(0, problem.Calls), solved: make(map[state]node)}
	switch problem.World {
	case "", world.PilotName:
		p.work, p.rules = pilotProblem(catalog, problem)
	case world.Assay1Name:
		p.work, p.rules = assay1Problem(catalog, problem)
	default:
		panic(fmt.Sprintf("workflow: no world is named %q", problem.World))
	}
	p.solve(p.start())
	return p
}

// Success is the probability of full success from the start.
func (p *Policy) Success() float64 { return p.solve(p.start()).success }

// Expected is the expected number of calls that the policy makes until it is
// done, is stopped, or has no call left.
func (p *Policy) Expected() float64 { return p.solve(p.start()).calls }

// Next returns the tool to call after the given calls, or "" when all required
// tools have succeeded, no call is left, or none is of use. Calls of tools that
// have no part in the work count as history only.
func (p *Policy) Next(calls []Call) string {
	s := p.start()
	for _, c := range calls {
		if c.Mistake {
			s.left = max(s.left, 1) - 1
		} else {
			s = p.after(s, p.number(c.Tool), c.OK)
		}
	}
	return p.name(p.solve(s).best)
}

// Linear returns the tools that the policy calls when every call works.
func (p *Policy) Linear() []string {
	var names []string
	s := p.start()
	for n := p.solve(s); n.best != none; n = p.solve(s) {
		names = append(names, p.name(n.best))
		s = p.after(s, n.best, true)
	}
	return names
}

// Size is about how many bytes the policy holds.
func (p *Policy) Size() int { return 80*len(p.solved) + 1024 }

func (p *Policy) start() state { return state{left: uint32(p.calls)} }

// after returns the state that follows when a tool was called.
func (p *Policy) after(s state, tool int, ok bool) state {
	if tool != none && ok {
		if tool == p.next(s) {
			s.done++
		}
		s.have |= only(tool) & p.matters
	}
	s = p.rules.remember(s, tool, ok)
	s.left = max(s.left, 1) - 1
	return s
}

// solve returns what a state is worth. Of equal tools the first wins.
func (p *Policy) solve(s state) node {
	next := p.next(s)
	switch {
	case next == finished:
		return node{success: 1, best: none}
	case s.left == 0 || p.rules.stopped(s):
		return node{best: none}
	}
	if n, ok := p.solved[s]; ok {
		return n
	}
	best := node{success: -1, best: none}
	worth := p.rules.worth(s)
	if worth.has(next) {
		best = p.try(s, next)
		worth &^= only(next)
	}
	for tool := range worth.all {
		if n := p.try(s, tool); n.success > best.success+1e-12 {
			best = n
		}
	}
	best.success = max(0, best.success)
	p.solved[s] = best
	return best
}

// try returns what a state is worth when a tool is called in it first.
func (p *Policy) try(s state, tool int) node {
	chance := p.rules.chance(s, tool)
	n := node{calls: 1, best: tool}
	follow := func(chance float64, ok bool) {
		if chance > 0 {
			then := p.solve(p.after(s, tool, ok))
			n.success += chance * then.success
			n.calls += chance * then.calls
		}
	}
	follow(chance, true)
	follow(1-chance, false)
	return n
}
