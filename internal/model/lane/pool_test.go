package lane_test

import (
	"context"
	"errors"
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

// endpoint is a provider that answers after some time, or as a script says,
// and keeps a book of its requests.
type endpoint struct {
	took   time.Duration
	tokens int
	served string
	script func(n int, at time.Duration) error // n counts from 1
	quotas func(n int) []assay.QuotaState

	mu       sync.Mutex // also held while script runs
	start    time.Time
	arrivals []time.Duration
	inFlight int
	most     int
}

func newEndpoint(took time.Duration) *endpoint {
	return &endpoint{took: took, served: "m", start: time.Now()}
}

func (e *endpoint) Chat(ctx context.Context, _ assay.Request) (assay.Response, error) {
	e.mu.Lock()
	at := time.Since(e.start)
	e.arrivals = append(e.arrivals, at)
	n := len(e.arrivals)
	e.inFlight++
	e.most = max(e.most, e.inFlight)
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		e.inFlight--
		e.mu.Unlock()
	}()
	select {
	case <-time.After(e.took):
	case <-ctx.Done():
		return assay.Response{}, ctx.Err()
	}
	if err := e.follow(n, at); err != nil {
		return assay.Response{}, err
	}
	resp := assay.Response{ServedModel: e.served, Usage: assay.Usage{InputTokens: e.tokens}}
	if e.quotas != nil {
		resp.Quotas = e.quotas(n)
	}
	return resp, nil
}

func (e *endpoint) follow(n int, at time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.script == nil {
		return nil
	}
	return e.script(n, at)
}

func (e *endpoint) lane(name string, limits lane.Limits) lane.Config {
	return lane.Config{Name: name, Provider: e, Limits: limits, Orders: "m"}
}

// ask sends n requests at once and returns when all are answered.
func ask(ctx context.Context, p *lane.Pool, n int) (errs []error) {
	errs = make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, errs[i] = p.Chat(ctx, assay.Request{Model: "m"}) })
	}
	wg.Wait()
	return errs
}

func mustAll(t *testing.T, errs []error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestConcurrencyIsFullAndHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 5})}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 50))
		if took := time.Since(e.start); took != 10*time.Second || e.most != 5 {
			t.Errorf("50 requests of 1s took %v with %d at once, want 10s with 5", took, e.most)
		}
	})
}

// TestPoolUsesEveryLane: two lanes of different speed share the work so that
// both end together.
func TestPoolUsesEveryLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fast, slow := newEndpoint(time.Second), newEndpoint(4*time.Second)
		p := lane.NewPool("m", []lane.Config{
			slow.lane("slow", lane.Limits{Concurrency: 1}), fast.lane("fast", lane.Limits{Concurrency: 1}),
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
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 2})}, lane.Options{})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				if _, err := p.Chat(t.Context(), assay.Request{}); err != nil {
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

// TestWindowsHold is invariant 6 as a property: whatever the limits, latencies
// and arrivals, no span of a minute holds more than the limit, and no request
// waits while its lane could have served it.
func TestWindowsHold(t *testing.T) {
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
			p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: width, RPM: rpm, TPM: tpm})}, lane.Options{Queue: 100 * time.Hour})
			mustAll(t, ask(t.Context(), p, n))
			for i := range e.arrivals {
				if j := i + rpm; j < len(e.arrivals) && e.arrivals[j]-e.arrivals[i] < time.Minute {
					t.Fatalf("%d requests within %v, limit %d a minute", rpm+1, e.arrivals[j]-e.arrivals[i], rpm)
				}
			}
			if e.most > width {
				t.Fatalf("%d at once, limit %d", e.most, width)
			}
			if fits := max(1, tpm/tokens); tpm > 0 {
				// What ran before a settled count was known is bounded by the
				// width; afterwards the window is exact.
				for i := range e.arrivals {
					if j := i + fits + width; j < len(e.arrivals) && e.arrivals[j]-e.arrivals[i] < time.Minute {
						t.Fatalf("%d requests of %d tokens within %v, limit %d a minute", j-i+1, tokens, e.arrivals[j]-e.arrivals[i], tpm)
					}
				}
			}
			if tpm == 0 && workConserving(e.arrivals, rpm, width, took) != nil {
				t.Fatal(workConserving(e.arrivals, rpm, width, took))
			}
		})
	})
}

// workConserving replays the ideal schedule: each request starts as soon as a
// slot and the window allow.
func workConserving(arrivals []time.Duration, rpm, width int, took time.Duration) error {
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
			return fmt.Errorf("request %d started at %v, could have at %v", i, at, ideal)
		}
	}
	return nil
}

func fault(kind assay.FaultKind) *assay.Fault { return &assay.Fault{Kind: kind, Detail: "scripted"} }

// TestRetryAfterPausesOneLane is the other half of invariant 6: a 429 makes its
// lane wait exactly as long as asked, and only its lane.
func TestRetryAfterPausesOneLane(t *testing.T) {
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
			limited.lane("limited", lane.Limits{Concurrency: 1}), other.lane("other", lane.Limits{Concurrency: 1}),
		}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 60))
		if len(limited.arrivals) < 2 || limited.arrivals[1] != 31*time.Second {
			t.Errorf("the limited lane was asked at %v, want the second time at 31s", limited.arrivals)
		}
		for i, at := range other.arrivals {
			if at != time.Duration(i)*time.Second {
				t.Fatalf("the other lane's request %d came at %v: it was slowed", i, at)
			}
		}
	})
}

// TestRetriesAreFewAndOutsideTheSlot: five requests a turn, exponential waits,
// and while one turn backs off another uses the slot.
func TestRetriesAreFewAndOutsideTheSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(0)
		e.script = func(n int, _ time.Duration) error {
			if n == 2 {
				return nil // the turn that came second
			}
			return fault(assay.Server)
		}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{})
		var resp assay.Response
		var first error
		var wg sync.WaitGroup
		wg.Go(func() { resp, first = p.Chat(t.Context(), assay.Request{}) })
		synctest.Wait() // the first turn now backs off
		start := time.Now()
		if _, err := p.Chat(t.Context(), assay.Request{}); err != nil || time.Since(start) != 0 {
			t.Errorf("the second turn waited %v, error %v: the slot was held during a backoff", time.Since(start), err)
		}
		wg.Wait()
		f := assay.AsFault(first)
		if f == nil || f.Kind != assay.Server || resp.Waits.Requests != lane.MaxRequests || resp.Waits.Retried[assay.Server] != lane.MaxRequests-1 {
			t.Errorf("fault %v, waits %+v; want %d requests", f, resp.Waits, lane.MaxRequests)
		}
	})
}

func TestHangIsCutAtTheRequestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Hour)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{})}, lane.Options{Request: 10 * time.Second})
		resp, err := p.Chat(t.Context(), assay.Request{Budget: 25 * time.Second})
		f := assay.AsFault(err)
		if f == nil || f.Kind != assay.Timeout || f.Lane != "l" {
			t.Fatalf("fault %v, want a timeout of lane l", f)
		}
		if resp.Waits.Requests != 3 || resp.Waits.Working != 25*time.Second {
			t.Errorf("waits %+v, want 3 requests in 25s of work: 10 + 10 + 5", resp.Waits)
		}
		if !strings.Contains(f.Detail, "trial's working time") {
			t.Errorf("detail %q does not say which limit it was", f.Detail)
		}
	})
}

func TestDeadKeyClosesItsLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead, good := newEndpoint(0), newEndpoint(time.Second)
		dead.script = func(int, time.Duration) error { return fault(assay.Auth) }
		p := lane.NewPool("m", []lane.Config{dead.lane("dead", lane.Limits{Concurrency: 3}), good.lane("good", lane.Limits{Concurrency: 1})}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 20))
		if len(dead.arrivals) > 3 {
			t.Errorf("the dead lane was asked %d times, want once for each slot at most", len(dead.arrivals))
		}
		if p.Closed() != nil || p.Width() != 1 {
			t.Errorf("closed %v, width %d; want open with 1", p.Closed(), p.Width())
		}
	})
}

// TestNoLaneLeft: those who wait learn of it, and the reason is the lane's.
func TestNoLaneLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		e.script = func(int, time.Duration) error { return fault(assay.Quota) }
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{})
		for _, err := range ask(t.Context(), p, 10) {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.Quota {
				t.Errorf("error %v, want the quota fault", err)
			}
		}
		if len(e.arrivals) != 1 {
			t.Errorf("%d requests, want 1", len(e.arrivals))
		}
		if f := assay.AsFault(p.Closed()); f == nil || f.Kind != assay.Quota {
			t.Errorf("Closed() = %v", p.Closed())
		}
	})
}

// TestServerThatIsDownIsProbed: after a few faults a single request probes the
// lane at growing intervals, and when it is back the lane is full again.
func TestServerThatIsDownIsProbed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(100 * time.Millisecond)
		const down, back = time.Second, time.Minute
		asked := 0
		e.script = func(_ int, at time.Duration) error {
			if at < down || at >= back {
				return nil
			}
			asked++
			return fault(assay.Network)
		}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 10})}, lane.Options{})
		failed := 0
		for _, err := range ask(t.Context(), p, 300) {
			if err != nil {
				failed++
			}
		}
		if asked > 30 {
			t.Errorf("%d requests went to a server that was down", asked)
		}
		if failed > 10 {
			t.Errorf("%d of 300 turns failed although the server came back", failed)
		}
		if took := time.Since(e.start); took > 3*time.Minute {
			t.Errorf("took %v", took)
		}
	})
}

func TestServerThatStaysDownEndsTheRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Hour) // hangs for ever
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 10})}, lane.Options{Request: 30 * time.Second})
		for p.Closed() == nil {
			ask(t.Context(), p, 10)
		}
		if took := time.Since(e.start); took > 40*time.Minute {
			t.Errorf("a server that only hangs held the model for %v", took)
		}
	})
}

// TestIdentity is invariant 7: another model's answer is a fault, at once.
func TestIdentity(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		served string
		ok     bool
	}{
		{"gpt-4o-mini", true},
		{"GPT-4o-Mini", true},
		{"gpt-4o-mini-2024-07-18", true},
		{"snapshot-7", true},
		{"gpt-4o", false},
		{"gpt-4o-mini-2024", false},
		{"gpt-4o-mini-audio-preview", false},
		{"qwen2.5-72b-instruct", false},
		{"", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newEndpoint(0)
			e.served = tc.served
			p := lane.NewPool("m", []lane.Config{{Name: "l", Provider: e, Orders: "gpt-4o-mini", Serves: []string{"snapshot-7"}}}, lane.Options{})
			resp, err := p.Chat(t.Context(), assay.Request{})
			if tc.ok {
				if err != nil {
					t.Errorf("served by %q: %v", tc.served, err)
				}
				return
			}
			f := assay.AsFault(err)
			if f == nil || f.Kind != assay.Identity || len(e.arrivals) != 1 || resp.ServedModel != tc.served {
				t.Errorf("served by %q: fault %v after %d requests, want identity after 1", tc.served, f, len(e.arrivals))
			}
		})
	}
}

// TestMistakeInTheFilesIsFoundSoon: a lane that never worked and whose answers
// bear another model's name costs five requests, not thousands; one that has
// worked is not closed by a few.
func TestMistakeInTheFilesIsFoundSoon(t *testing.T) {
	t.Parallel()
	for _, kind := range []assay.FaultKind{assay.Identity, assay.BadRequest} {
		synctest.Test(t, func(t *testing.T) {
			e := newEndpoint(time.Second)
			e.script = func(n int, _ time.Duration) error {
				if n > 1 {
					return fault(kind)
				}
				return nil
			}
			worked := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{})
			ask(t.Context(), worked, 20)
			if err := worked.Closed(); err != nil || len(e.arrivals) != 20 {
				t.Errorf("%s: a lane that had worked is closed after %d requests: %v", kind, len(e.arrivals), err)
			}
			e = newEndpoint(time.Second)
			e.script = func(int, time.Duration) error { return fault(kind) }
			never := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{})
			ask(t.Context(), never, 20)
			if f := assay.AsFault(never.Closed()); f == nil || f.Kind != kind || len(e.arrivals) != 5 {
				t.Errorf("%s: a lane that never worked: %v after %d requests, want closed after 5", kind, f, len(e.arrivals))
			}
		})
	}
}

func TestStopWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Hour)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{Request: 2 * time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, err := range ask(ctx, p, 5) {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.Interrupted {
				t.Errorf("error %v, want interrupted", err)
			}
		}
		if took := time.Since(e.start); took != time.Second {
			t.Errorf("stopping took %v, want 1s", took)
		}
		if lanes, waiting := p.Status(); lanes[0].InFlight != 0 || waiting.Requests != 0 {
			t.Errorf("after the stop %+v, %+v", lanes, waiting)
		}
	})
}

// TestDrain: a soft stop does not wait for limits and pauses, but for requests
// in flight and for slots.
func TestDrain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 2, RPM: 4})}, lane.Options{})
		time.AfterFunc(500*time.Millisecond, p.Drain)
		done, interrupted := 0, 0
		for _, err := range ask(t.Context(), p, 10) {
			if f := assay.AsFault(err); f == nil {
				done++
			} else if f.Kind == assay.Interrupted {
				interrupted++
			}
		}
		if took := time.Since(e.start); done != 4 || interrupted != 6 || took != 2*time.Second {
			t.Errorf("%d done and %d interrupted after %v, want 4 and 6 after 2s", done, interrupted, took)
		}
	})
}

// TestLaneThatNeverWorkedIsGivenUpSoon: a wrong address does not hold a run.
func TestLaneThatNeverWorkedIsGivenUpSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(0)
		e.script = func(int, time.Duration) error { return fault(assay.Network) }
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{})}, lane.Options{})
		for p.Closed() == nil {
			ask(t.Context(), p, 8)
		}
		if took := time.Since(e.start); took < 30*time.Second || took > 50*time.Second {
			t.Errorf("given up after %v, want a little more than 5 + 10 + 20 seconds", took)
		}
	})
}

// TestQueueHasADeadline: no wait is without end, and its fault says so.
func TestQueueHasADeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(0)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1, RPM: 1})}, lane.Options{Queue: 90 * time.Second})
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

func TestPriceAndStatus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		e.tokens = 2_000_000
		c := e.lane("l", lane.Limits{Concurrency: 1})
		c.Price = lane.Price{Input: 0.27, Output: 1.10}
		p := lane.NewPool("m", []lane.Config{c}, lane.Options{})
		resp, err := p.Chat(t.Context(), assay.Request{})
		if err != nil || resp.Cost != 0.54 || resp.Lane != "l" {
			t.Errorf("response %+v, error %v; want a cost of 0.54 on l", resp, err)
		}
	})
}
