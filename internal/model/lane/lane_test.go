package lane_test

import (
	"context"
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

// TestUnusedReservationIsRefunded checks that a request reserves an estimate for each
// bucket of tokens, and that the unused part is available again at once.
func TestUnusedReservationIsRefunded(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		limits lane.Limits
		first  int // requests before the first wait for a window
	}{
		{"input", lane.Limits{Concurrency: 1, ITPM: 1000, Burst: 99999}, 10},
		// 256 tokens are reserved for each reply and refunded, so the window never
		// fills.
		{"output", lane.Limits{Concurrency: 1, OTPM: 256, Burst: 99999}, 30},
		{"both", lane.Limits{Concurrency: 1, TPM: 700, Burst: 99999}, 7},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEndpoint(time.Second)
				e.tokens = 100 // in the prompt, and 0 in the reply
				mustAll(t, ask(t.Context(), poolOf(e, tc.limits), 30))
				got := 1
				for got < len(e.arrivals) && e.arrivals[got]-e.arrivals[got-1] == time.Second {
					got++
				}
				if got != tc.first {
					t.Errorf("%d requests before the first wait, want %d (%v)",
						got, tc.first, e.arrivals)
				}
			})
		})
	}
}

// TestRequestsPerDayIncludeEarlierRuns checks that requests of earlier runs count
// towards a limit per day.
func TestRequestsPerDayIncludeEarlierRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		c := e.lane("l", lane.Limits{Concurrency: 1, RPD: 10})
		c.Spent = []lane.Spent{
			{At: time.Now().Add(-25 * time.Hour), Requests: 5},
			{At: time.Now().Add(-time.Hour), Requests: 7},
		}
		p := lane.NewPool("m", []lane.Config{c}, lane.Options{Queue: 48 * time.Hour})
		mustAll(t, ask(t.Context(), p, 4))
		// Seven of today's ten requests are used up. The fourth request waits until
		// they are a day and a minute old.
		want := []time.Duration{0, time.Second, 2 * time.Second, 23*time.Hour + time.Minute}
		if !slices.Equal(e.arrivals, want) {
			t.Errorf("requests at %v, want %v", e.arrivals, want)
		}
	})
}

// TestConversationsStayOnTheirLane checks that a conversation stays on its lane unless
// it would have to wait there.
func TestConversationsStayOnTheirLane(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := newEndpoint(time.Second), newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{
			a.lane("a", lane.Limits{Concurrency: 2}),
			b.lane("b", lane.Limits{Concurrency: 2}),
		}, lane.Options{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				home := ""
				for range 20 {
					resp, err := p.Chat(t.Context(), &assay.Request{Lane: home})
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

		// A conversation of lane a goes to b at once if a is full.
		wg.Go(func() { _, _ = p.Chat(t.Context(), &assay.Request{Lane: "a"}) })
		wg.Go(func() { _, _ = p.Chat(t.Context(), &assay.Request{Lane: "a"}) })
		synctest.Wait()
		start := time.Now()
		resp, err := p.Chat(t.Context(), &assay.Request{Lane: "a"})
		if err != nil || resp.Lane != "b" || resp.Waits.Queued != 0 {
			t.Errorf("lane %s after %v, error %v; want b at once",
				resp.Lane, time.Since(start), err)
		}
		wg.Wait()
	})
}

// TestAdmitReservesAPlace checks that Admit only reserves places for conversations
// that could start now, that a place is held until the first request or the end,
// and that Wake is called when there is a new place.
func TestAdmitReservesAPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wake := make(chan struct{}, 1)
		e := newEndpoint(time.Second)
		limits, options := lane.Limits{Concurrency: 2, RPM: 3, Burst: 3}, lane.Options{
			Wake: func() { wake <- struct{}{} },
		}
		p := lane.NewPool("m", []lane.Config{e.lane("l", limits)}, options)
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
		never() // without any request
		<-wake
		second, _ := admit(true)
		var wg sync.WaitGroup
		for _, ctx := range []context.Context{first, second} {
			wg.Go(func() { _, _ = p.Chat(ctx, &assay.Request{}) })
		}
		synctest.Wait()
		admit(false) // both slots are in use
		start := time.Now()
		<-wake
		if took := time.Since(start); took != time.Second {
			t.Errorf("woken after %v, want 1s, when a slot becomes free", took)
		}
		third, _ := admit(true)
		wg.Go(func() { _, _ = p.Chat(third, &assay.Request{}) })
		synctest.Wait()
		admit(false) // three requests per minute are used up
		<-wake
		if took := time.Since(start); took != 60500*time.Millisecond {
			t.Errorf("woken after %v, want 1m0.5s, when the window has moved on", took)
		}
		admit(true)
		wg.Wait()
	})
}

// TestAgentsWithoutRequestsNeedNoPlace checks that conversations which end without a request, as
// with some agents, are soon admitted beside the width of the lane, but not while a request waits.
func TestAgentsWithoutRequestsNeedNoPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEndpoint(time.Second)
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 2})}, lane.Options{})
		rounds := func() (n int, contexts []context.Context, end func()) {
			var ends []func()
			for len(ends) < 50 {
				ctx, done, ok := p.Admit(t.Context())
				if !ok {
					break
				}
				ends, contexts = append(ends, done), append(contexts, ctx)
			}
			return len(ends), contexts, func() {
				for _, done := range ends {
					done()
				}
			}
		}
		var sizes []int
		for range 9 {
			n, _, end := rounds()
			sizes = append(sizes, n)
			end()
		}
		if sizes[0] != 2 || sizes[8] != 50 {
			t.Errorf("admitted at a time: %v, want first 2 and in the end 50", sizes)
		}
		n, contexts, end := rounds()
		var wg sync.WaitGroup
		for _, ctx := range contexts[:3] {
			wg.Go(func() { _, _ = p.Chat(ctx, &assay.Request{}) })
		}
		synctest.Wait()
		if _, _, ok := p.Admit(t.Context()); ok || n != 50 {
			t.Errorf("%d admitted, and another one while a request waits: %v", n, ok)
		}
		wg.Wait()
		end()
	})
}

// TestHoldAndSetLimits checks that a user can pause a lane and change its limits
// during a run.
func TestHoldAndSetLimits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := func(string) bool { return true }
		e := newEndpoint(time.Second)
		p := poolOf(e, lane.Limits{Concurrency: 1})
		p.Hold(true, all)
		go func() {
			time.Sleep(time.Minute)
			p.SetLimits(map[assay.Bucket]int{assay.Concurrency: 5}, all)
			p.Hold(false, all)
		}()
		mustAll(t, ask(t.Context(), p, 10))
		took := time.Since(e.start)
		if took != time.Minute+2*time.Second || e.maxInFlight != 5 {
			t.Errorf("took %v with %d at once, want 1m2s with 5", took, e.maxInFlight)
		}
	})
}

// TestUserPauseOutlastsQueueDeadline checks that a pause by the user may last longer
// than the queue's deadline, and that a soft stop does not wait for its end.
func TestUserPauseOutlastsQueueDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := func(string) bool { return true }
		e := newEndpoint(time.Second)
		options := lane.Options{Queue: time.Minute}
		p := lane.NewPool("m", []lane.Config{e.lane("l", lane.Limits{Concurrency: 1})}, options)
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
			f, took := assay.AsFault(err), time.Since(start)
			if f == nil || f.Kind != assay.Interrupted || took != time.Minute/2 {
				t.Errorf("fault %v after %v, want an interruption after 30s", err, took)
			}
		}
	})
}

// TestNoWindowExceedsItsLimit checks random limits on several lanes.
func TestNoWindowExceedsItsLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 3).Draw(rt, "lanes")
		turns := rapid.IntRange(1, 120).Draw(rt, "turns")
		synctest.Test(t, func(t *testing.T) {
			var endpoints []*endpoint
			var configs []lane.Config
			for i := range n {
				ms := rapid.IntRange(1, 3000).Draw(rt, "ms")
				e := newEndpoint(time.Duration(ms) * time.Millisecond)
				e.tokens = 64
				endpoints = append(endpoints, e)
				configs = append(configs, e.lane(string(rune('a'+i)), lane.Limits{
					Concurrency: rapid.IntRange(1, 8).Draw(rt, "width"),
					RPM:         rapid.IntRange(0, 20).Draw(rt, "rpm"),
					ITPM:        64 * rapid.IntRange(0, 20).Draw(rt, "itpm"),
				}))
			}

			p := lane.NewPool("m", configs, lane.Options{Queue: 100 * time.Hour})
			// The first estimate for this message is 64 tokens.
			message := assay.Message{Content: strings.Repeat("x", 256)}
			var wg sync.WaitGroup
			for range turns {
				wg.Go(func() {
					req := assay.Request{Messages: []assay.Message{message}}
					if _, err := p.Chat(t.Context(), &req); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()

			for i, e := range endpoints {
				limits := configs[i].Limits
				if e.maxInFlight > limits.Concurrency {
					t.Fatalf("%d at once, limit %d", e.maxInFlight, limits.Concurrency)
				}
				if limits.RPM > 0 {
					mustSpread(t, e.arrivals, limits.RPM)
				}
				if limits.ITPM > 0 {
					mustSpread(t, e.arrivals, limits.ITPM/64)
				}
			}
		})
	})
}
