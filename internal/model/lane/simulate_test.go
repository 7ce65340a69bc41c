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

func TestSimulateExactly(t *testing.T) {
	t.Parallel()
	const window = 60500 * time.Millisecond
	for _, tc := range []struct {
		name          string
		limits        lane.Limits
		conversations int
		turns         float64
		wall          time.Duration
		reason        string
	}{
		{"concurrency", lane.Limits{Concurrency: 5}, 50, 2, 20 * time.Second, ""},
		{"rpm", lane.Limits{Concurrency: 10, RPM: 3, Burst: 3}, 6, 1, window + time.Second, "rpm"},
		// A turn has 150 tokens.
		{"tpm", lane.Limits{Concurrency: 10, TPM: 450, Burst: 9}, 7, 1, 2*window + time.Second, "tpm"},
		// The last three are extrapolated.
		{
			"million by concurrency",
			lane.Limits{Concurrency: 100},
			1_000_000, 2, 20_000 * time.Second, "",
		},
		{
			"million by great concurrency",
			lane.Limits{Concurrency: 10_000},
			1_000_000, 1, 100 * time.Second, "",
		},
		{
			"million by rpm",
			lane.Limits{Concurrency: 100, RPM: 600},
			1_000_000, 1,
			(1_000_000 / 600) * window, "rpm",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && tc.name == "million by rpm" {
				t.Skip("-short: 200,000 requests one by one")
			}
			config := lane.Config{
				Name: "l", Limits: tc.limits, Price: lane.Price{Input: 1, Output: 2},
			}
			s := lane.Simulate([]lane.Config{config}, lane.Work{
				Conversations: tc.conversations, Turns: tc.turns,
				Prompt: 100, Reply: 50, Latency: time.Second,
			})

			off := math.Abs(s.Wall.Seconds()/tc.wall.Seconds() - 1)
			if off > 0.01 || tc.conversations < 1000 && off != 0 {
				t.Errorf("took %v, want %v", s.Wall, tc.wall)
			}
			requests := int(float64(tc.conversations) * tc.turns)
			if s.Requests != requests || s.InputTokens != 100*requests ||
				s.OutputTokens != 50*requests {
				t.Errorf("%d requests, %d and %d tokens, want %d requests of 100 and 50",
					s.Requests, s.InputTokens, s.OutputTokens, requests)
			}
			if want := float64(requests) * 200e-6; math.Abs(s.Cost-want) > 1e-9*want {
				t.Errorf("cost %v, want %v", s.Cost, want)
			}
			if tc.reason != "" && s.Ledgers[0].Waited[tc.reason] < s.Wall/2 {
				t.Errorf("waited %v, want mostly for %s", s.Ledgers[0].Waited, tc.reason)
			}
		})
	}
}

// TestSimulationMatchesPool checks that a pool takes as long as its simulation, and that
// neither beats the lower bound.
func TestSimulationMatchesPool(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limits := lane.Limits{
			Concurrency: rapid.IntRange(1, 6).Draw(rt, "width"),
			RPM:         rapid.IntRange(0, 20).Draw(rt, "rpm"),
		}
		n := rapid.IntRange(1, 30).Draw(rt, "conversations")
		turns := rapid.IntRange(1, 4).Draw(rt, "turns")
		took := time.Duration(rapid.IntRange(1, 4000).Draw(rt, "ms")) * time.Millisecond
		hedge := rapid.Bool().Draw(rt, "hedge")
		config := lane.Config{Name: "l", Limits: limits, Hedge: hedge}
		simulated := lane.Simulate([]lane.Config{config}, lane.Work{
			Conversations: n, Turns: float64(turns), Prompt: 1, Reply: 1, Latency: took,
		})
		synctest.Test(t, func(t *testing.T) {
			wake := make(chan struct{}, 1)
			e := newEndpoint(took)
			options := lane.Options{Wake: func() { wake <- struct{}{} }}
			config.Provider, config.Orders = e, "m"
			p := lane.NewPool("m", []lane.Config{config}, options)
			converse(t, p, n, turns, wake)

			// Events at the same moment may happen in a different order.
			if wall := time.Since(e.start); (wall - simulated.Wall).Abs() > 2*took {
				t.Fatalf("%+v, %d × %d turns: took %v, simulated %v",
					limits, n, turns, wall, simulated.Wall)
			}
			for _, ledgers := range [][]lane.Ledger{p.Ledgers(), simulated.Ledgers} {
				if least := lane.Least(ledgers); least > simulated.Wall {
					t.Fatalf("took %v, less than the lower bound of %v: %+v",
						simulated.Wall, least, ledgers)
				}
			}
		})
	})
}

// TestSimulationOfWidthIsExtrapolated checks that a simulation that ends early because only the
// width is limited comes to the same result as one of all requests.
func TestSimulationOfWidthIsExtrapolated(t *testing.T) {
	t.Parallel()
	lengths := []float64{1, 7.5}
	if testing.Short() {
		lengths = lengths[:1]
	}
	for _, turns := range lengths {
		for _, hedge := range []bool{false, true} {
			run := func(rpm int) lane.Simulation {
				limits := lane.Limits{Concurrency: 100, RPM: rpm}
				return lane.Simulate([]lane.Config{{Name: "l", Limits: limits, Hedge: hedge}}, lane.Work{
					Conversations: 12_345, Turns: turns, Prompt: 100, Growth: 10, Reply: 50,
					Latency: time.Second, Sigma: 0.5,
				})
			}
			early, whole := run(0), run(1e9)
			for what, pair := range map[string][2]float64{
				"seconds":  {early.Wall.Seconds(), whole.Wall.Seconds()},
				"requests": {float64(early.Requests), float64(whole.Requests)},
				"tokens":   {float64(early.InputTokens), float64(whole.InputTokens)},
			} {
				if off := math.Abs(pair[0]/pair[1] - 1); off > 0.02 {
					t.Errorf("%v turns, second requests %v: %v %s instead of %v",
						turns, hedge, pair[0], what, pair[1])
				}
			}
		}
	}
}

// TestSimulationHedges checks that a simulation has second requests, that these shorten a run whose
// replies take very different times, and that a simulation is always the same.
func TestSimulationHedges(t *testing.T) {
	t.Parallel()
	work := lane.Work{Conversations: 500, Turns: 1, Prompt: 1, Reply: 1, Latency: second, Sigma: 1}
	run := func(hedge bool) lane.Simulation {
		limits := lane.Limits{Concurrency: 50}
		return lane.Simulate([]lane.Config{{Name: "l", Limits: limits, Hedge: hedge}}, work)
	}
	without, with := run(false), run(true)
	if without.Requests != 500 || with.Requests <= 500 || with.Requests > 525 ||
		with.Wall >= without.Wall || with.Ledgers[0].Requests != with.Requests {
		t.Errorf("%d requests in %v, and %d in %v with second ones",
			without.Requests, without.Wall, with.Requests, with.Wall)
	}
	if again := run(true); again.Wall != with.Wall || again.Requests != with.Requests {
		t.Errorf("%+v, then %+v", with, again)
	}
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

func BenchmarkSimulateAMillionTrials(b *testing.B) {
	lanes := []lane.Config{
		{Name: "a", Limits: lane.Limits{Concurrency: 50, RPM: 600}},
		{Name: "b", Limits: lane.Limits{Concurrency: 50, TPM: 400_000}},
	}
	work := lane.Work{
		Conversations: 1_000_000, Turns: 6,
		Prompt: 800, Growth: 120, Reply: 90,
		Latency: 2 * time.Second, Sigma: 0.5,
	}
	for b.Loop() {
		lane.Simulate(lanes, work)
	}
}
