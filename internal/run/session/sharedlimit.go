package session

import (
	"cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/task/mcp"
)

// A sharedLimit is a limit of attempts in flight that several listed models share: the levels and
// revisions of one agent, or all models that use one server of tools. Only the engine's goroutine
// accesses it.
type sharedLimit struct {
	limit  func() int
	memory *memory         // nil if attempts start no program
	flying map[string]int  // attempts in flight, by listed name
	busy   map[string]bool // listed names with trials to start
}

// sharedLimits has the limits of each listed name.
type sharedLimits map[string][]*sharedLimit

// sharedLimitsOf returns the shared limits of agents, and the limit of a server of tools unless it
// is nil. sessions returns the limit of an environment, which may become lower.
func sharedLimitsOf(
	models []string, agents map[string]job.Agent, server *assay.MCPServer, sessions func() int,
	m *memory,
) sharedLimits {
	byAgent, all := make(map[string]*sharedLimit), make(sharedLimits)
	for listed, a := range agents {
		if byAgent[a.Name] == nil {
			byAgent[a.Name] = newSharedLimit(fixed(a.Most), a.URL, m)
		}
		all.join(listed, byAgent[a.Name])
	}
	if server != nil {
		limit := fixed(cmp.Or(server.Concurrency, mcp.DefaultConcurrency))
		if server.OpenEnv {
			limit, m = sessions, nil // one program serves all attempts
		}
		c := newSharedLimit(limit, server.URL, m)
		for _, listed := range models {
			all.join(listed, c)
		}
	}
	return all
}

// newSharedLimit returns a shared limit of programs, or of services if they have a URL.
func newSharedLimit(limit func() int, url string, m *memory) *sharedLimit {
	c := &sharedLimit{limit: limit, flying: make(map[string]int), busy: make(map[string]bool)}
	if url == "" {
		c.memory = m
	}
	return c
}

func fixed(n int) func() int { return func() int { return n } }

func (all sharedLimits) join(listed string, c *sharedLimit) {
	c.busy[listed] = true
	all[listed] = append(all[listed], c)
}

// most returns how many attempts of a listed name its shared limits allow in flight, but at most n.
func (all sharedLimits) most(listed string, n int) int {
	for _, c := range all[listed] {
		n = min(n, c.most(listed))
	}
	return n
}

// most returns how many attempts of a listed name may be in flight: its share of the limit, but no
// more than the others leave. While memory is short, no attempt is added.
func (c *sharedLimit) most(listed string) int {
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
func (all sharedLimits) exhausted(listed string) {
	for _, c := range all[listed] {
		delete(c.busy, listed)
	}
}

// count counts the attempts in flight.
func (all sharedLimits) count(e engine.Event) {
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
