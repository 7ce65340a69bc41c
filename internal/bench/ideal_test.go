package bench_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/bench"
)

func TestIdeal(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, tc := range []struct {
		name   string
		trials []time.Duration
		slots  int
		want   time.Duration
	}{
		{"nothing", nil, 200, 0},
		{"full slots", slices.Repeat([]time.Duration{100 * ms}, 5000), 200, 2500 * ms},
		{"more slots than trials", slices.Repeat([]time.Duration{100 * ms}, 3), 200, 100 * ms},
		{"a hang at the end", []time.Duration{100 * ms, 100 * ms, 2000 * ms}, 2, 2100 * ms},
		{"a hang at the beginning", []time.Duration{2000 * ms, 100 * ms, 100 * ms}, 2, 2000 * ms},
	} {
		if got := bench.Ideal(tc.trials, tc.slots); got != tc.want {
			t.Errorf("%s: Ideal() = %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestIdealLaws: it is at least the longest trial and the slots' even share,
// and at most one trial more than that share; more slots make it no longer.
func TestIdealLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOf(rapid.IntRange(1, 1000)).Draw(t, "ms")
		slots := rapid.IntRange(1, 50).Draw(t, "slots")
		var trials []time.Duration
		var sum, longest time.Duration
		for _, n := range ms {
			d := time.Duration(n) * time.Millisecond
			trials, sum, longest = append(trials, d), sum+d, max(longest, d)
		}
		got := bench.Ideal(trials, slots)
		if share := sum / time.Duration(slots); got < max(share, longest) || got > share+longest {
			t.Fatalf("%v in %d slots: %v, with a share of %v and a longest of %v", ms, slots, got, share, longest)
		}
	})
}

func TestUsed(t *testing.T) {
	t.Parallel()
	lanes := []bench.Lane{{"a", 100, 0}, {"b", 0, 100_000}}
	for _, tc := range []struct {
		name    string
		traffic map[string]bench.Traffic
		span    time.Duration
		want    float64
	}{
		{"nothing", nil, time.Minute, 0},
		{"all of both", map[string]bench.Traffic{"a": {100, 100_000}, "b": {100, 100_000}}, time.Minute, 1},
		{"half of the time", map[string]bench.Traffic{"a": {100, 100_000}, "b": {100, 100_000}}, 2 * time.Minute, 0.5},
		{"a window that has begun counts whole", map[string]bench.Traffic{"a": {100, 100_000}, "b": {100, 100_000}}, 61 * time.Second, 0.5},
		{"one lane idle", map[string]bench.Traffic{"a": {100, 100_000}}, time.Minute, 0.5},
		// b permits 50 requests of 2,000 tokens, a permits 100.
		{"the smaller lane idle", map[string]bench.Traffic{"a": {100, 200_000}}, time.Minute, 2.0 / 3},
		{"another deployment", map[string]bench.Traffic{"c": {100, 100_000}}, time.Minute, 0},
	} {
		if got := bench.Used(lanes, tc.traffic, tc.span); math.Abs(got-tc.want) > 1e-12 {
			t.Errorf("%s: Used() = %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestUsedOfLanesThatKeepTheirLimits: it is between 0 and 1, 1 where each lane
// used up one of its limits, and grows with what a lane lets through.
func TestUsedOfLanesThatKeepTheirLimits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var lanes []bench.Lane
		some, full := make(map[string]bench.Traffic), make(map[string]bench.Traffic)
		minutes := rapid.Int64Range(1, 5).Draw(t, "minutes")
		for i := range rapid.IntRange(1, 6).Draw(t, "lanes") {
			l := bench.Lane{
				Deployment: fmt.Sprint(i),
				RPM:        rapid.IntRange(0, 1000).Draw(t, "rpm"),
				TPM:        rapid.IntRange(0, 1_000_000).Draw(t, "tpm"),
			}
			if l.RPM == 0 && l.TPM == 0 {
				l.RPM = 1
			}
			lanes = append(lanes, l)
			requests, tokens := minutes*int64(l.RPM), minutes*int64(l.TPM)
			if l.RPM == 0 {
				requests = 1 + tokens/1000
			}
			if l.TPM == 0 {
				tokens = 1000 * requests
			}
			full[l.Deployment] = bench.Traffic{Requests: requests, Tokens: tokens}
			some[l.Deployment] = bench.Traffic{
				Requests: rapid.Int64Range(0, requests).Draw(t, "requests"),
				Tokens:   rapid.Int64Range(0, tokens).Draw(t, "tokens"),
			}
		}
		span := time.Duration(minutes)*time.Minute - time.Duration(rapid.Int64Range(0, int64(time.Minute)-1).Draw(t, "before the end"))
		if got := bench.Used(lanes, full, span); math.Abs(got-1) > 1e-9 {
			t.Fatalf("Used() of all = %v", got)
		}
		if got := bench.Used(lanes, some, span); !(got >= 0 && got <= 1+1e-9) {
			t.Fatalf("Used() = %v", got)
		}
	})
}

func TestMedian(t *testing.T) {
	t.Parallel()
	values := []float64{9, 1, 5}
	if got := bench.Median(values...); got != 5 || !slices.Equal(values, []float64{9, 1, 5}) {
		t.Errorf("Median() = %v, and the values are now %v", got, values)
	}
}
