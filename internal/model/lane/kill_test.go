package lane_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// A witness is an endpoint that remembers when requests arrived and what they used.
type witness struct {
	mu      sync.Mutex
	arrived []lane.Spent
}

func (w *witness) Chat(ctx context.Context, _ *assay.Request) (*assay.Response, error) {
	w.mu.Lock()
	w.arrived = append(w.arrived, lane.Spent{At: time.Now(), Requests: 1, Input: 1, Output: 256})
	w.mu.Unlock()
	select {
	case <-time.After(3 * time.Second):
		return &assay.Response{
			ServedModel: "m", Usage: assay.Usage{InputTokens: 1, OutputTokens: 256},
		}, nil
	case <-ctx.Done():
		return &assay.Response{}, ctx.Err()
	}
}

// most returns the most that arrived within a span.
func (w *witness) most(span time.Duration) (most lane.Spent) {
	for i := range w.arrived {
		var sum lane.Spent
		for _, x := range w.arrived[i:] {
			if x.At.Sub(w.arrived[i].At) < span {
				sum.Requests, sum.Output = sum.Requests+1, sum.Output+x.Output
			}
		}
		most.Requests, most.Output = max(most.Requests, sum.Requests), max(most.Output, sum.Output)
	}
	return most
}

// TestLimitsHoldAcrossKills checks for any stated limits and any history of kills, after each of
// which a new pool learns what the ones before have sent, that the endpoint sees no span with more
// than the limit permits. A killed pool leaves requests in flight. The new one knows seconds only.
func TestLimitsHoldAcrossKills(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limits := lane.Limits{
			Concurrency: 8, Burst: rapid.IntRange(0, 20).Draw(rt, "burst"),
			RPS: rapid.IntRange(0, 3).Draw(rt, "rps"), RPM: rapid.IntRange(0, 12).Draw(rt, "rpm"),
			RPD:  rapid.SampledFrom([]int{0, 30}).Draw(rt, "rpd"),
			OTPM: rapid.SampledFrom([]int{0, 256 * 9}).Draw(rt, "otpm"),
		}
		lives := rapid.SliceOfN(rapid.IntRange(0, 90_000), 1, 8).Draw(rt, "lives")
		w := new(witness)
		synctest.Test(t, func(*testing.T) {
			var mu sync.Mutex
			sent := make(map[int64]lane.Spent) // by the second
			for _, ms := range lives {
				mu.Lock()
				c := lane.Config{Name: "l", Provider: w, Orders: "m", Limits: limits}
				for _, second := range slices.Sorted(maps.Keys(sent)) {
					s := sent[second]
					if s.At = time.Unix(second+1, 0); s.At.After(time.Now()) {
						s.At = time.Now()
					}
					c.Spent = append(c.Spent, s)
				}
				mu.Unlock()
				p := lane.NewPool("m", []lane.Config{c}, lane.Options{
					Queue: 1000 * time.Hour,
					Sent: func(_ string, s lane.Spent) {
						mu.Lock()
						defer mu.Unlock()
						x := sent[s.At.Unix()]
						x.Requests += s.Requests
						x.Input += s.Input
						x.Output += s.Output
						sent[s.At.Unix()] = x
					},
				})
				saturate(p, 8, time.Duration(ms)*time.Millisecond)
			}
		})
		for _, c := range []struct {
			span        time.Duration
			limit, used int
		}{
			{time.Second, limits.RPS, w.most(time.Second).Requests},
			{time.Minute, limits.RPM, w.most(time.Minute).Requests},
			{24 * time.Hour, limits.RPD, w.most(24 * time.Hour).Requests},
			{time.Minute, limits.OTPM, w.most(time.Minute).Output},
		} {
			if c.limit > 0 && c.used > c.limit {
				rt.Errorf("%d within %v, limit %d", c.used, c.span, c.limit)
			}
		}
	})
}
