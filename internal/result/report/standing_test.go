package report_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// TestSimulatedModelsAreNotTheBest checks that a simulated model is not compared with real ones,
// even if these lack trials.
func TestSimulatedModelsAreNotTheBest(t *testing.T) {
	t.Parallel()
	var trials []assay.Trial
	var attempts []assay.Attempt
	for _, model := range []string{"real", "sim/expert"} {
		for i := range 20 {
			tr := trial(model, "optimal", .9, fmt.Sprint("t", i))
			trials = append(trials, tr)
			if model != "real" || i < 10 {
				a := outcome(tr, assay.Failure, 3)
				a.Ended, a.Pilot = assay.Finished, new(assay.PilotScores)
				attempts = append(attempts, a)
			}
		}
	}
	x, err := report.Design{}.Analyze("e", slices.Values(trials), all(attempts...), report.Beside{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range x.Standings {
		if s.Best || s.Compared {
			t.Errorf("%s takes part in the comparison", s.Model)
		}
		if s.Failed != 0 {
			t.Errorf("%s: %d failures of the pilot world count as claims", s.Model, s.Failed)
		}
	}
}
