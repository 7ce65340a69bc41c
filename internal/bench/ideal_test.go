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
		name string
		work bench.Work
		want time.Duration
	}{
		{"nothing", bench.Work{}, 0},
		{"full slots", bench.Work{Requests: 5000, Latency: 100 * ms, Slots: 200}, 2500 * ms},
		{"more slots than requests", bench.Work{Requests: 3, Latency: 100 * ms, Slots: 200}, 100 * ms},
		{"hangs fill slots, and one is last", bench.Work{Requests: 5000, Latency: 100 * ms, Hangs: 50, Patience: 2 * time.Second, Slots: 200}, 5 * time.Second},
	} {
		if got := tc.work.Ideal(); got != tc.want {
			t.Errorf("%s: Ideal() = %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestIdealIsALowerBound: no client that serves requests in slots, in whatever
// order, is faster; and more slots or less work make the ideal no longer.
func TestIdealIsALowerBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := bench.Work{
			Requests: rapid.IntRange(0, 200).Draw(t, "requests"),
			Latency:  time.Duration(rapid.IntRange(1, 1000).Draw(t, "ms")) * time.Millisecond,
			Slots:    rapid.IntRange(1, 50).Draw(t, "slots"),
		}
		waves := (w.Requests + w.Slots - 1) / w.Slots
		if best := time.Duration(waves) * w.Latency; w.Ideal() > best {
			t.Fatalf("%+v: ideal %v, but whole waves take %v", w, w.Ideal(), best)
		}
		wider, longer, faulty := w, w, w
		wider.Slots++
		longer.Requests++
		faulty.Hangs, faulty.Patience = 1, time.Second
		if wider.Ideal() > w.Ideal() || longer.Ideal() < w.Ideal() || faulty.Ideal() < w.Ideal() {
			t.Fatalf("%+v: ideal %v, wider %v, longer %v, faulty %v", w, w.Ideal(), wider.Ideal(), longer.Ideal(), faulty.Ideal())
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
