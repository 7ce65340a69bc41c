package lane_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestPriceOfAllKindsOfTokens(t *testing.T) {
	t.Parallel()
	u := assay.Usage{
		InputTokens: 10_000, OutputTokens: 1000,
		CachedTokens: 7000, CacheWriteTokens: 2000, ReasoningTokens: 600,
	}
	full := lane.Price{Input: 3, Output: 15, Cached: new(0.3), CacheWrite: new(3.75)}
	for _, tc := range []struct {
		price lane.Price
		usage assay.Usage
		want  float64
	}{
		{full, u, 0.0276}, // 1000 at 3, 7000 at 0.3, 2000 at 3.75 and 1000 at 15
		{lane.Price{Input: 3, Output: 15}, u, 0.045},
		{lane.Price{Input: 3, Output: 15, Cached: new(0.)}, u, 0.024},
		{full, assay.Usage{InputTokens: 10, CachedTokens: 20}, 0.000003},
		{full, assay.Usage{InputTokens: 10, CachedTokens: 4, CacheWriteTokens: 8}, 0.0000237},
		{full, assay.Usage{}, 0},
	} {
		if got := tc.price.Of(tc.usage); got != tc.want {
			t.Errorf("%+v of %+v costs %v, want %v", tc.price, tc.usage, got, tc.want)
		}
	}
}

// TestForecastPricesCaches checks that a forecast knows the price of cached input.
func TestForecastPricesCaches(t *testing.T) {
	t.Parallel()
	lanes := []lane.Config{{Name: "l", Price: lane.Price{
		Input: 1, Output: 10, Cached: new(0.1), CacheWrite: new(2.),
	}}}
	got := lane.Foresee(lanes, lane.Work{
		Conversations: 100, Turns: 1, Prompt: 1000, Reply: 10, Cached: 0.75, CacheWrite: 0.125,
	})
	const want = 0.055 // 125 at 1, 750 at 0.1, 125 at 2 and 10 at 10, a hundred times
	if d := got.Cost - want; d > 1e-9 || d < -1e-9 {
		t.Errorf("cost %v, want %v", got.Cost, want)
	}
}

// A waster's first replies cost tokens, but cannot be used.
type waster struct{ bad int }

func (w *waster) Chat(context.Context, *assay.Request) (*assay.Response, error) {
	resp := assay.Response{Usage: assay.Usage{InputTokens: 100, OutputTokens: 10}}
	if w.bad > 0 {
		w.bad--
		return &resp, &assay.Fault{Kind: assay.Malformed}
	}
	return &resp, nil
}

// TestFailedRequestsArePaid checks that a turn's usage and cost include all its requests.
func TestFailedRequestsArePaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for bad, paid := range []int{1, 2, 3, 4, 5, 5} {
			p := lane.NewPool("m", []lane.Config{{
				Name: "l", Provider: &waster{bad}, Price: lane.Price{Input: 1, Output: 10},
				Serves: []string{""},
			}}, lane.Options{})
			resp, err := p.Chat(t.Context(), &assay.Request{})
			if failed := bad == lane.MaxRequests; (err != nil) != failed {
				t.Errorf("after %d bad replies: %v", bad, err)
			}
			want := assay.Usage{InputTokens: 100 * paid, OutputTokens: 10 * paid}
			if cost := assay.RoundUSD(0.0002 * float64(paid)); resp.Usage != want || resp.Cost != cost {
				t.Errorf("after %d bad replies: usage %+v, $%v; want %+v, $%v",
					bad, resp.Usage, resp.Cost, want, cost)
			}
		}
	})
}

// A cacher reads 90 of 100 input tokens from a cache.
type cacher struct{}

func (cacher) Chat(context.Context, *assay.Request) (*assay.Response, error) {
	time.Sleep(10 * time.Millisecond)
	return &assay.Response{Usage: assay.Usage{
		InputTokens: 100, CachedTokens: 90, OutputTokens: 1,
	}}, nil
}

// TestLanesCountWhatTheEndpointCounts checks that input from a cache does not use up a limit of
// tokens if the endpoint does not count it.
func TestLanesCountWhatTheEndpointCounts(t *testing.T) {
	t.Parallel()
	took := make(map[bool]time.Duration)
	for _, free := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := lane.NewPool("m", []lane.Config{{
				Name: "l", Provider: cacher{}, CachedFree: free, Serves: []string{""},
				Limits: lane.Limits{Concurrency: 4, ITPM: 1000},
			}}, lane.Options{})
			began := time.Now()
			mustAll(t, ask(t.Context(), p, 60))
			took[free] = time.Since(began)
		})
	}
	if took[true] > 2*time.Minute || took[false] < 4*time.Minute {
		t.Errorf("60 requests of 10 uncached tokens at 1,000 a minute took %v, and %v if the "+
			"endpoint counts all 100", took[true], took[false])
	}
}

// A loser answers every second request, and loses the reply to the others.
type loser struct{ sent int }

func (l *loser) Chat(context.Context, *assay.Request) (*assay.Response, error) {
	if l.sent++; l.sent%2 == 0 {
		return &assay.Response{Lost: assay.Lost{Requests: 1}}, &assay.Fault{Kind: assay.Network}
	}
	return &assay.Response{Usage: assay.Usage{InputTokens: 300, OutputTokens: 10}}, nil
}

// TestLostRequestsHaveADearestReading checks what a request may have cost whose reply was lost:
// input at the highest density and price, and all the output that the request permits.
func TestLostRequestsHaveADearestReading(t *testing.T) {
	t.Parallel()
	const bytes = 200
	dear := lane.Price{Input: 1, Output: 10, Cached: new(0.1), CacheWrite: new(2.)}
	for _, tc := range []struct {
		name     string
		price    lane.Price
		sampling assay.Sampling
		output   int
		usd      float64
		unpriced bool
	}{
		{"without a limit", dear, assay.Sampling{}, 4096, (301*2 + 4096*10) / 1e6, true},
		{"max_tokens", dear, assay.Sampling{MaxTokens: new(50)}, 50, (301*2 + 50*10) / 1e6, true},
		{
			"thinking", dear,
			assay.Sampling{MaxTokens: new(50), Thinking: new(100)},
			150,
			(301*2 + 150*10) / 1e6, true,
		},
		{"without a price", lane.Price{}, assay.Sampling{MaxTokens: new(50)}, 50, 0, true},
		{"free", lane.Price{Stated: true}, assay.Sampling{MaxTokens: new(50)}, 50, 0, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var seen []assay.Lost
			p := lane.NewPool("m", []lane.Config{{
				Name: "l", Provider: &loser{}, Price: tc.price, Serves: []string{""},
			}}, lane.Options{Observe: func(x lane.Exchange) { seen = append(seen, x.Lost) }})
			req := &assay.Request{
				Sampling: tc.sampling, Messages: []assay.Message{{Content: strings.Repeat("x", bytes)}},
			}
			known, err := p.Chat(t.Context(), req)
			if err != nil || known.Lost != (assay.Lost{}) {
				t.Errorf("%s: %+v, %v", tc.name, known, err)
			}
			paid := &purse{most: math.MaxInt}
			resp, err := p.Chat(lane.PaidBy(t.Context(), paid), req) // its first reply is lost
			spent := paid.spent
			want := assay.Lost{Requests: 1, Tokens: 301 + tc.output, USD: assay.RoundUSD(tc.usd)}
			if err != nil || resp.Lost != want || resp.Cost != known.Cost ||
				resp.Usage.InputTokens != 300 || resp.Waits.Requests != 2 {
				t.Errorf("%s: %+v, %v; want lost %+v", tc.name, resp, err, want)
			}
			unpriced := resp.Usage.UnpricedTokens - known.Usage.UnpricedTokens
			if tc.unpriced && unpriced != want.Tokens || !tc.unpriced && unpriced != 0 {
				t.Errorf("%s: %d tokens are unpriced", tc.name, unpriced)
			}
			if len(spent) != 2 || spent[0].Lost != want || spent[1].Cost != known.Cost {
				t.Errorf("%s: spent %+v", tc.name, spent)
			}
			if !slices.Equal(seen, []assay.Lost{{}, want, {}}) {
				t.Errorf("%s: observers saw %+v", tc.name, seen)
			}
		})
	}
}

// A purse pays for some requests.
type purse struct {
	most  int
	mu    sync.Mutex // guards spent
	spent []assay.Response
}

func (p *purse) Spend(r *assay.Response) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent = append(p.spent, *r)
}

func (p *purse) Allow() *assay.Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.spent) < p.most {
		return nil
	}
	return errSpent
}

var errSpent = &assay.Fault{Kind: assay.Interrupted, Detail: "the budget is spent"}

// TestSpentBudgetsStopRetries checks that a turn is not tried again when the money is spent.
func TestSpentBudgetsStopRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &waster{bad: lane.MaxRequests}
		p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: w, Serves: []string{""}}}, lane.Options{})
		resp, err := p.Chat(lane.PaidBy(t.Context(), &purse{most: 2}), &assay.Request{})
		if err != errSpent || resp.Waits.Requests != 2 || resp.Usage.InputTokens != 200 {
			t.Errorf("%+v, %v; want two requests and the fault of the budget", resp, err)
		}
	})
}

// TestSpentBudgetsStopQueues checks that turns which wait for a lane when the money is spent do not send
// a request, and that those do not count towards the lane's limits.
func TestSpentBudgetsStopQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := lane.NewPool("m", []lane.Config{{
			Name: "l", Provider: &waster{}, Serves: []string{""},
			Limits: lane.Limits{Concurrency: 1, RPM: 2},
		}}, lane.Options{})
		began, paid := time.Now(), &purse{most: 3}
		var turns sync.WaitGroup
		var refused atomic.Int32
		for range 50 {
			turns.Go(func() {
				resp, err := p.Chat(lane.PaidBy(t.Context(), paid), &assay.Request{})
				if err == errSpent && resp.Waits.Requests == 0 {
					refused.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		turns.Wait()
		if len(paid.spent) != 3 || refused.Load() != 47 {
			t.Errorf("%d requests were sent, and %d turns refused; want 3 and 47", len(paid.spent), refused.Load())
		}
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("turns that may send nothing have waited %v for their lane", took)
		}
	})
}
