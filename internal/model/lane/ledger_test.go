package lane_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/lane"
)

// TestLedgerNamesTheBottleneck checks the exact slot-time and waits of runs that are
// bound by a single limit.
func TestLedgerNamesTheBottleneck(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name            string
		limits          lane.Limits
		requests        int
		reason          string
		used, available time.Duration
		waited          time.Duration
		occupancy       float64
	}{
		// Ten rounds of five requests. During the last round no request waits.
		{
			"concurrency",
			lane.Limits{Concurrency: 5},
			50,
			"concurrency", 50 * time.Second, 50 * time.Second, 9 * time.Second, 1,
		},
		// Three requests at once, and three more when the window has moved on. They
		// wait until 1m00.5s, and the run takes a second longer.
		{
			"rpm",
			lane.Limits{Concurrency: 10, RPM: 3, Burst: 3},
			6,
			"rpm", 6 * time.Second, 615 * time.Second, 60500 * time.Millisecond,
			608. / 615, // the lane always waits for its limit, except for the last second
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := poolOf(newEndpoint(time.Second), tc.limits)
				mustAll(t, ask(t.Context(), p, tc.requests))
				p.Exhausted()
				time.Sleep(time.Hour) // does not count, because no trial is waiting
				l := p.Ledgers()[0]
				if l.Used != tc.used || l.Available != tc.available ||
					l.Waited[tc.reason] != tc.waited || len(l.Waited) != 1 {
					t.Errorf("%+v, want %v of %v used, waited %v",
						l, tc.used, tc.available, tc.waited)
				}
				if o := l.Occupancy(); math.Abs(o-tc.occupancy) > .01 {
					t.Errorf("occupancy %.3f, want %.3f", o, tc.occupancy)
				}
			})
		})
	}
}

// TestLedgerLaws checks for random limits that the used slot-time is the requests'
// time and at most the available slot-time, and that waits are not longer than the
// run.
func TestLedgerLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "n")
		limits := lane.Limits{
			Concurrency: rapid.IntRange(1, 6).Draw(rt, "width"),
			RPM:         rapid.IntRange(0, 30).Draw(rt, "rpm"),
		}
		took := time.Duration(rapid.IntRange(1, 5000).Draw(rt, "ms")) * time.Millisecond
		synctest.Test(t, func(t *testing.T) {
			a, b := newEndpoint(took), newEndpoint(took/2)
			p := lane.NewPool("m", []lane.Config{
				a.lane("a", limits), b.lane("b", lane.Limits{Concurrency: 2}),
			}, lane.Options{})
			mustAll(t, ask(t.Context(), p, n))
			run := time.Since(a.start)

			var waited time.Duration
			for i, e := range []*endpoint{a, b} {
				l := p.Ledgers()[i]
				want := time.Duration(len(e.arrivals)) * e.took
				if l.Used != want || l.Used > l.Available {
					t.Fatalf("lane %s: %v of %v used, want %v", l.Name, l.Used, l.Available, want)
				}
				if o := l.Occupancy(); o < 0 || o > 1 {
					t.Fatalf("occupancy %v", o)
				}
				for _, d := range l.Waited {
					waited += d
				}
			}
			if waited > run {
				t.Fatalf("waited %v in a run of %v", waited, run)
			}
		})
	})
}
