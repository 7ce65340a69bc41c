package session

import (
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/job"
)

// A crew is one agent with all levels and revisions under which the experiment lists it. Together
// they keep the agent's concurrency. Only the engine's goroutine accesses it.
type crew struct {
	limit  int
	memory *memory         // nil for a service
	flying map[string]int  // attempts in flight, by listed name
	busy   map[string]bool // listed names with trials to start
}

// crews has the crew of each listed name.
type crews map[string]*crew

func crewsOf(agents map[string]job.Agent, m *memory) crews {
	byAgent, all := make(map[string]*crew), make(crews)
	for listed, a := range agents {
		c := byAgent[a.Name]
		if c == nil {
			c = &crew{
				limit: a.Most, flying: make(map[string]int), busy: make(map[string]bool),
			}
			if a.URL == "" {
				c.memory = m
			}
			byAgent[a.Name] = c
		}
		c.busy[listed] = true
		all[listed] = c
	}
	return all
}

// most returns how many attempts of a listed name may be in flight: its share of what the agent may
// have, but no more than the others leave. While memory is short, none is added to those in flight.
func (c *crew) most(listed string) int {
	others := 0
	for name, n := range c.flying {
		if name != listed {
			others += n
		}
	}
	share := (c.limit + len(c.busy) - 1) / max(1, len(c.busy))
	most, mine := max(0, min(share, c.limit-others)), c.flying[listed]
	if most > mine && mine+others > 0 && c.memory != nil && c.memory.isShort() {
		return mine
	}
	return most
}

// exhausted gives the share of a listed name without trials to start to the others.
func (all crews) exhausted(listed string) {
	if c := all[listed]; c != nil {
		delete(c.busy, listed)
	}
}

// count counts the attempts in flight.
func (all crews) count(e engine.Event) {
	c := all[e.Model]
	if c == nil {
		return
	}
	switch e.Kind {
	case engine.Started:
		c.flying[e.Model]++
		if c.memory != nil {
			c.memory.begin()
		}
	case engine.Settled, engine.Faulted, engine.Dropped, engine.Parked:
		c.flying[e.Model]--
	}
}
