package spec_test

import (
	"math"
	"slices"
	"testing"

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
