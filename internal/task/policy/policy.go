// Package policy solves tasks exactly: given the rules that decide whether calls succeed, it
// computes the best tool to call in every state, and the probability of full success.
//
// It does not know any world. A world describes its chances as [Rules].
package policy

import "github.com/assay-eval/assay"

// A Problem is a task's required tools in a world, and the number of calls available.
type Problem struct {
	World string
	// Required are the tools that have to succeed, in this order.
	Required    []string
	Reliability float64
	// Persistence and Burst make failures last and cluster, in worlds that know them.
	Persistence, Burst float64
	// Spared is the share of the faults at which a call happens nevertheless, in worlds that know
	// such faults. Its agent learns that it happened. Down is the share of those after which the tool
	// always fails, and Throttled of those after which it takes no calls for a while.
	Spared, Down, Throttled float64
	// Out are tools that always fail.
	Out []string
	// Calls is the maximum number of calls.
	Calls int
	// InOrder forbids inserting dependencies that are not required. The best policy then runs
	// the required tools in order and retries. Only the pilot world has this option.
	InOrder bool
	// NoEarlyStop disables the pilot world's rule that five failed calls in a row end the
	// episode.
	NoEarlyStop bool
}

// A Call is one executed call as a policy sees it.
type Call struct {
	Tool string
	OK   bool // the call happened
	// Fault marks a call that happened although it met a fault.
	Fault bool
	// Mistake marks a call that the world refused. It only uses up a call.
	Mistake bool
	// Idle marks a call that does no step of the work, although its tool has a part in it.
	Idle bool
	// Down marks a call after which its tool always fails, and Wait is the number of calls that have to
	// follow until its tool takes calls again.
	Down bool
	Wait int
	// Chance is the chance that the call met no fault. Only [Policy.Fair] uses it, and Out, which
	// means that it met one because of an earlier one.
	Chance float64
	Out    bool
}

func (c *Call) way() way {
	return way{happens: c.OK, fault: c.Fault || !c.OK, idle: c.Idle, down: c.Down, wait: c.Wait}
}

// LongestWait is the largest number of calls for which a tool takes no calls. Each number up to it is
// as likely.
const LongestWait = 3

// A Policy is the exact solution of a problem, found by finite-horizon dynamic programming over
// the true chances. It is not safe for concurrent use.
type Policy struct {
	work   Work
	rules  Rules
	calls  int
	faults shares
	out    Set
	solved map[State]stateValue
}

// State determines the distribution of everything that follows.
type State struct {
	Left   uint32 // calls left
	Done   uint16 // required tools that have succeeded in order
	Recent uint16 // how the latest calls went, in the encoding of the rules
	Have   Set    // tools that have succeeded, among those that others depend on
	Failed Set    // tools whose latest call met a fault, if the rules remember that
	Down   Set    // tools that always fail
	// Waits has the tools that take calls again after 1, 2 and 3 calls.
	Waits [LongestWait]Set
}

// Waiting returns the tools that take no calls now.
func (s *State) Waiting() (all Set) {
	for _, w := range s.Waits {
		all |= w
	}
	return all
}

// pass counts a call.
func (s *State) pass() {
	s.Left = max(s.Left, 1) - 1
	copy(s.Waits[:], s.Waits[1:])
	s.Waits[LongestWait-1] = 0
}

// stateValue is the value of a state under the best policy.
type stateValue struct {
	success float64 // probability of full success
	calls   float64 // expected number of calls from here on
	best    int     // the tool to call; None if the episode is over
}

const (
	// None stands for a tool that has no part in the work.
	None = -1
	// finished means that all required tools have succeeded.
	finished = -2
)

// Rules describe how calls go in one world. Tools are numbers, or [None] for a tool that has no
// part in the work.
type Rules interface {
	// Worth returns the tools among which a best policy chooses in a state.
	Worth(s State) Set
	// Chance returns the chance that a call that is worth making meets no fault.
	Chance(s State, tool int) float64
	// Remember returns the state with the outcome of the latest call added to its memory: whether
	// it met no fault.
	Remember(s State, tool int, ok bool) State
	// Stopped reports whether the calls so far have ended the episode.
	Stopped(s State) bool
}

// A Planner turns a problem into work and the rules by which its calls go.
type Planner func(catalog *assay.Catalog, problem Problem) (Work, Rules)

// Solve returns the best policy for a problem. A task with more than 64 different tools is too
// large: its success is 0.
func Solve(catalog *assay.Catalog, problem Problem, planner Planner) *Policy {
	p := &Policy{
		calls: max(0, problem.Calls), faults: sharesOf(problem), solved: make(map[State]stateValue),
	}
	p.work, p.rules = planner(catalog, problem)
	for _, name := range problem.Out {
		p.out |= Only(p.work.Number(name))
	}
	p.solve(p.start())
	return p
}

// Success returns the probability of full success from the start.
func (p *Policy) Success() float64 { return p.solve(p.start()).success }

// Expected returns the expected number of calls until the policy is done, is stopped or has no
// calls left.
func (p *Policy) Expected() float64 { return p.solve(p.start()).calls }

// Next returns the tool to call after the given calls. It returns "" if all required tools have
// succeeded, no calls are left, or no call helps. Calls of tools that have no part in the work
// only count as history.
func (p *Policy) Next(calls []Call) string {
	s := p.start()
	for _, c := range calls {
		if c.Mistake {
			s.pass()
		} else {
			s = p.after(s, p.work.Number(c.Tool), c.way())
		}
	}
	return p.work.name(p.solve(s).best)
}

// Linear returns the tools that the policy calls if every call succeeds.
func (p *Policy) Linear() []string {
	var names []string
	s := p.start()
	for n := p.solve(s); n.best != None; n = p.solve(s) {
		names = append(names, p.work.name(n.best))
		s = p.after(s, n.best, way{happens: true})
	}
	return names
}

// Size estimates how many bytes the policy holds.
func (p *Policy) Size() int { return 112*len(p.solved) + 1024 }

func (p *Policy) start() State { return State{Left: uint32(p.calls), Down: p.out} }

// A way is one that a call can go, with its probability.
type way struct {
	chance         float64
	happens, fault bool
	idle, down     bool
	wait           int
}

// shares are those of the kinds of faults.
type shares struct{ spared, down, throttled float64 }

func sharesOf(p Problem) shares { return shares{p.Spared, p.Down, p.Throttled} }

// Rules are sparing if tools differ in the share of faults at which a call happens nevertheless, and
// of those after which a tool is down.
type sparing interface {
	Shares(tool int) (spared, down float64)
}

// ways has the ways that a call can go. Those without a chance do not occur.
type ways [4 + LongestWait]way

// refused is the way of a call that its tool does not take.
var refused = ways{{chance: 1, fault: true}}

// ways returns the ways that a call can go.
func (p *Policy) ways(s State, tool int) ways {
	return p.waysWith(s, p.rules.Chance(s, tool), tool)
}

// waysWith returns the ways that a call can go that meets no fault with a chance.
func (p *Policy) waysWith(s State, chance float64, tool int) (all ways) {
	if s.Down.Has(tool) || s.Waiting().Has(tool) {
		return refused
	}
	of := p.faults
	if r, ok := p.rules.(sparing); ok && tool != None {
		of.spared, of.down = r.Shares(tool)
	}
	all[0] = way{chance: chance, happens: true}
	all[1] = way{chance: (1 - chance) * of.spared, happens: true, fault: true}
	all[2] = way{chance: (1 - chance) * max(0, 1-of.spared-of.down-of.throttled), fault: true}
	all[3] = way{chance: (1 - chance) * of.down, fault: true, down: true}
	for i := range LongestWait {
		all[4+i] = way{chance: (1 - chance) * of.throttled / LongestWait, fault: true, wait: i + 1}
	}
	return all
}

// after returns the state that follows a call.
func (p *Policy) after(s State, tool int, w way) State {
	if tool != None && w.happens && !w.idle {
		if p.work.isNext(s, tool) {
			s.Done++
		}
		s.Have |= Only(tool) & p.work.Matters
	}
	s.pass()
	if w.down {
		s.Down |= Only(tool)
	}
	if w.wait > 0 {
		s.Waits[w.wait-1] |= Only(tool)
	}
	return p.rules.Remember(s, tool, !w.fault)
}

// solve returns the value of a state. Among equally good tools the first wins.
func (p *Policy) solve(s State) stateValue {
	next := p.work.Next(s)
	switch {
	case next == finished:
		return stateValue{success: 1, best: None}
	case s.Left == 0 || p.rules.Stopped(s):
		return stateValue{best: None}
	}
	if n, ok := p.solved[s]; ok {
		return n
	}

	best := stateValue{success: -1, best: None}
	worth := p.rules.Worth(s)
	if worth.Has(next) {
		best = p.try(s, next)
		worth &^= Only(next)
	}
	for tool := range worth.All {
		if n := p.try(s, tool); n.success > best.success+1e-12 {
			best = n
		}
	}
	best.success = max(0, best.success)
	p.solved[s] = best
	return best
}

// try returns the value of a state if a given tool is called first.
func (p *Policy) try(s State, tool int) stateValue {
	n := stateValue{calls: 1, best: tool}
	for _, w := range p.ways(s, tool) {
		if w.chance > 0 {
			then := p.solve(p.after(s, tool, w))
			n.success += w.chance * then.success
			n.calls += w.chance * then.calls
		}
	}
	return n
}
