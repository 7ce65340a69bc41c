package simserver

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"strconv"

	"github.com/assay-eval/assay"
)

// A Tariff has the prices of a server, in millionths of a dollar for a million tokens. Without the
// price of a cache, prompts are not cached.
type Tariff struct{ Input, Cached, CacheWrite, Output int64 }

// ParseTariff parses a tariff such as "input=1.25,cached=0.125,output=10", in dollars for a million
// tokens.
func ParseTariff(s string) (Tariff, error) {
	var t Tariff
	names := []string{"input", "cached", "cache_write", "output"}
	fields := map[string]*int64{
		"input": &t.Input, "cached": &t.Cached, "cache_write": &t.CacheWrite, "output": &t.Output,
	}
	const example = "tariffs look like input=1.25,cached=0.125,output=10"
	err := eachSetting(s, names, example, func(name, value string) error {
		const most = 1e6
		usd, err := strconv.ParseFloat(value, 64)
		if err != nil || !(usd >= 0 && usd <= most) {
			return fmt.Errorf("%s is %q, not a number from 0 to 1000000", name, value)
		}
		*fields[name] = int64(math.Round(usd * 1e6))
		return nil
	})
	if err != nil {
		return Tariff{}, fmt.Errorf("tariff %q: %w", s, err)
	}
	return t, nil
}

// A Bill is the cost of the requests for one model, computed in whole numbers only.
type Bill struct {
	Requests         int64 `json:"requests"`
	InputTokens      int64 `json:"input_tokens"` // neither read from a cache nor written to one
	CachedTokens     int64 `json:"cached_tokens"`
	CacheWriteTokens int64 `json:"cache_write_tokens"`
	OutputTokens     int64 `json:"output_tokens"`
	ReasoningTokens  int64 `json:"reasoning_tokens"` // part of OutputTokens
	// MicroUSD is in millionths of a dollar, rounded half up.
	MicroUSD int64 `json:"micro_usd"`
}

// charge adds a reply.
func (b *Bill) charge(t Tariff, u assay.Usage) {
	b.Requests++
	b.InputTokens += int64(u.InputTokens - u.CachedTokens - u.CacheWriteTokens)
	b.CachedTokens += int64(u.CachedTokens)
	b.CacheWriteTokens += int64(u.CacheWriteTokens)
	b.OutputTokens += int64(u.OutputTokens)
	b.ReasoningTokens += int64(u.ReasoningTokens)
	sum := b.InputTokens*t.Input + b.CachedTokens*t.Cached + b.CacheWriteTokens*t.CacheWrite +
		b.OutputTokens*t.Output
	b.MicroUSD = (sum + 500_000) / 1_000_000
}

// charge adds a reply to the bill of its model, unless the server is free.
func (c *counters) charge(model string, t Tariff, u assay.Usage) {
	if t == (Tariff{}) {
		return
	}
	c.change(func(s *Stats) {
		b := s.Bills[model]
		b.charge(t, u)
		bills := maps.Clone(s.Bills) // snapshots share the map
		if bills == nil {
			bills = make(map[string]Bill)
		}
		bills[model] = b
		s.Bills = bills
	})
}

// cached returns a reply's usage with the parts of its prompt that an earlier request for the
// model has put into the cache, and that it puts there itself. The cache holds whole messages.
func (s *Server) cached(req assay.Request, u assay.Usage) assay.Usage {
	t := s.cfg.Tariff
	if t.Cached == 0 {
		return u
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %+v", req.Model, req.Functions)
	known, all := 0, max(1, estimate(req))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range req.Messages {
		m := &req.Messages[i]
		fmt.Fprintf(h, "%q %q %+v %q", m.Role, m.Content, m.Calls, m.CallID)
		prefix := req
		prefix.Messages = req.Messages[:i+1]
		if _, ok := s.prefixes[h.Sum64()]; ok {
			known = estimate(prefix)
		}
		s.prefixes[h.Sum64()] = struct{}{}
	}
	u.CachedTokens = u.InputTokens * known / all
	if t.CacheWrite > 0 {
		u.CacheWriteTokens = u.InputTokens - u.CachedTokens
	}
	return u
}
