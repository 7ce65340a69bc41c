//go:build !race

// The tests of this file play days of virtual time, for which the race detector would need many
// minutes. `make test-all` runs them without it, and others of this package with it.

package lane_test

import (
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/lane"
)

// TestLimitersThatAreStated checks lanes with stated limits at endpoints of all kinds.
func TestLimitersThatAreStated(t *testing.T) {
	t.Parallel()
	for _, row := range matrix() {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				used, refused := play(t, row.make(), row.stated, row)
				if used < .95 || refused > .01 {
					t.Errorf("used %.3f of what is permitted, %.2f %% refused", used, 100*refused)
				}
			})
		})
	}
}

// TestLimitersThatAreLearned checks lanes without stated limits. They use at least .90 of what is
// permitted in nearly all plays. In one of ten plays of "fixed 10 s/none, none", a first burst at an
// unlucky moment leaves the rate at .82 for minutes, so the bound is .80.
func TestLimitersThatAreLearned(t *testing.T) {
	t.Parallel()
	for _, row := range matrix() {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				used, refused := play(t, row.make(), lane.Limits{}, row)
				if used < .80 || refused > .02 {
					t.Errorf("used %.3f of what is permitted, %.2f %% refused", used, 100*refused)
				}
			})
		})
	}
}

// TestLaneFindsAHigherRate checks the second law for random servers: wherever an endpoint's
// limits have left a lane, it uses two thirds of a higher rate within two minutes of being
// allowed to, in any minute that begins in them.
func TestLaneFindsAHigherRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(30, 300).Draw(rt, "before")
		more := rapid.IntRange(2, 20).Draw(rt, "times")
		took := time.Duration(rapid.IntRange(50, 2000).Draw(rt, "ms")) * time.Millisecond
		kind := rapid.SampledFrom([]string{"sliding", "fixed", "token"}).Draw(rt, "kind")
		synctest.Test(t, func(t *testing.T) {
			of := func(n int) limiter {
				switch kind {
				case "sliding":
					return &sliding{n: n, span: minute}
				case "fixed":
					return &fixed{n: n, span: minute}
				}
				return &bucket{n: n, size: max(n/10, 5), span: minute}
			}
			after := time.Now().Add(6 * minute)
			s := &stranger{limiter: &changing{of(n), of(n * more), after}, took: took}
			c := lane.Config{Name: "l", Provider: client(t, s), Orders: "m"}
			p := lane.NewPool("m", []lane.Config{c}, lane.Options{})
			saturate(p, 2*n*more/10+200, 9*minute)
			most := 0
			for from := after; from.Before(after.Add(2 * minute)); from = from.Add(second) {
				most = max(most, between(s.accepted, from, from.Add(minute)))
			}
			if most < n*more*2/3 {
				t.Errorf("%s, %d then %d in %v: at most %d in a minute", kind, n, n*more, took, most)
			}
		})
	})
}
