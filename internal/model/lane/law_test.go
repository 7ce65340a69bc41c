//go:build !race

// The tests of this file play hours of virtual time without goroutines, so the race detector has
// nothing to find. `make test-all` runs them without it.

package lane_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/model/lane"
)

// kinds makes a limiter of each kind that permits a rate.
var kinds = map[string]func(perSecond int) limiter{
	"fixed second":   func(r int) limiter { return &fixed{n: r, span: second} },
	"fixed 10 s":     func(r int) limiter { return &fixed{n: 10 * r, span: 10 * second} },
	"fixed minute":   func(r int) limiter { return &fixed{n: 60 * r, span: minute} },
	"sliding second": func(r int) limiter { return &sliding{n: r, span: second} },
	"sliding minute": func(r int) limiter { return &sliding{n: 60 * r, span: minute} },
	"leaky":          func(r int) limiter { return &bucket{n: 60 * r, size: 1 + r, span: minute} },
	"small bucket":   func(r int) limiter { return &bucket{n: 60 * r, size: 1 + 6*r, span: minute} },
	"large bucket":   func(r int) limiter { return &bucket{n: 60 * r, size: 1 + 60*r, span: minute} },
}

// waits are what refusals announce.
var waits = map[string]func(time.Duration) time.Duration{
	"none":  nil,
	"right": func(d time.Duration) time.Duration { return d },
	"zero":  func(time.Duration) time.Duration { return 0 },
	"short": func(d time.Duration) time.Duration { return d / 2 },
}

// eachServer calls check for each kind of limiter and announced wait, at two rates. Nearly all
// have to use nine tenths, and none less than least.
func eachServer(
	t *testing.T, least float64,
	check func(t *testing.T, of func(int) limiter, r int, s *server) float64,
) {
	t.Parallel()
	all, short := 0, 0
	for kind, of := range kinds {
		for wait, announced := range waits {
			for _, r := range []int{3, 15} {
				t.Run(fmt.Sprintf("%s, %d a second, wait %s", kind, r, wait), func(t *testing.T) {
					used := check(t, of, r, &server{wait: announced})
					if all++; used < 0.9 {
						short++
					}
					if used < least {
						t.Errorf("used %.3f of what is permitted, want %.2f", used, least)
					}
				})
			}
		}
	}
	if short > all/12 {
		t.Errorf("%d of %d used less than 0.9 of what is permitted", short, all)
	}
}

// TestLimitersThatAreConstant checks the third law.
func TestLimitersThatAreConstant(t *testing.T) {
	eachServer(t, 0.9, func(t *testing.T, of func(int) limiter, r int, s *server) float64 {
		s.limiter = of(r)
		s.play(lane.Limits{}, 14*minute)
		used, refused := s.share(float64(r), 4*minute, 14*minute)
		if most := max(0.02, 9/(75*float64(r))); refused > most {
			t.Errorf("%.2f %% refused", 100*refused)
		}
		if s.early > 0 || s.silence > minute {
			t.Errorf("%d early, silent for %v", s.early, s.silence)
		}
		return used
	})
}

// TestLimitersThatAreDrawn checks the third law for servers drawn at random.
func TestLimitersThatAreDrawn(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(maps.Keys(kinds))
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(names).Draw(t, "kind")
		r := int(math.Round(math.Exp2(rapid.Float64Range(0, 5).Draw(t, "log2 of the rate"))))
		wait := rapid.SampledFrom([]string{"none", "right", "zero", "short"}).Draw(t, "wait")
		s := &server{limiter: kinds[kind](r), wait: waits[wait]}
		s.play(lane.Limits{}, 14*minute)
		used, refused := s.share(float64(r), 4*minute, 14*minute)
		if most := max(0.02, 10/(75*float64(r))); used < 0.9 || refused > most {
			t.Errorf("used %.3f of what is permitted, %.2f %% refused", used, 100*refused)
		}
		if s.early > 0 || s.silence > minute {
			t.Errorf("%d early, silent for %v", s.early, s.silence)
		}
	})
}

// TestLimitersOfASecond checks the third law for limits whose first refusals look like those of a
// width, so that both the width and the rate are learned too low.
func TestLimitersOfASecond(t *testing.T) {
	t.Parallel()
	for wait, announced := range waits {
		for _, r := range []int{16, 18} {
			s := &server{limiter: kinds["sliding second"](r), wait: announced}
			s.play(lane.Limits{}, 14*minute)
			if used, _ := s.share(float64(r), 4*minute, 14*minute); used < 0.9 {
				t.Errorf("%d a second, wait %s: used %.3f of what is permitted", r, wait, used)
			}
		}
	}
}

// TestLimitersThatAreRaised checks the second law, after the highest of all minutes that begin in
// the two.
func TestLimitersThatAreRaised(t *testing.T) {
	eachServer(t, 0.85, func(_ *testing.T, of func(int) limiter, r int, s *server) float64 {
		after := start.Add(6 * minute)
		s.limiter = &changing{of(r), of(4 * r), after}
		s.play(lane.Limits{}, 9*minute)
		most := 0
		for from := after; from.Before(after.Add(2 * minute)); from = from.Add(second) {
			most = max(most, between(s.accepted, from, from.Add(minute)))
		}
		return float64(most) / float64(60*4*r)
	})
}

// TestLimitersThatAreLowered checks that a lane adapts to a limit that falls.
func TestLimitersThatAreLowered(t *testing.T) {
	eachServer(t, 0.9, func(t *testing.T, of func(int) limiter, r int, s *server) float64 {
		s.limiter = &changing{of(4 * r), of(r), start.Add(6 * minute)}
		s.play(lane.Limits{}, 15*minute)
		used, refused := s.share(float64(r), 10*minute, 15*minute)
		if refused > 0.05 {
			t.Errorf("%.2f %% refused", 100*refused)
		}
		return used
	})
}

// TestLimitersThatAreRandom checks the fourth law for random servers.
func TestLimitersThatAreRandom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "limit")
		span := rapid.SampledFrom([]time.Duration{second, minute, hour, 24 * hour}).Draw(t, "span")
		reset := rapid.SampledFrom([]time.Duration{minute, hour, 24 * hour}).Draw(t, "reset")
		s := &server{
			limiter: rapid.SampledFrom([]limiter{
				&fixed{n: n, span: span}, &sliding{n: n, span: span},
				&bucket{n: n, size: max(1, n/10), span: span},
				liar{reset},
			}).Draw(t, "kind"),
			headers: rapid.Bool().Draw(t, "headers"),
			chance:  rapid.SampledFrom([]float64{0, 0, 0.1}).Draw(t, "chance"),
			wait:    waits[rapid.SampledFrom([]string{"none", "right", "zero", "short"}).Draw(t, "wait")],
		}
		rpm := rapid.SampledFrom([]int{0, 0, 1, 60, 3000}).Draw(t, "rpm")
		s.play(lane.Limits{RPM: rpm}, 10*minute)
		// Headers forbid requests for a minute from the reply.
		if s.silence > minute+2*second {
			t.Errorf("silent for %v", s.silence)
		}
		if s.early > 0 {
			t.Errorf("%d requests before the end of an announced wait", s.early)
		}
	})
}

// TestLimitersThatAreErratic checks that refusals by chance leave a lane six tenths of what is
// possible, with and without a limit behind them. If each announces a wait of a second, a lane that
// keeps them all loses a second for each.
func TestLimitersThatAreErratic(t *testing.T) {
	t.Parallel()
	for _, chance := range []float64{0.01, 0.03, 0.1} {
		for _, rate := range []int{1, 2, 5, 10, 20} {
			for _, wait := range []string{"none", "right"} {
				for _, limit := range []bool{false, true} {
					name := fmt.Sprintf("%.0f %% of %d, wait %s, limit %v", 100*chance, rate, wait, limit)
					t.Run(name, func(t *testing.T) { playErratic(t, chance, rate, wait, limit) })
				}
			}
		}
	}
}

func playErratic(t *testing.T, chance float64, rate int, wait string, limit bool) {
	s := &server{chance: chance, wait: waits[wait]}
	width := int(math.Round(float64(rate) * replies.Seconds()))
	limits, possible := lane.Limits{Concurrency: width}, float64(width)/replies.Seconds()
	if limit {
		s.limiter, limits, possible = kinds["leaky"](rate), lane.Limits{}, float64(rate)
	}
	if wait == "right" {
		possible /= 1 + possible*chance/(1-chance)*second.Seconds()
	}
	s.play(limits, 25*minute)
	used, _ := s.share(possible, 5*minute, 25*minute)
	if used < 0.6 {
		t.Errorf("used %.3f of what is possible", used)
	}
	if s.early > 0 {
		t.Errorf("%d requests before the end of an announced wait", s.early)
	}
}
