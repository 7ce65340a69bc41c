package stat_test

import (
	"math"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// The levels for two-sided 5 % and five equal looks match the published boundaries of Lan and
// DeMets.
func TestSpendReference(t *testing.T) {
	t.Parallel()
	want := []float64{4.8769, 3.3569, 2.6803, 2.2898, 2.0310}
	got := stat.Spend(.025, []float64{.2, .4, .6, .8, 1})
	for i, p := range got {
		if z := math.Sqrt2 * math.Erfcinv(2*p); math.Abs(z-want[i]) > 2e-4 {
			t.Errorf("look %d: z = %.4f, want %.4f", i, z, want[i])
		}
	}
	if one := stat.Spend(.05, []float64{1})[0]; math.Abs(one-.05) > 1e-6 {
		t.Errorf("a single look has the level %v", one)
	}
}
