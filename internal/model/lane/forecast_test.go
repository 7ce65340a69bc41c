package lane_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestForesee(t *testing.T) {
	t.Parallel()
	wide := lane.Limits{Concurrency: 100}
	rpm := lane.Limits{Concurrency: 100, RPM: 600}
	for _, tc := range []struct {
		name          string
		limits        []lane.Limits
		conversations int
		turns         float64
		wall          time.Duration
		by            assay.Bucket
		of            string
	}{
		{"nothing", []lane.Limits{wide}, 0, 2, 0, "", ""},
		{"no limit reached", []lane.Limits{wide}, 50, 2, 2 * second, "", ""},
		{"concurrency", []lane.Limits{{Concurrency: 5}}, 50, 2, 20 * second, assay.Concurrency, "a"},
		{"two lanes", []lane.Limits{wide, wide}, 1000, 2, 10 * second, assay.Concurrency, ""},
		{"rpm", []lane.Limits{rpm}, 1_000_000, 1, 1_000_000 / 600 * 60500 * time.Millisecond, assay.Requests, "a"},
		{"mixed lanes", []lane.Limits{wide, rpm}, 110_000, 1, 1000 * second, assay.Requests, "b"},
		// A turn has 150 tokens.
		{"tpm", []lane.Limits{{Concurrency: 10, TPM: 450}}, 301, 1, 100 * 60500 * time.Millisecond, assay.Tokens, "a"},
		{"a burst", []lane.Limits{{Concurrency: 4, RPM: 60, Burst: 60}}, 60, 1, 15 * second, assay.Concurrency, "a"},
		{"a burst of a daily limit", []lane.Limits{{Concurrency: 10, RPD: 100}}, 100, 1, 10 * second, assay.Concurrency, "a"},
		{"days", []lane.Limits{{Concurrency: 10, RPD: 100}}, 301, 1, 3*24*hour + 3*minute, assay.RequestsPerDay, "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var lanes []lane.Config
			for i, l := range tc.limits {
				lanes = append(lanes, lane.Config{
					Name: string(rune('a' + i)), Limits: l, Price: lane.Price{Input: 1, Output: 2},
				})
			}
			f := lane.Foresee(lanes, lane.Work{
				Conversations: tc.conversations, Turns: tc.turns, Prompt: 100, Reply: 50, Latency: second,
			})
			if off := (f.Wall - tc.wall).Abs(); off > tc.wall/100 || f.Bottleneck != tc.by || f.Lane != tc.of {
				t.Errorf("%v by %q of %q, want %v by %q of %q", f.Wall, f.Bottleneck, f.Lane, tc.wall, tc.by, tc.of)
			}
			requests := int(float64(tc.conversations) * tc.turns)
			if f.Requests != requests || f.InputTokens != 100*requests || f.OutputTokens != 50*requests {
				t.Errorf("%+v, want %d requests of 100 and 50 tokens", f, requests)
			}
			if want := float64(requests) * 200e-6; math.Abs(f.Cost-want) > 1e-9*want {
				t.Errorf("cost %v, want %v", f.Cost, want)
			}
		})
	}
}

// TestForecastMatchesPool checks that a pool takes at most twice and at least half as long as
// foreseen, and never less than the lower bound.
func TestForecastMatchesPool(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limits := lane.Limits{
			Concurrency: rapid.IntRange(1, 6).Draw(rt, "width"),
			RPM:         rapid.IntRange(0, 20).Draw(rt, "rpm"),
		}
		n := rapid.IntRange(1, 30).Draw(rt, "conversations")
		turns := rapid.IntRange(1, 4).Draw(rt, "turns")
		took := time.Duration(rapid.IntRange(1, 4000).Draw(rt, "ms")) * time.Millisecond
		config := lane.Config{Name: "l", Limits: limits}
		foreseen := lane.Foresee([]lane.Config{config}, lane.Work{
			Conversations: n, Turns: float64(turns), Prompt: 1, Reply: 1, Latency: took,
		}).Wall
		synctest.Test(t, func(t *testing.T) {
			wake := make(chan struct{}, 1)
			e := newEndpoint(took)
			options := lane.Options{Wake: func() { wake <- struct{}{} }}
			config.Provider, config.Orders = e, "m"
			p := lane.NewPool("m", []lane.Config{config}, options)
			converse(t, p, n, turns, wake)
			wall := time.Since(e.start)
			if wall < foreseen/2 || wall > 2*foreseen {
				t.Fatalf("%+v, %d × %d turns of %v: took %v, foreseen %v",
					limits, n, turns, took, wall, foreseen)
			}
			if least := lane.Least(p.Ledgers()); least > wall {
				t.Fatalf("took %v, less than the lower bound of %v", wall, least)
			}
		})
	})
}

// converse starts conversations like the engine: each one as soon as it can start.
func converse(t *testing.T, p *lane.Pool, n, turns int, wake <-chan struct{}) {
	var wg sync.WaitGroup
	for range n {
		ctx, done, ok := p.Admit(t.Context())
		for !ok {
			<-wake
			ctx, done, ok = p.Admit(t.Context())
		}
		wg.Go(func() {
			defer done()
			talk(ctx, t, p, turns)
		})
		synctest.Wait() // until it has sent its request
	}
	p.Exhausted()
	wg.Wait()
}

func talk(ctx context.Context, t *testing.T, p *lane.Pool, turns int) {
	for range turns {
		if _, err := p.Chat(ctx, &assay.Request{}); err != nil {
			t.Error(err)
		}
	}
}
