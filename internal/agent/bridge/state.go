package bridge

import (
	"sync"
	"sync/atomic"

	"github.com/assay-eval/assay"
)

// An activity is the current state of an agent.
type activity struct {
	begun           atomic.Bool // it has sent a request
	asking, calling atomic.Int32
	started         atomic.Bool // its program runs
	listing         sync.Once
	listed          chan struct{} // is closed when it has asked for the tools
	asked, called   atomic.Int32
	streamed        atomic.Bool // it has asked for a stream
}

// A Trace is how far an agent got.
type Trace struct {
	// Started is true if its program ran or its service was reached, and Listed if it asked for the
	// tools. Asked counts the requests that reached its model, and Called the calls of tools.
	Started       bool
	Listed        bool
	Asked, Called int
	// Streamed is true if it asked its model for a stream.
	Streamed bool
}

func (a *activity) trace() Trace {
	return Trace{a.started.Load(), a.hasListed(), int(a.asked.Load()), int(a.called.Load()), a.streamed.Load()}
}

func (a *activity) hasListed() bool {
	select {
	case <-a.listed:
		return true
	default:
		return false
	}
}

// acted reports whether the agent has asked its model or called a tool.
func (t Trace) acted() bool { return t.Asked+t.Called > 0 }

// count counts a request until the function that it returns is called.
func count(n *atomic.Int32) (end func()) {
	n.Add(1)
	return func() { n.Add(-1) }
}

// state returns the activity of the attempt's agent. If it does several things at once, it waits
// for its model rather than for a tool.
func (a *attempt) state() assay.AgentState {
	switch {
	case a.ctx.Err() != nil:
		return assay.AgentEnding
	case a.asking.Load() > 0:
		return assay.AgentAsking
	case a.calling.Load() > 0:
		return assay.AgentCalling
	case a.begun.Load():
		return assay.AgentThinking
	}
	return assay.AgentStarting
}

// States counts the attempts in flight of a listed model by the activity of their agents.
func (b *Bridge) States(model string) map[assay.AgentState]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	states := make(map[assay.AgentState]int)
	for _, a := range b.attempts {
		if a.name == model {
			states[a.state()]++
		}
	}
	return states
}
