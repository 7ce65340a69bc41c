package simserver

import (
	"maps"
	"sync"
)

// Stats counts what a server has seen. Chat requests count, others do not.
type Stats struct {
	Requests int64 `json:"requests"`
	// Faults counts injected faults by kind.
	Faults map[string]int64 `json:"faults"`
	// Statuses counts responses by HTTP status. Requests that were reset, or
	// whose client left before an answer, have none.
	Statuses map[int]int64 `json:"statuses"`
	// OverLimit counts the requests that came over a limit: 0 means that the
	// client kept to all of them.
	OverLimit int64 `json:"over_limit"`
	// PromptTokens and CompletionTokens are of all replies, spoilt ones too.
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	InFlight         int64 `json:"in_flight"`
	MaxInFlight      int64 `json:"max_in_flight"`
	// Connections are open; see [Server.ConnState].
	Connections int64 `json:"connections"`
}

// counters are the server's Stats while they change.
type counters struct {
	mu sync.Mutex
	s  Stats // guarded by mu
}

func (c *counters) change(f func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counters) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Faults, s.Statuses = maps.Clone(s.Faults), maps.Clone(s.Statuses)
	if s.Faults == nil {
		s.Faults = map[string]int64{}
	}
	if s.Statuses == nil {
		s.Statuses = map[int]int64{}
	}
	return s
}

func (c *counters) arrive() {
	c.change(func(s *Stats) {
		s.Requests++
		s.InFlight++
		s.MaxInFlight = max(s.MaxInFlight, s.InFlight)
	})
}

func (c *counters) leave() { c.change(func(s *Stats) { s.InFlight-- }) }

func (c *counters) overLimit() { c.change(func(s *Stats) { s.OverLimit++ }) }

func (c *counters) connections(n int64) { c.change(func(s *Stats) { s.Connections += n }) }

func (c *counters) fault(kind string) {
	c.change(func(s *Stats) {
		if s.Faults == nil {
			s.Faults = make(map[string]int64)
		}
		s.Faults[kind]++
	})
}

func (c *counters) status(code int) {
	c.change(func(s *Stats) {
		if s.Statuses == nil {
			s.Statuses = make(map[int]int64)
		}
		s.Statuses[code]++
	})
}

func (c *counters) tokens(prompt, completion int) {
	c.change(func(s *Stats) {
		s.PromptTokens += int64(prompt)
		s.CompletionTokens += int64(completion)
	})
}
