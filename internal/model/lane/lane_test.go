package lane_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// TestInputAndOutputTokensApart: the reservation is an estimate, what was
// really used is settled, and the rest is refunded at once.
func TestInputAndOutputTokensApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		e.tokens = 100 // of the prompt; the reply has none
		for _, tc := range []struct {
			limits lane.Limits
			first  int // requests before the first wait for a window
		}{
			{lane.Limits{Concurrency: 1, ITPM: 1000}, 10},
			// 256 tokens are reserved for the first reply and refunded, so the
			// window never fills.
			{lane.Limits{Concurrency: 1, OTPM: 256}, 30},
			{lane.Limits{Concurrency: 1, TPM: 700}, 7},
		} {
			e.arrivals, e.start = nil, time.Now()
			p := lane.NewPool("m", []lane.Config{e.lane("l", tc.limits)}, lane.Options{})
			mustAll(t, ask(t.Context(), p, 30))
			got := 1
			for got < len(e.arrivals) && e.arrivals[got]-e.arrivals[got-1] == time.Second {
				got++
			}
			if got != tc.first {
				t.Errorf("%+v: %d requests before the first wait, want %d (%v)", tc.limits, got, tc.first, e.arrivals)
			}
		}
	})
}

// TestRequestsPerDay counts what earlier runs made today.
func TestRequestsPerDay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		c := e.lane("l", lane.Limits{Concurrency: 1, RPD: 10})
		c.Spent = []lane.Spent{{At: time.Now().Add(-25 * time.Hour), Requests: 5}, {At: time.Now().Add(-time.Hour), Requests: 7}}
		p := lane.NewPool("m", []lane.Config{c}, lane.Options{Queue: 48 * time.Hour})
		mustAll(t, ask(t.Context(), p, 4))
		// Seven of today's ten are gone; the fourth waits until they are a day
		// old, by a minute more than a day.
		want := []time.Duration{0, time.Second, 2 * time.Second, 23*time.Hour + time.Minute}
		if !slices.Equal(e.arrivals, want) {
			t.Errorf("requests at %v, want %v", e.arrivals, want)
		}
	})
}

// TestHeadersAreHeeded: a limit that the endpoint tells is kept to, and what it
// has counted beyond our requests is room that others have taken.
func TestHeadersAreHeeded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		e.quotas = func(n int) []assay.QuotaState {
			return []assay.QuotaState{{Bucket: assay.Requests, Limit: 10, Remaining: max(0, 10-n-4), Reset: 30 * time.Second}}
		}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 8))
		// Somebody else took four of the ten. When the sixth reply has come, at
		// 6 s, nothing remains, and half a minute later there may be more.
		want := []time.Duration{0, 1e9, 2e9, 3e9, 4e9, 5e9, 36e9, 67e9}
		if !slices.Equal(e.arrivals, want) {
			t.Errorf("requests at %v, want %v", e.arrivals, want)
		}
		lanes, _ := p.Status()
		if lanes[0].Learned.RPM != 10 {
			t.Errorf("learned %+v, want 10 requests a minute", lanes[0].Learned)
		}
	})
}

// TestSpacing: an endpoint that refuses within its own limit takes no bursts,
// and gets its requests evenly from then on.
func TestSpacing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(100 * time.Millisecond)
		e.script = func(n int, _ time.Duration) error {
			if n == 3 {
				return &assay.Fault{Kind: assay.RateLimited, Bucket: assay.Requests, Limit: 60, RetryAfter: 5 * time.Second}
			}
			return nil
		}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1, RPM: 60})}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 6))
		for i, at := range e.arrivals[3:] {
			if want := 5300*time.Millisecond + time.Duration(i)*time.Second; at != want {
				t.Errorf("request %d came at %v, want %v (%v)", i+4, at, want, e.arrivals)
			}
		}
	})
}

// TestConversationsStay on their lane when that costs nothing, and only then.
func TestConversationsStay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := newEndpoint(time.Second), newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{
			a.lane("a", lane.Limits{Concurrency: 2}), b.lane("b", lane.Limits{Concurrency: 2}),
		}, lane.Options{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				home := ""
				for range 20 {
					resp, err := p.Chat(t.Context(), assay.Request{Lane: home})
					if err != nil {
						t.Error(err)
					}
					if home != "" && resp.Lane != home {
						t.Errorf("a conversation moved from %s to %s", home, resp.Lane)
					}
					home = resp.Lane
				}
			})
		}
		wg.Wait()
		// A fifth that would like to be where a is full goes to b at once.
		wg.Go(func() { _, _ = p.Chat(t.Context(), assay.Request{Lane: "a"}) })
		wg.Go(func() { _, _ = p.Chat(t.Context(), assay.Request{Lane: "a"}) })
		synctest.Wait()
		start := time.Now()
		if resp, err := p.Chat(t.Context(), assay.Request{Lane: "a"}); err != nil || resp.Lane != "b" || resp.Waits.Queued != 0 {
			t.Errorf("lane %s after %v, error %v; want b at once", resp.Lane, time.Since(start), err)
		}
		wg.Wait()
	})
}

// TestAdmit: places are for conversations that could start now, a place is
// taken until the first request or the end, and Wake tells of new ones.
func TestAdmit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		e := newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 2, RPM: 3})}, lane.Options{
			Wake: func() { wake <- struct{}{} },
		})
		admit := func(want bool) (context.Context, func()) {
			t.Helper()
			ctx, done, ok := p.Admit(t.Context())
			if ok != want {
				t.Fatalf("admitted: %v, want %v", ok, want)
			}
			return ctx, done
		}
		first, _ := admit(true)
		_, never := admit(true)
		admit(false)
		never() // it had no request to make
		<-wake
		second, _ := admit(true)
		var wg sync.WaitGroup
		for _, ctx := range []context.Context{first, second} {
			wg.Go(func() { _, _ = p.Chat(ctx, assay.Request{}) })
		}
		synctest.Wait()
		admit(false) // both slots are in use
		start := time.Now()
		<-wake
		if took := time.Since(start); took != time.Second {
			t.Errorf("woken after %v, want 1s, when a slot was free", took)
		}
		third, _ := admit(true)
		wg.Go(func() { _, _ = p.Chat(third, assay.Request{}) })
		synctest.Wait()
		admit(false) // the third request of three a minute
		<-wake
		if took := time.Since(start); took != 60500*time.Millisecond {
			t.Errorf("woken after %v, want 1m0.5s, when the window had moved on", took)
		}
		admit(true)
		wg.Wait()
	})
}

// TestHoldAndSetLimits are what a user changes in a run.
func TestHoldAndSetLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := func(string) bool { return true }
		e := newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{})
		p.Hold(true, all)
		go func() {
			time.Sleep(time.Minute)
			p.SetLimits(map[assay.Bucket]int{assay.Concurrency: 5}, all)
			p.Hold(false, all)
		}()
		mustAll(t, ask(t.Context(), p, 10))
		if took := time.Since(e.start); took != time.Minute+2*time.Second || e.most != 5 {
			t.Errorf("took %v with %d at once, want 1m2s with 5", took, e.most)
		}
	})
}

// TestPausedByTheUser: a pause may last longer than a queue's deadline, and a
// soft stop does not wait for its end.
func TestPausedByTheUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := func(string) bool { return true }
		e := newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, lane.Options{Queue: time.Minute})
		p.Hold(true, all)
		time.AfterFunc(time.Hour, func() { p.Hold(false, all) })
		mustAll(t, ask(t.Context(), p, 1))
		if took := time.Since(e.start); took != time.Hour+time.Second {
			t.Errorf("a turn that waited for the user took %v, want 1h0m1s", took)
		}
		p.Hold(true, all)
		time.AfterFunc(time.Minute/2, p.Drain)
		start := time.Now()
		for _, err := range ask(t.Context(), p, 2) {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.Interrupted || time.Since(start) != time.Minute/2 {
				t.Errorf("fault %v after %v, want an interruption at the stop", err, time.Since(start))
			}
		}
	})
}

// TestNoWindowExceedsItsLimit holds over several lanes, limits of every kind,
// replies of any length and conversations that stay where they are.
func TestNoWindowExceedsItsLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "lanes")
		turns := rapid.IntRange(1, 120).Draw(rt, "turns")
		synctest.Test(t, func(t *testing.T) {
			var endpoints []*endpoint
			var configs []lane.Config
			for i := range n {
				e := newEndpoint(time.Duration(rapid.IntRange(1, 3000).Draw(rt, "ms")) * time.Millisecond)
				e.tokens = 64
				endpoints = append(endpoints, e)
				configs = append(configs, e.lane(string(rune('a'+i)), lane.Limits{
					Concurrency: rapid.IntRange(1, 8).Draw(rt, "width"),
					RPM:         rapid.IntRange(0, 20).Draw(rt, "rpm"),
					ITPM:        64 * rapid.IntRange(0, 20).Draw(rt, "itpm"),
				}))
			}
			p := lane.NewPool("m", configs, lane.Options{Queue: 100 * time.Hour})
			var wg sync.WaitGroup
			for range turns {
				wg.Go(func() {
					// 64 tokens, as long as nothing else is known of the model
					_, err := p.Chat(t.Context(), assay.Request{Messages: []assay.Message{{Content: strings.Repeat("x", 256)}}})
					if err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for i, e := range endpoints {
				limits := configs[i].Limits
				if e.most > limits.Concurrency {
					t.Fatalf("%d at once, limit %d", e.most, limits.Concurrency)
				}
				for j, at := range e.arrivals {
					later := 0
					for _, other := range e.arrivals[j:] {
						if other-at < time.Minute {
							later++
						}
					}
					if limits.RPM > 0 && later > limits.RPM || limits.ITPM > 0 && 64*later > limits.ITPM {
						t.Fatalf("%d requests of 64 tokens within a minute of %v, limits %+v", later, at, limits)
					}
				}
			}
		})
	})
}

// chat is a provider that is a function.
type chat func() (assay.Response, error)

func (c chat) Chat(context.Context, assay.Request) (assay.Response, error) { return c() }

// TestRefusalThatWasChanceIsTakenBack: two refusals in a row pause the lane for
// the second that they ask for, and the pause ends when most of what was sent
// after them has succeeded.
func TestRefusalThatWasChanceIsTakenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var sent, resumed atomic.Int64
		p := lane.NewPool("m", []lane.Config{{
			Name: "l", Orders: "m", Limits: lane.Limits{Concurrency: 16}, Provider: chat(func() (assay.Response, error) {
				switch sent.Add(1) {
				case 2, 3:
					time.Sleep(10 * time.Millisecond)
					return assay.Response{}, &assay.Fault{Kind: assay.RateLimited, RetryAfter: time.Second}
				case 18: // the first one refused was not believed yet: one more was sent
					resumed.Store(int64(time.Since(start)))
				}
				time.Sleep(100 * time.Millisecond)
				return assay.Response{ServedModel: "m"}, nil
			}),
		}}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 40))
		if got := time.Duration(resumed.Load()); got != 100*time.Millisecond {
			t.Errorf("the lane went on after %v, want 100ms, when its other requests had succeeded", got)
		}
	})
}
