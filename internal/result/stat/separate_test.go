package stat_test

import (
	"math"
	"testing"

	"github.com/assay-eval/assay/internal/result/stat"
)

// TestSeparateIsNewcombes compares the interval with Newcombe's first example of method 10.
func TestSeparateIsNewcombes(t *testing.T) {
	t.Parallel()
	trials := func(full, n int) (groups []stat.Group) {
		for i := range n {
			g := stat.Group{N: 1}
			if i < full {
				g.Full = 1
			}
			groups = append(groups, g)
		}
		return groups
	}
	d, i := stat.Separate(trials(56, 70), trials(48, 80), 0.95)
	if math.Abs(d-0.2) > 1e-9 || math.Abs(i.Low-0.0524) > 5e-5 || math.Abs(i.High-0.3339) > 5e-5 {
		t.Errorf("difference %.4f (%.4f to %.4f), want 0.2 (0.0524 to 0.3339)", d, i.Low, i.High)
	}
}
