package lane_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

func TestConcurrencyIsFullAndHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		p := poolOf(e, lane.Limits{Concurrency: 5})
		mustAll(t, ask(t.Context(), p, 50))
		took := time.Since(e.start)
		if took != 10*time.Second || e.maxInFlight != 5 {
			t.Errorf("50 requests of 1s took %v with %d at once, want 10s with 5", took, e.maxInFlight)
		}
	})
}

// TestPoolUsesEveryLane checks that two lanes of different speed share the work so
// that both end together.
func TestPoolUsesEveryLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fast, slow := newEndpoint(time.Second), newEndpoint(4*time.Second)
		p := lane.NewPool("m", []lane.Config{
			slow.lane("slow", lane.Limits{Concurrency: 1}),
			fast.lane("fast", lane.Limits{Concurrency: 1}),
		}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 50))
		if took := time.Since(fast.start); took != 40*time.Second {
			t.Errorf("took %v, want 40s: 40 on the fast lane, 10 on the slow", took)
		}
	})
}

func TestFirstComeFirstServed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		p := poolOf(e, lane.Limits{Concurrency: 2})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, err := p.Chat(t.Context(), &assay.Request{}); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
		}
		wg.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("served in the order %v", order)
		}
	})
}

// TestWindowsKeepLimitsWithoutIdling checks invariant 6 for random limits, latencies
// and arrivals. No span of a minute exceeds the limit, and no request waits while
// its lane could start it.
func TestWindowsKeepLimitsWithoutIdling(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		rpm := rapid.IntRange(1, 40).Draw(rt, "rpm")
		tpm := rapid.SampledFrom([]int{0, 3000, 20000}).Draw(rt, "tpm")
		tokens := rapid.IntRange(1, 1000).Draw(rt, "tokens")
		width := rapid.IntRange(1, 8).Draw(rt, "width")
		n := rapid.IntRange(1, 120).Draw(rt, "n")
		took := time.Duration(rapid.IntRange(1, 8000).Draw(rt, "ms")) * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			e := newEndpoint(took)
			e.tokens = tokens
			limits := lane.Limits{Concurrency: width, RPM: rpm, TPM: tpm, Burst: rpm}
			options := lane.Options{Queue: 100 * time.Hour}
			p := lane.NewPool("m", []lane.Config{e.lane("l", limits)}, options)
			mustAll(t, ask(t.Context(), p, n))

			if e.maxInFlight > width {
				t.Fatalf("%d at once, limit %d", e.maxInFlight, width)
			}
			mustSpread(t, e.arrivals, rpm)
			if tpm > 0 {
				// Requests that ran before the real cost was known are bounded by
				// the width. After that the window is exact.
				mustSpread(t, e.arrivals, max(1, tpm/tokens)+width)
				return
			}
			if err := checkNoIdling(e.arrivals, rpm, width, took); err != nil {
				t.Fatal(err)
			}
		})
	})
}

// mustSpread fails if more than limit arrivals are within a minute.
func mustSpread(t *testing.T, arrivals []time.Duration, limit int) {
	t.Helper()
	for i := range arrivals {
		j := i + limit
		if j < len(arrivals) && arrivals[j]-arrivals[i] < time.Minute {
			t.Fatalf("%d requests within %v, limit %d per minute",
				limit+1, arrivals[j]-arrivals[i], limit)
		}
	}
}

// checkNoIdling returns an error if a request started later than a slot and the
// window allowed.
func checkNoIdling(arrivals []time.Duration, rpm, width int, took time.Duration) error {
	const span = time.Minute + 500*time.Millisecond
	for i, at := range arrivals {
		ideal := time.Duration(0)
		if i >= width {
			ideal = max(ideal, arrivals[i-width]+took)
		}
		if i >= rpm {
			ideal = max(ideal, arrivals[i-rpm]+span)
		}
		if at != ideal {
			return fmt.Errorf("request %d started at %v instead of %v", i, at, ideal)
		}
	}
	return nil
}

// TestRetryAfterIsKeptByItsRequest checks the other half of invariant 6: a request that is refused
// keeps the announced wait at that lane, and no other request and no other lane waits for it.
func TestRetryAfterIsKeptByItsRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limited, other := newEndpoint(time.Second), newEndpoint(time.Second)
		limited.script = func(n int, _ time.Duration) error {
			if n == 1 {
				f := fault(assay.RateLimited)
				f.RetryAfter = 30 * time.Second
				return f
			}
			return nil
		}
		p := lane.NewPool("m", []lane.Config{
			limited.lane("limited", lane.Limits{Concurrency: 1}),
			other.lane("other", lane.Limits{Concurrency: 1}),
		}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 60))
		if n := len(limited.arrivals); n < 29 || limited.arrivals[n-1] >= 31*time.Second {
			t.Errorf("requests of the limited lane at %v, want one a second", limited.arrivals)
		}
		for i, at := range other.arrivals {
			if at != time.Duration(i)*time.Second {
				t.Fatalf("request %d of the other lane came at %v, so it was slowed down", i, at)
			}
		}
	})
}

// TestBackoffHoldsNoSlot checks that a turn makes at most five requests, and that
// another turn can use its slot while it backs off.
func TestBackoffHoldsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(0)
		e.script = func(n int, _ time.Duration) error {
			if n == 2 {
				return nil // request of the second turn
			}
			return fault(assay.Server)
		}
		p := poolOf(e, lane.Limits{Concurrency: 1})
		var resp *assay.Response
		var first error
		var wg sync.WaitGroup
		wg.Go(func() { resp, first = p.Chat(t.Context(), &assay.Request{}) })
		synctest.Wait() // until the first turn backs off
		start := time.Now()
		if _, err := p.Chat(t.Context(), &assay.Request{}); err != nil || time.Since(start) != 0 {
			t.Errorf("the second turn waited %v, error %v, so the backoff held the slot",
				time.Since(start), err)
		}
		wg.Wait()
		f, waits := assay.AsFault(first), resp.Waits
		if f == nil || f.Kind != assay.Server || waits.Requests != lane.MaxRequests ||
			waits.Retried[assay.Server] != lane.MaxRequests-1 {
			t.Errorf("fault %v, waits %+v; want %d requests", f, waits, lane.MaxRequests)
		}
	})
}

// run for long.
func TestLaneThatNeverWorkedIsGivenUpSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(0)
		e.script = func(int, time.Duration) error { return fault(assay.Network) }
		p := poolOf(e, lane.Limits{})
		for p.Closed() == nil {
			ask(t.Context(), p, 8)
		}
		if took := time.Since(e.start); took < 30*time.Second || took > 50*time.Second {
			t.Errorf("given up after %v, want slightly more than 5 + 10 + 20 seconds", took)
		}
	})
}

// TestQueueHasADeadline checks that a turn that waits too long gets a timeout that
// states the wait.
func TestQueueHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(0)
		limits := lane.Limits{Concurrency: 1, RPM: 1}
		options := lane.Options{Queue: 90 * time.Second}
		p := lane.NewPool("m", []lane.Config{e.lane("l", limits)}, options)
		failed := 0
		for _, err := range ask(t.Context(), p, 5) {
			if f := assay.AsFault(err); f != nil {
				failed++
				if f.Kind != assay.Timeout || !strings.Contains(f.Detail, "waited 1m30s for a lane of m") {
					t.Errorf("fault %v", f)
				}
			}
		}
		if failed != 3 {
			t.Errorf("%d of 5 gave up, want 3", failed)
		}
	})
}

func TestResponseHasCostAndLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		e.tokens = 2_000_000
		c := e.lane("l", lane.Limits{Concurrency: 1})
		c.Price = lane.Price{Input: 0.27, Output: 1.10}
		p := lane.NewPool("m", []lane.Config{c}, lane.Options{})
		resp, err := p.Chat(t.Context(), &assay.Request{})
		if err != nil || resp.Cost != 0.54 || resp.Lane != "l" {
			t.Errorf("response %+v, error %v; want a cost of 0.54 on l", resp, err)
		}
	})
}
