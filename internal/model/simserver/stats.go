package simserver

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Stats counts a server's chat requests. Other requests do not count.
type Stats struct {
	Requests int64 `json:"requests"`
	// Faults counts injected faults by kind.
	Faults map[string]int64 `json:"faults"`
	// Statuses counts responses by HTTP status. A request that was reset, or whose
	// client left before the answer, has no status.
	Statuses map[int]int64 `json:"statuses"`
	// OverLimit counts requests that exceeded a limit.
	OverLimit int64 `json:"over_limit"`
	// PromptTokens and CompletionTokens include replies spoilt by a fault.
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	// Bills are the server's charges, by model; see [Config.Tariff].
	Bills       map[string]Bill `json:"bills,omitempty"`
	InFlight    int64           `json:"in_flight"`
	MaxInFlight int64           `json:"max_in_flight"`
	// BusySeconds is the sum of the times that requests were in flight. With two in
	// flight it grows by two per second.
	BusySeconds float64 `json:"busy_seconds"`
	// FirstRequest is when the first request arrived.
	FirstRequest time.Time `json:"first_request,omitzero"`
	// LastResponse is when the last response began.
	LastResponse time.Time `json:"last_response,omitzero"`
	// Connections is the number of open connections; see [Server.ConnState].
	Connections int64 `json:"connections"`
	// PerLane is sorted by key and then by deployment.
	PerLane []LaneStats `json:"per_lane"`
}

// LaneStats counts the requests of one key to one deployment.
type LaneStats struct {
	// Key identifies the key without revealing it. "key 0" is the first of
	// [Config.Keys]. If no keys are configured, it is "key" and the start of the
	// key's SHA-256.
	Key string `json:"key"`
	// Deployment has dashes where the model's name has slashes.
	Deployment string `json:"deployment"`
	// Requests counts admitted requests, and Denied counts requests over a limit.
	Requests int64 `json:"requests"`
	Denied   int64 `json:"denied"`
	// Tokens is the usage of finished requests.
	Tokens int64 `json:"tokens"`
}

// Stats returns the counts so far.
func (s *Server) Stats() Stats {
	stats := s.stats.snapshot(time.Now())
	stats.PerLane = s.laneStats()
	return stats
}

func (s *Server) laneStats() []LaneStats {
	s.mu.Lock()
	lanes := maps.Clone(s.lanes)
	s.mu.Unlock()
	list := make([]LaneStats, 0, len(lanes))
	for id, l := range lanes {
		stats := l.stats()
		stats.Key, stats.Deployment = s.keyName(id.key), id.deployment
		list = append(list, stats)
	}
	slices.SortFunc(list, func(a, b LaneStats) int {
		return cmp.Or(
			cmp.Compare(len(a.Key), len(b.Key)), // key 2 comes before key 10
			cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Deployment, b.Deployment),
		)
	})
	return list
}

// keyName identifies a key without revealing it.
func (s *Server) keyName(key string) string {
	if i, ok := s.keys[key]; ok {
		return "key " + strconv.Itoa(i)
	}
	sum := sha256.Sum256([]byte(key))
	return "key" + hex.EncodeToString(sum[:3])
}

// counters holds the server's current Stats.
type counters struct {
	mu      sync.Mutex
	s       Stats         // guarded by mu, like the fields below
	busy    time.Duration // BusySeconds up to changed
	changed time.Time     // when InFlight last changed
}

func (c *counters) change(f func(s *Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.s)
}

func (c *counters) snapshot(now time.Time) Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlightLocked(0, now)
	s := c.s
	s.BusySeconds = c.busy.Seconds()
	s.Faults, s.Statuses = maps.Clone(s.Faults), maps.Clone(s.Statuses)
	if s.Faults == nil {
		s.Faults = map[string]int64{}
	}
	if s.Statuses == nil {
		s.Statuses = map[int]int64{}
	}
	return s
}

// inFlightLocked adds n to the requests in flight.
func (c *counters) inFlightLocked(n int64, now time.Time) {
	if now.After(c.changed) { // false if another request took the lock in between
		c.busy += time.Duration(c.s.InFlight) * now.Sub(c.changed)
		c.changed = now
	}
	c.s.InFlight += n
	c.s.MaxInFlight = max(c.s.MaxInFlight, c.s.InFlight)
}

func (c *counters) arrive(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.s.Requests == 0 {
		c.s.FirstRequest = now.UTC()
	}
	c.s.Requests++
	c.inFlightLocked(1, now)
}

func (c *counters) leave(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlightLocked(-1, now)
}

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

func (c *counters) status(code int, now time.Time) {
	c.change(func(s *Stats) {
		if s.Statuses == nil {
			s.Statuses = make(map[int]int64)
		}
		s.Statuses[code]++
		s.LastResponse = now.UTC()
	})
}

func (c *counters) tokens(prompt, completion int) {
	c.change(func(s *Stats) {
		s.PromptTokens += int64(prompt)
		s.CompletionTokens += int64(completion)
	})
}
