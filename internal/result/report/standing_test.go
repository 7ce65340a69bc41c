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

// TestStandingsAreAboutOneSetOfTrials gives two models the same outcomes at the same cost, and one
// of them further trials that fail, claim to be done and are dear. The rows have to be equal.
func TestStandingsAreAboutOneSetOfTrials(t *testing.T) {
	t.Parallel()
	var trials []assay.Trial
	var attempts []assay.Attempt
	for _, model := range []string{"a", "b"} {
		for i := range 12 {
			of := trial(model, "optimal", 0.8, fmt.Sprint(i))
			of.World = "assay-1"
			trials = append(trials, of)
			if i >= 4 && model == "b" {
				continue
			}
			a := outcome(of, assay.FullSuccess, 2)
			if a.Failures = 1; i%4 == 0 {
				a.Level, a.Stop = assay.Failure, assay.Answered
			}
			if i >= 4 {
				a.Level, a.CostUSD = assay.Failure, 9
			}
			attempts = append(attempts, a)
		}
	}
	superseded := outcome(trials[0], assay.Failure, 2)
	superseded.Superseded = true
	stopped := fault(trials[12], assay.Interrupted)
	attempts = append([]assay.Attempt{superseded, stopped}, attempts...)
	x, err := report.Design{}.Analyze("e", slices.Values(trials), all(attempts...), report.Beside{})
	if err != nil || len(x.Standings) != 2 {
		t.Fatal(x, err)
	}
	a, b := x.Standings[0], x.Standings[1]
	if a.Common != 4 || b.Common != 4 || a.Done+b.Done != 16 {
		t.Errorf("%d and %d common trials, %d and %d done", a.Common, b.Common, a.Done, b.Done)
	}
	if a.Price == nil || b.Price == nil || *a.Price.Dollars != *b.Price.Dollars ||
		*a.Price.Dollars != 5*0.25/3 {
		t.Errorf("prices %+v and %+v, want five attempts for three successes", a.Price, b.Price)
	}
	if a.PerTrial != 5*0.25/4 || b.PerTrial != a.PerTrial {
		t.Errorf("$%v and $%v a trial, want five attempts for four", a.PerTrial, b.PerTrial)
	}
	for _, s := range rows[effort](x.Effort) {
		if s.CostPerFull == nil || *s.CostPerFull != *a.Price.Dollars {
			t.Errorf("%s: a success has two prices, %v and %v", s.Model, *a.Price.Dollars, s.CostPerFull)
		}
	}
	if a.Success != b.Success || a.Recovery != b.Recovery || a.Hit != b.Hit || a.Hit != 4 ||
		a.FalseSuccess != b.FalseSuccess || a.Failed != b.Failed || a.Failed != 1 {
		t.Errorf("two identical models:\n%+v\n%+v", a, b)
	}
}

// A price has no upper limit if some of the cost is unknown, also if all of it is at some task.
func TestPriceOfUnknownCosts(t *testing.T) {
	t.Parallel()
	for _, unpriced := range []int{0, 50} {
		var trials []assay.Trial
		var attempts []assay.Attempt
		for i := range 12 {
			trials = append(trials, trial("m", "optimal", 1, fmt.Sprint(i)))
			a := outcome(trials[i], assay.FullSuccess, 2)
			if i == 0 && unpriced > 0 {
				a.CostUSD, a.UnpricedTokens = 0, unpriced
			}
			attempts = append(attempts, a)
		}
		x, err := report.Design{}.Analyze("e", slices.Values(trials), all(attempts...), report.Beside{})
		if err != nil || len(x.Standings) != 1 {
			t.Fatal(x, err)
		}
		s := x.Standings[0]
		if s.Unpriced != unpriced || s.Price == nil || s.Price.Low == nil || (s.Price.High == nil) != (unpriced > 0) {
			t.Errorf("%d tokens of unknown cost: price %+v, %d tokens", unpriced, s.Price, s.Unpriced)
		}
	}
}
