package session

import (
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/job"
)

// A crew is one agent with all levels and revisions under which the experiment lists it. Together
// they keep the agent's concurrency. Only the engine's goroutine accesses it.
type crew struct {
	limit  int
	flying map[string]int  // attempts in flight, by listed name
	busy   map[string]bool // listed names with trials to start
}

// crews has the crew of each listed name.
type crews map[string]*crew

func crewsOf(agents map[string]job.Agent) crews {
	byAgent, all := make(map[string]*crew), make(crews)
	for listed, a := range agents {
		c := byAgent[a.Name]
		if c == nil {
			c = &crew{a.Most, make(map[string]int), make(map[string]bool)}
			byAgent[a.Name] = c
		}
		c.busy[listed] = true
		all[listed] = c
	}
	return all
}

// most returns how many attempts of a listed name may be in flight: its share of what the agent may
// have, but no more than the others leave.
func (c *crew) most(listed string) int {
	others := 0
	for name, n := range c.flying {
		if name != listed {
			others += n
		}
	}
	share := (c.limit + len(c.busy) - 1) / max(1, len(c.busy))
	return max(0, min(share, c.limit-others))
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
	case engine.Settled, engine.Faulted, engine.Dropped, engine.Parked:
		c.flying[e.Model]--
	}
}
