package stat_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/stat"
)

// TestWilsonReference compares with published values: Newcombe, "Two-sided
// confidence intervals for the single proportion", Statistics in Medicine 17
// (1998), table I, method 3.
func TestWilsonReference(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		k, n      int
		low, high float64
	}{
		{81, 263, .2553, .3662},
		{15, 148, .0624, .1605},
		{0, 20, 0, .1611},
		{1, 29, .0061, .1718},
	} {
		got := stat.Wilson(tc.k, tc.n, stat.Z95)
		if math.Abs(got.Low-tc.low) > 5e-5 || math.Abs(got.High-tc.high) > 5e-5 {
			t.Errorf("Wilson(%d, %d) = %.4f, want [%.4f, %.4f]", tc.k, tc.n, got, tc.low, tc.high)
		}
	}
}

func TestWilsonLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5000).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		i, wide := stat.Wilson(k, n, stat.Z95), stat.Wilson(k, n, stat.Z99)
		if i.Low < 0 || i.High > 1 || i.Low > i.High || wide.Low > i.Low || wide.High < i.High {
			t.Fatalf("95 %%: %v, 99 %%: %v", i, wide)
		}
		if p := float64(k) / float64(max(n, 1)); n > 0 && (p < i.Low-1e-12 || p > i.High+1e-12) {
			t.Fatalf("%v does not hold %v", i, p)
		}
		mirror := stat.Wilson(n-k, n, stat.Z95)
		if n > 0 && (math.Abs(mirror.Low-(1-i.High)) > 1e-9 || math.Abs(mirror.High-(1-i.Low)) > 1e-9) {
			t.Fatalf("%v is not the mirror of %v", mirror, i)
		}
	})
}
