package lane_test

import (
	"container/heap"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// A hanger is a provider that never answers a share of the requests. The content of a request is
// the number of its trial.
type hanger struct {
	latency time.Duration // in the median
	sigma   float64       // of its logarithm
	share   float64       // of requests that hang
	// trials has the time that the first request of each trial takes, or 0 if it hangs.
	trials []time.Duration

	mu     sync.Mutex // guards the fields below
	random *rand.Rand
	sent   map[string]int
}

func newHanger(trials int, latency time.Duration, sigma float64, seed uint64) *hanger {
	h := &hanger{
		latency: latency, sigma: sigma, share: 0.01,
		random: rand.New(rand.NewPCG(seed, 1)), sent: make(map[string]int),
	}
	for range trials {
		h.trials = append(h.trials, h.draw())
	}
	return h
}

// draw returns the time that a request takes, or 0 if it hangs.
func (h *hanger) draw() time.Duration {
	x := h.random.NormFloat64()
	if h.random.Float64() < h.share {
		return 0
	}
	return time.Duration(float64(h.latency) * math.Exp(h.sigma*x))
}

func (h *hanger) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	h.mu.Lock()
	id := req.Messages[0].Content
	trial, _ := strconv.Atoi(id)
	took := h.draw()
	if h.sent[id]++; h.sent[id] == 1 {
		took = h.trials[trial]
	}
	h.mu.Unlock()
	var reply <-chan time.Time
	if took > 0 {
		reply = time.After(took)
	}
	select {
	case <-reply:
		return &assay.Response{ServedModel: "m"}, nil
	case <-ctx.Done():
		return &assay.Response{}, context.Cause(ctx)
	}
}

// least returns the least time that the trials can take in some slots if it is unknown which
// requests will hang. While trials wait, such a request holds its slot for the limit. At the end,
// the time is that in which all could have replied.
func (h *hanger) least(width int, limit time.Duration) (least time.Duration) {
	slots := make(slotTimes, width)
	for _, took := range h.trials {
		usual := took
		if took == 0 {
			took, usual = limit+h.latency, h.latency
		}
		least = max(least, slots[0]+usual)
		slots[0] += took
		heap.Fix(&slots, 0)
	}
	return least
}

// slotTimes is a heap of the times at which slots become free, earliest first.
type slotTimes []time.Duration

func (s slotTimes) Len() int           { return len(s) }
func (s slotTimes) Less(i, j int) bool { return s[i] < s[j] }
func (s slotTimes) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (slotTimes) Push(any)             {}
func (slotTimes) Pop() any             { return nil }

// run carries out all trials, of one turn each, like the engine. It returns the time that they
// took.
func (h *hanger) run(t *testing.T, hedge bool, width int, limit time.Duration) time.Duration {
	wake := make(chan struct{}, 1)
	p := lane.NewPool("m", []lane.Config{{
		Name: "l", Provider: h, Orders: "m", Hedge: hedge, Limits: lane.Limits{Concurrency: width},
	}}, lane.Options{
		Request: limit,
		Wake: func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		},
	})
	start := time.Now()
	var wg sync.WaitGroup
	for i := range h.trials {
		ctx, done, ok := p.Admit(t.Context())
		for !ok {
			<-wake
			ctx, done, ok = p.Admit(t.Context())
		}
		wg.Go(func() {
			defer done()
			req := assay.Request{Model: "m", Messages: []assay.Message{{Content: strconv.Itoa(i)}}}
			// All requests for a turn hang by chance in one of a million turns. Like the engine,
			// try such a trial again.
			_, err := p.Chat(ctx, &req)
			if err != nil {
				_, err = p.Chat(ctx, &req)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	p.Exhausted()
	wg.Wait()
	return time.Since(start)
}

// TestHangsDoNotDecideTheTime checks that a run of 1,000 trials with 1 % hangs takes at most
// 1.15 of the least time, whatever the limit of a request is, and without hedges much more.
func TestHangsDoNotDecideTheTime(t *testing.T) {
	t.Parallel()
	seeds, much := uint64(3), 2.
	if testing.Short() {
		seeds, much = 1, 1.3
	}
	for _, sigma := range []float64{0, 0.5} {
		for _, latency := range []time.Duration{second / 10, second / 4, 3 * second} {
			for _, limit := range []time.Duration{20 * latency, 150 * second} {
				name := fmt.Sprintf("latency %v, sigma %v, limit %v", latency, sigma, limit)
				t.Run(name, func(t *testing.T) {
					most, unhedged := 0.0, 0.0
					for seed := range seeds {
						synctest.Test(t, func(t *testing.T) {
							h := newHanger(1000, latency, sigma, seed)
							least := h.least(50, limit).Seconds()
							most = max(most, h.run(t, true, 50, limit).Seconds()/least)
							h = newHanger(1000, latency, sigma, seed)
							unhedged = max(unhedged, h.run(t, false, 50, limit).Seconds()/least)
						})
					}
					if most > 1.15 || unhedged < much {
						t.Errorf("took %.3f of the least time, and %.3f without second requests",
							most, unhedged)
					}
				})
			}
		}
	}
}

// A span is a time in which something happened, without its ends.
type span struct{ from, to time.Time }

func (s span) has(t time.Time) bool { return t.After(s.from) && t.Before(s.to) }

func (s span) meets(o span) bool { return s.from.Before(o.to) && o.from.Before(s.to) }

// TestHedgesDelayNobody checks for random limits, conversations and replies that second requests
// keep the limits, that no second request starts while a turn waits, and that no turn waits for its
// place.
func TestHedgesDelayNobody(t *testing.T) {
	t.Parallel()
	seconds := 0
	rapid.Check(t, func(rt *rapid.T) {
		limits := lane.Limits{
			Concurrency: rapid.IntRange(1, 6).Draw(rt, "width"),
			RPM:         rapid.SampledFrom([]int{0, 0, 30, 90}).Draw(rt, "rpm"),
		}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		synctest.Test(t, func(t *testing.T) {
			s := newCrowd(limits, random)
			s.talk(t)
			seconds += len(s.seconds)
			if s.e.maxInFlight > limits.Concurrency {
				t.Fatalf("%d at once, limit %d", s.e.maxInFlight, limits.Concurrency)
			}
			if limits.RPM > 0 {
				mustSpread(t, s.e.arrivals, limits.RPM)
			}
			for _, second := range s.seconds {
				for _, wait := range s.waits {
					if wait.has(second.from) {
						t.Fatalf("a second request started at %v while a turn waited: %v",
							second.from.Sub(s.e.start), wait)
					}
					if limits.RPM == 0 && wait.meets(second) {
						t.Fatalf("a turn waited in %v for a second request in %v", wait, second)
					}
				}
			}
		})
	})
	if seconds == 0 {
		t.Error("no second requests")
	}
}

// A crowd is conversations that think between their turns. One request in ten hangs, and one
// fails.
type crowd struct {
	e    *endpoint
	pool *lane.Pool
	wake chan struct{}

	mu             sync.Mutex // guards the fields below
	random         *rand.Rand
	seconds, waits []span
}

func newCrowd(limits lane.Limits, random *rand.Rand) *crowd {
	s := &crowd{e: newEndpoint(0), wake: make(chan struct{}, 1), random: random}
	s.e.takes = func() time.Duration {
		if s.draw(10) == 0 {
			return hour
		}
		return second + time.Duration(s.draw(1000))*time.Millisecond
	}
	s.e.script = func(int, time.Duration) error {
		if s.draw(10) == 0 {
			return fault(assay.Server)
		}
		return nil
	}
	config := s.e.lane("l", limits)
	config.Hedge = true
	s.pool = lane.NewPool("m", []lane.Config{config}, lane.Options{
		Request: 20 * second,
		Wake: func() {
			select {
			case s.wake <- struct{}{}:
			default:
			}
		},
		Observe: func(x lane.Exchange) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if now := time.Now(); x.Second {
				s.seconds = append(s.seconds, span{now.Add(-x.Took), now})
			}
		},
	})
	return s
}

func (s *crowd) draw(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// talk starts conversations like the engine, and more turns when the pool is exhausted. It waits
// for their ends.
func (s *crowd) talk(t *testing.T) {
	var wg sync.WaitGroup
	for range 30 {
		ctx, done, ok := s.pool.Admit(t.Context())
		for !ok {
			<-s.wake
			ctx, done, ok = s.pool.Admit(t.Context())
		}
		wg.Go(func() {
			defer done()
			for range 1 + s.draw(3) {
				s.ask(ctx)
				time.Sleep(time.Duration(s.draw(2000)) * time.Millisecond)
			}
		})
	}
	s.pool.Exhausted()
	for range 20 {
		wg.Go(func() {
			time.Sleep(time.Duration(s.draw(60_000)) * time.Millisecond)
			s.ask(t.Context())
		})
	}
	wg.Wait()
}

// ask makes a turn and remembers how long it waited for a lane.
func (s *crowd) ask(ctx context.Context) {
	var since time.Time
	_, _ = s.pool.Chat(lane.OnProgress(ctx, func(sent bool) {
		if now := time.Now(); !sent {
			since = now
		} else if now.After(since) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.waits = append(s.waits, span{since, now})
		}
	}), &assay.Request{Model: "m"})
}

// TestHedgesAreDeterministic checks that equal replies lead to equal times.
func TestHedgesAreDeterministic(t *testing.T) {
	t.Parallel()
	took := make(map[time.Duration]bool)
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			took[newHanger(300, second, 0, 5).run(t, true, 20, minute)] = true
		})
	}
	if len(took) != 1 {
		t.Errorf("the same run took %v", took)
	}
}
