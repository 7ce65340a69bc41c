package session

import (
	"cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/task/mcp"
)

// A crew is a number of listed models that share a limit of attempts in flight: one agent with all
// its levels and revisions, or all models whose tools are those of a server. Only the engine's
// goroutine accesses it.
type crew struct {
	limit  func() int
	memory *memory         // nil if attempts start no program
	flying map[string]int  // attempts in flight, by listed name
	busy   map[string]bool // listed names with trials to start
}

// crews has the crews of each listed name.
type crews map[string][]*crew

// crewsOf returns the crews of agents, and that of a server of tools unless it is nil.
func crewsOf(
	models []string, agents map[string]job.Agent, server *assay.MCPServer, m *memory,
) crews {
	byAgent, all := make(map[string]*crew), make(crews)
	for listed, a := range agents {
		if byAgent[a.Name] == nil {
			byAgent[a.Name] = newCrew(fixed(a.Most), a.URL, m)
		}
		all.join(listed, byAgent[a.Name])
	}
	if server != nil {
		c := newCrew(fixed(cmp.Or(server.Concurrency, mcp.DefaultConcurrency)), server.URL, m)
		for _, listed := range models {
			all.join(listed, c)
		}
	}
	return all
}

// newCrew returns a crew of programs, or of services if they have a URL.
func newCrew(limit func() int, url string, m *memory) *crew {
	c := &crew{limit: limit, flying: make(map[string]int), busy: make(map[string]bool)}
	if url == "" {
		c.memory = m
	}
	return c
}

func fixed(n int) func() int { return func() int { return n } }

func (all crews) join(listed string, c *crew) {
	c.busy[listed] = true
	all[listed] = append(all[listed], c)
}

// most returns how many attempts of a listed name its crews allow in flight, but at most n.
func (all crews) most(listed string, n int) int {
	for _, c := range all[listed] {
		n = min(n, c.most(listed))
	}
	return n
}

// most returns how many attempts of a listed name may be in flight: its share of the limit, but no
// more than the others leave. While memory is short, none is added to those in flight.
func (c *crew) most(listed string) int {
	others := 0
	for name, n := range c.flying {
		if name != listed {
			others += n
		}
	}
	sharing := max(1, len(c.busy)) // a trial may start again when no other is left
	limit := c.limit()
	share := (limit + sharing - 1) / sharing
	most, mine := max(0, min(share, limit-others)), c.flying[listed]
	if most > mine && mine+others > 0 && c.memory != nil && c.memory.isShort() {
		return mine
	}
	return most
}

// exhausted gives the share of a listed name without trials to start to the others.
func (all crews) exhausted(listed string) {
	for _, c := range all[listed] {
		delete(c.busy, listed)
	}
}

// count counts the attempts in flight.
func (all crews) count(e engine.Event) {
	for _, c := range all[e.Model] {
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
}
