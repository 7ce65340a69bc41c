package assay_test

import (
	"math"
	"testing"

	"github.com/assay-eval/assay"
)

// TestMinusZeroIsZero checks that the two zeros of floating-point numbers make one trial.
func TestMinusZeroIsZero(t *testing.T) {
	t.Parallel()
	trial := func(reliability float64) assay.Trial {
		return assay.NewTrial(assay.Cell{Reliability: reliability}, assay.TaskRef{}, assay.Setting{}, 1, 1)
	}
	minus := trial(math.Copysign(0, -1))
	if minus.ID != trial(0).ID || math.Signbit(minus.Reliability) {
		t.Errorf("-0 makes trial %s with reliability %v, 0 makes %s", minus.ID, minus.Reliability, trial(0).ID)
	}
}
