package report_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

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
		for i := range 80 {
			of := trial(model, "optimal", 0.8, fmt.Sprint(i))
			of.World = "assay-1"
			trials = append(trials, of)
			if i >= 76 && model == "b" {
				continue
			}
			a := outcome(of, assay.FullSuccess, 2)
			if a.Failures = 1; i%4 == 0 {
				a.Level, a.Stop = assay.Failure, assay.Answered
			}
			if i >= 76 {
				a.Level, a.CostUSD = assay.Failure, 9
			}
			attempts = append(attempts, a)
		}
	}
	superseded := outcome(trials[0], assay.Failure, 2)
	superseded.Superseded = true
	stopped := fault(trials[80], assay.Interrupted)
	attempts = append([]assay.Attempt{superseded, stopped}, attempts...)
	x, err := report.Design{}.Analyze("e", slices.Values(trials), all(attempts...), report.Beside{})
	if err != nil || len(x.Standings) != 2 {
		t.Fatal(x, err)
	}
	a, b := x.Standings[0], x.Standings[1]
	if a.Common != 76 || b.Common != 76 || a.Done+b.Done != 156 {
		t.Errorf("%d and %d common trials, %d and %d done", a.Common, b.Common, a.Done, b.Done)
	}
	if a.Price == nil || b.Price == nil || *a.Price.Dollars != *b.Price.Dollars ||
		*a.Price.Dollars != 77*0.25/57 {
		t.Errorf("prices %+v and %+v, want 77 attempts for 57 successes", a.Price, b.Price)
	}
	if a.PerTrial != 77*0.25/76 || b.PerTrial != a.PerTrial {
		t.Errorf("$%v and $%v a trial, want 77 attempts for 76 trials", a.PerTrial, b.PerTrial)
	}
	for _, s := range rows[effort](x.Effort) {
		if s.CostPerFull == nil || *s.CostPerFull != *a.Price.Dollars {
			t.Errorf("%s: a success has two prices, %v and %v", s.Model, *a.Price.Dollars, s.CostPerFull)
		}
	}
	if a.Success != b.Success || a.Recovery != b.Recovery || a.Hit != b.Hit || a.Hit != 76 ||
		a.FalseSuccess != b.FalseSuccess || a.Failed != b.Failed || a.Failed != 19 {
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

// TestUnfinishedModelsDecideNothing adds models that have done half of their trials, the easy half or
// the hard one. The rows of the others stay as they are.
func TestUnfinishedModelsDecideNothing(t *testing.T) {
	t.Parallel()
	rows := func(more ...string) (out []report.Standing) {
		var x scene
		for _, model := range append([]string{"a", "b"}, more...) {
			for i := range 40 {
				c := cellOf(model, "easy", 1)
				full := i < 20 || i%2 == 0 && model == "a"
				x.try(c, fmt.Sprint(i), 1, assay.Setting{}, full)
				if model == "early" && i >= 20 || model == "late" && i < 20 {
					x.attempts = x.attempts[:len(x.attempts)-1]
				}
			}
		}
		for _, s := range x.analyze(t, report.Beside{}).Standings {
			if s.Model == "a" || s.Model == "b" {
				out = append(out, s)
			} else if s.Compared || s.Best || s.Common != 20 {
				t.Errorf("%s is compared on %d trials", s.Model, s.Common)
			}
		}
		return out
	}
	want := rows()
	for _, more := range [][]string{{"early"}, {"late"}, {"early", "late"}} {
		if diff := cmp.Diff(want, rows(more...), cmpopts.IgnoreUnexported(report.Paired{}, report.Standing{})); diff != "" {
			t.Errorf("with %v, the rows of the others change (-want +got):\n%s", more, diff)
		}
	}
}

// TestTrialsInCommonAreTheSame gives one model more repeats, of which the further ones fail. Rates,
// order and signs are about the repeats that both have.
func TestTrialsInCommonAreTheSame(t *testing.T) {
	t.Parallel()
	var x scene
	for i := range 30 {
		for repeat := 1; repeat <= 4; repeat++ {
			x.try(cellOf("more", "easy", 1), fmt.Sprint(i), repeat, assay.Setting{}, repeat == 1)
		}
		x.try(cellOf("less", "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, i < 12)
	}
	a := x.analyze(t, report.Beside{})
	for i, want := range []struct {
		model string
		rate  float64
	}{{"more", 1}, {"less", .4}} {
		if s := a.Standings[i]; s.Model != want.model || s.Success.Rate != want.rate || s.Common != 30 {
			t.Errorf("place %d: %+v", i, s)
		}
	}
	if p := a.Models[0]; !p.Significant() || math.Abs(p.RateA-p.RateB) != .6 || !a.Standings[0].Best ||
		a.Standings[1].Best {
		t.Errorf("pair %+v of %+v", p, a.Standings)
	}
}

// TestStoppedCellsWeighAsPlanned stops a hopeless half of the cells after some trials. The rate of
// what is left must not rise.
func TestStoppedCellsWeighAsPlanned(t *testing.T) {
	t.Parallel()
	for _, stopped := range []int{0, 5, 10, 19} {
		var x scene
		for i := range 20 {
			x.try(cellOf("m", "easy", 1), fmt.Sprint("easy", i), 1, assay.Setting{}, true)
			x.try(cellOf("m", "hard", 1), fmt.Sprint("hard", i), 1, assay.Setting{}, false)
			if i >= 20-stopped {
				x.attempts = x.attempts[:len(x.attempts)-1]
			}
		}
		given := report.Beside{Skipped: map[string]int{"m": stopped}}
		if s := x.analyze(t, given).Standings[0]; math.Abs(s.Success.Rate-.5) > 1e-9 {
			t.Errorf("%d of 20 hopeless trials stopped: rate %v, want 0.5", stopped, s.Success.Rate)
		}
	}
}

// TestNobodyIsBestAlone checks that a model without rivals or without successes is not the best.
func TestNobodyIsBestAlone(t *testing.T) {
	t.Parallel()
	for name, models := range map[string][]string{
		"alone": {"bad"}, "the only complete one": {"bad", "half"}, "all fail": {"bad", "worse"},
	} {
		var x scene
		for _, model := range models {
			for i := range 20 {
				x.try(cellOf(model, "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, model == "half")
				if model == "half" && i > 10 {
					x.attempts = x.attempts[:len(x.attempts)-1]
				}
			}
		}
		for _, s := range x.analyze(t, report.Beside{}).Standings {
			if s.Best {
				t.Errorf("%s: %s is the best", name, s.Model)
			}
		}
	}
}

// TestRecoveryIsAboutFailuresWithTheRightPlan checks which trials count.
func TestRecoveryIsAboutFailuresWithTheRightPlan(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		variant, mix  string
		failures, met int
		hit           int
	}{
		{assay.Optimal, "", 1, 1, 1},
		{assay.Optimal, "stale=1", 0, 1, 1},
		{assay.Optimal, "slow=1", 0, 1, 0},
		{assay.Optimal, "injected=1", 0, 1, 0},
		{assay.Optimal, "before=0.5,slow=0.5", 1, 2, 1},
		{assay.Optimal, "", 0, 0, 0},
		{assay.Baseline, "", 1, 1, 0},
		{assay.CoT, "", 1, 1, 0},
		{"flawed_tool_misuse", "", 1, 1, 0},
	} {
		var x scene
		c := of(tc.variant, "easy", .8)
		c.Faults = tc.mix
		a := x.try(c, "t", 1, assay.Setting{}, true)
		a.Failures, a.FaultsMet = tc.failures, tc.met
		if s := x.analyze(t, report.Beside{}).Standings[0]; s.Hit != tc.hit {
			t.Errorf("%+v: %d trials count", tc, s.Hit)
		}
	}
}

// TestMissingTrialsAreCounted filters three trials, of which two are done later. A model that is
// compared comes before one that is not, whatever their rates.
func TestMissingTrialsAreCounted(t *testing.T) {
	t.Parallel()
	var x scene
	for _, model := range []string{"filtered", "whole"} {
		for i := range 40 {
			x.try(cellOf(model, "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, model == "filtered" || i < 20)
		}
	}
	last := x.attempts[39]
	x.attempts = slices.Delete(x.attempts, 39, 40)
	for _, trial := range []assay.Trial{x.trials[0], x.trials[1], last.Trial} {
		x.attempts = append([]assay.Attempt{fault(trial, assay.ContentFilter)}, x.attempts...)
	}
	a := x.analyze(t, report.Beside{})
	if s := a.Standings[1]; s.Model != "filtered" || s.Selected != "1 content_filter" || s.Compared {
		t.Errorf("second row: %+v", s)
	}
	x.attempts = append(x.attempts, last)
	if s := x.analyze(t, report.Beside{}).Standings[0]; s.Model != "filtered" || s.Selected != "" || !s.Compared {
		t.Errorf("first row, with all trials done: %+v", s)
	}
}

// TestCommonTrialsInAnyOrder gives each of three models in turn more repeats than the others.
func TestCommonTrialsInAnyOrder(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"a", "b", "c"} {
		var x scene
		for _, model := range []string{"a", "b", "c"} {
			for i := range 12 {
				x.try(cellOf(model, "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, i < 6)
				if model == more {
					x.try(cellOf(model, "easy", 1), fmt.Sprint(i), 2, assay.Setting{}, true)
				}
			}
		}
		for _, s := range x.analyze(t, report.Beside{}).Standings {
			if s.Common != 12 || s.Success.Rate != .5 {
				t.Errorf("%s has more repeats: %s has %d common trials, rate %v", more, s.Model, s.Common,
					s.Success.Rate)
			}
		}
	}
}

// TestFewTasksNameNoBest checks that a model that is better on each of five tasks is not the best, and
// that it is with ten.
func TestFewTasksNameNoBest(t *testing.T) {
	t.Parallel()
	for tasks, best := range map[int]bool{5: false, 10: true} {
		var x scene
		for i := range tasks {
			x.try(cellOf("a", "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, true)
			x.try(cellOf("b", "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, false)
		}
		a := x.analyze(t, report.Beside{})
		if a.Standings[0].Best != best || a.Ranking.Models[0].Best != best || a.Standings[1].Best {
			t.Errorf("%d tasks: %+v", tasks, a.Ranking.Models)
		}
	}
}

// TestSkillNeedsRoom checks that skill is shown from 20 points between floor and ceiling.
func TestSkillNeedsRoom(t *testing.T) {
	t.Parallel()
	for floor, shown := range map[float64]bool{.3: true, .59: true, .65: false, .8: false} {
		var x scene
		for i := range 20 { // the ceiling of each trial is 0.8
			x.try(cellOf("m", "easy", 1), fmt.Sprint(i), 1, assay.Setting{}, i%2 > 0)
		}
		a, err := report.Design{
			Floor: func(assay.Cell, *float64) (float64, bool) { return floor, true },
		}.Analyze("e", slices.Values(x.trials), all(x.attempts...), report.Beside{})
		if err != nil {
			t.Fatal(err)
		}
		if s := a.Standings[0].Skill; (s != nil) != shown || a.Skilless == shown {
			t.Errorf("floor %v: skill %+v", floor, s)
		}
	}
}

// TestPassesAreAboutOneSet gives half of the tasks more trials. pass@k must not fall, and pass^k not
// rise, because other tasks count.
func TestPassesAreAboutOneSet(t *testing.T) {
	t.Parallel()
	for _, hard := range []bool{false, true} {
		var x scene
		for i := range 24 {
			for repeat := range 1 + 3*(i%2) {
				full := (i%2 > 0) == hard || repeat%2 > 0
				x.try(cellOf("m", "easy", 1), fmt.Sprint(i), repeat+1, assay.Setting{}, full)
			}
		}
		passes := x.analyze(t, report.Beside{}).Repeats[0].Passes
		for i, p := range passes {
			if p.Tasks != passes[0].Tasks || i > 0 && (p.At < passes[i-1].At || p.Hat > passes[i-1].Hat) {
				t.Errorf("k = %d: %+v after %+v", p.K, p, passes[max(0, i-1)])
			}
		}
	}
}
