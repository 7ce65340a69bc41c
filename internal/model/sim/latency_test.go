package sim_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
)

// TestLatency runs in virtual time.
func TestLatency(t *testing.T) {
	t.Parallel()
	first := newTalk(t, sim.Mute, assay.Listed, assay.Baseline, task(fetcher)).req
	second := newTalk(t, sim.Mute, assay.Listed, assay.Baseline, task(fetcher)).play(".").req
	synctest.Test(t, func(t *testing.T) {
		took := func(m *sim.Models, req assay.Request) time.Duration {
			start := time.Now()
			resp, err := m.Chat(t.Context(), &req)
			if err != nil {
				t.Fatal(err)
			}
			if d := time.Since(start); resp.Waits.Working != d {
				t.Errorf("took %v, but the response states %v", d, resp.Waits.Working)
			}
			return time.Since(start)
		}
		latency := sim.Latency{Median: 2 * time.Second, Sigma: .5}
		one, two := sim.New(catalog, latency), sim.New(catalog, latency)
		d := took(one, first)
		if d <= 0 || took(one, first) != d || took(two, first) != d {
			t.Errorf("the same conversation takes %v, %v and %v",
				d, took(one, first), took(two, first))
		}
		if took(one, second) == d {
			t.Errorf("two conversations both take %v", d)
		}
		got := took(sim.New(catalog, sim.Latency{Median: 2 * time.Second}), first)
		if got != 2*time.Second {
			t.Errorf("without spread the latency is %v, want the median", got)
		}
		if got := took(sim.New(catalog, sim.Latency{}), first); got != 0 {
			t.Errorf("the zero Latency takes %v", got)
		}
		const n = 400
		below := 0
		for i := range n {
			req := first
			next := assay.Message{Role: assay.User, Content: fmt.Sprint(i)}
			req.Messages = append(slices.Clone(first.Messages), next)
			if took(one, req) < 2*time.Second {
				below++
			}
		}
		if sigma := math.Sqrt(n) / 2; math.Abs(float64(below)-n/2) > 4*sigma {
			t.Errorf("%d of %d replies take less than the median", below, n)
		}
	})
}

// TestLatencyEndsWithContext ends contexts in every way, with and without latency. Chat returns at
// once, and its fault gives the reason.
func TestLatencyEndsWithContext(t *testing.T) {
	t.Parallel()
	req := newTalk(t, sim.Mute, assay.Listed, assay.Baseline, task(fetcher)).req
	plug := errors.New("the plug was pulled")
	late := &assay.Fault{Kind: assay.Timeout, Lane: "a", Detail: "no answer"}
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			name   string
			ctx    func() (context.Context, context.CancelFunc)
			kind   assay.FaultKind
			detail string
		}{
			{"deadline", func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), time.Second)
			}, assay.Timeout, "deadline"},
			{"deadline with a fault", func() (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(t.Context(), time.Second, late)
			}, assay.Timeout, "no answer"},
			{"deadline for a reason", func() (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(t.Context(), time.Second, plug)
			}, assay.Timeout, "plug"},
			{"cancelled", func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, assay.Interrupted, "canceled"},
			{"cancelled for a reason", func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(time.Second, func() { cancel(plug) })
				return ctx, func() { cancel(nil) }
			}, assay.Interrupted, "plug"},
		} {
			ctx, cancel := tc.ctx()
			start := time.Now()
			check := func(err error, after time.Duration) {
				t.Helper()
				f := assay.AsFault(err)
				if f == nil || f.Kind != tc.kind ||
					(f == late) != (tc.name == "deadline with a fault") ||
					!strings.Contains(f.Detail, tc.detail) || time.Since(start) != after {
					t.Errorf("%s: %v after %v; want %s, %q, after %v",
						tc.name, err, time.Since(start), tc.kind, tc.detail, after)
				}
			}
			_, err := sim.New(catalog, sim.Latency{Median: time.Hour}).Chat(ctx, &req)
			check(err, time.Second)
			_, err = sim.New(catalog, sim.Latency{}).Chat(ctx, &req)
			check(err, time.Second)
			cancel()
		}
	})
}
