package report_test

import (
	"fmt"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// TestSimulatedModelsAreNotTheBest checks that a simulated model is not compared with real ones,
// even if these lack trials.
func TestSimulatedModelsAreNotTheBest(t *testing.T) {
	t.Parallel()
	var x scene
	for _, model := range []string{"sim/expert", "real"} {
		for i := range 20 {
			a := x.try(cellOf(model, "easy", .9), fmt.Sprint(i), 1, assay.Setting{}, false)
			a.Ended, a.Pilot = assay.Finished, new(assay.PilotScores)
		}
	}
	x.attempts = x.attempts[:30]
	for _, s := range x.analyze(t, report.Beside{}).Standings {
		if s.Best || s.Compared {
			t.Errorf("%s takes part in the comparison", s.Model)
		}
		if s.Failed != 0 {
			t.Errorf("%s: %d failures of the pilot world count as claims", s.Model, s.Failed)
		}
	}
}
