package spec_test

import (
	"math"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// TestLuckIsUniform compares the draws with the uniform distribution by the maximum distance of
// their distribution functions (Kolmogorov–Smirnov).
func TestLuckIsUniform(t *testing.T) {
	t.Parallel()
	const n = 20000
	var draws []float64
	for seed := range uint64(n / 10) {
		for k := range 10 {
			draws = append(draws, spec.Draw(seed, "tool", k).Success)
		}
	}
	slices.Sort(draws)
	far := 0.0
	for i, u := range draws {
		far = max(far, math.Abs(u-float64(i)/n), math.Abs(u-float64(i+1)/n))
	}
	if limit := 1.95 / math.Sqrt(n); far > limit { // p = 0.001
		t.Errorf("distance to uniform %v, want below %v", far, limit)
	}
}

// TestFaultIsPinned pins the kinds of the first faults of a tool, and checks that kinds get their
// shares no matter whether the call succeeds.
func TestFaultIsPinned(t *testing.T) {
	t.Parallel()
	mix := assay.FaultMix{assay.FaultBefore: .5, assay.FaultAfter: .3, assay.FaultStale: .2}
	var first []assay.ToolFault
	for k := range 6 {
		first = append(first, spec.Draw(7, "tool", k).Fault(mix))
	}
	want := []assay.ToolFault{"before", "before", "stale", "before", "before", "after"}
	if !slices.Equal(first, want) {
		t.Errorf("the first kinds are %q, want %q", first, want)
	}

	const n = 20000
	counts := make(map[assay.ToolFault]float64)
	total := 0.0
	for seed := range uint64(n) {
		if luck := spec.Draw(seed, "tool", 0); luck.Success > .7 {
			counts[luck.Fault(mix)]++
			total++
		}
	}
	for kind, share := range mix {
		if got := counts[kind] / total; math.Abs(got-share) > 4*math.Sqrt(share*(1-share)/total) {
			t.Errorf("the share of %s is %.3f, want %.1f", kind, got, share)
		}
	}
}
