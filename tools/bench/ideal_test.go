package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestIdealTime(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tc := range []struct {
		name   string
		trials []stay
		slots  int
		want   time.Duration
	}{
		{"no trials", nil, 200, 0},
		{"full slots", slices.Repeat([]stay{{100 * ms, 0}}, 5000), 200, 2500 * ms},
		{"more slots than trials", slices.Repeat([]stay{{100 * ms, 0}}, 3), 200, 100 * ms},
		{"hang at the end", []stay{{100 * ms, 0}, {100 * ms, 0}, {2000 * ms, 0}}, 2, 2100 * ms},
		{"hang first", []stay{{2000 * ms, 0}, {100 * ms, 0}, {100 * ms, 0}}, 2, 2000 * ms},
		{"waits hold no slot", []stay{{100 * ms, 1000 * ms}, {100 * ms, 0}}, 1, 1100 * ms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := idealTime(tc.trials, tc.slots); got != tc.want {
				t.Errorf("idealTime() = %v, want %v", got, tc.want)
			}
		})
	}
}

// TestIdealTimeBounds checks that the ideal is at least the longest trial and
// the mean work per slot, and exceeds that mean by at most one trial.
func TestIdealTimeBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOf(rapid.IntRange(1, 1000)).Draw(t, "ms")
		slots := rapid.IntRange(1, 50).Draw(t, "slots")
		var trials []stay
		var sum, longest time.Duration
		for _, n := range ms {
			d := time.Duration(n) * time.Millisecond
			trials, sum, longest = append(trials, stay{slot: d}), sum+d, max(longest, d)
		}
		got, mean := idealTime(trials, slots), sum/time.Duration(slots)
		if got < max(mean, longest) || got > mean+longest {
			t.Fatalf("%v in %d slots: %v, but the mean is %v and the longest trial %v",
				ms, slots, got, mean, longest)
		}
	})
}

func TestUsedShare(t *testing.T) {
	t.Parallel()
	lanes := []laneLimits{{"a", 100, 0}, {"b", 0, 100_000}}
	both := map[string]traffic{"a": {100, 100_000}, "b": {100, 100_000}}
	for _, tc := range []struct {
		name   string
		byLane map[string]traffic
		span   time.Duration
		want   float64
	}{
		{"no traffic", nil, time.Minute, 0},
		{"all of both", both, time.Minute, 1},
		{"half of the time", both, 2 * time.Minute, 0.5},
		{"a minute that has begun counts in full", both, 61 * time.Second, 0.5},
		{"one lane idle", map[string]traffic{"a": {100, 100_000}}, time.Minute, 0.5},
		// b permits 50 requests of 2,000 tokens, a permits 100.
		{"smaller lane idle", map[string]traffic{"a": {100, 200_000}}, time.Minute, 2.0 / 3},
		{"unknown deployment", map[string]traffic{"c": {100, 100_000}}, time.Minute, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := usedShare(lanes, tc.byLane, tc.span)
			if math.Abs(got-tc.want) > 1e-12 {
				t.Errorf("usedShare() = %v, want %v", got, tc.want)
			}
		})
	}
}
