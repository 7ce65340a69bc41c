package report_test

import (
	"math"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

func profileOf(t *testing.T, a *report.Analysis, model string, m *report.Measure) report.Value {
	t.Helper()
	for _, r := range a.Profile.All() {
		if r.Model == model {
			return r.Get(m)
		}
	}
	t.Fatalf("no profile of %s", model)
	return report.Value{}
}

func wantValue(t *testing.T, what string, got report.Value, want float64, tasks int) {
	t.Helper()
	if !got.Known || math.Abs(got.Number-want) > 1e-12 || got.N != tasks {
		t.Errorf("%s = %+v, want %v of %d tasks", what, got, want, tasks)
	}
}

// TestProfileComparesRepeats has two cells of a task, and another task without a repeat. Times count from
// a mean of a second, and tokens if there are any.
func TestProfileComparesRepeats(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		ms        int64
		tokens    int
		variation float64 // of the two runs in the first cell
	}{
		{"calls and turns", 100, 0, math.Sqrt2 / 3 / 2},
		{"tokens", 100, 10, math.Sqrt2 / 3 / 3},
		{"time", 2000, 0, (math.Sqrt2/3 + math.Sqrt2/2) / 3},
	} {
		var s scene
		for i, tools := range [][]string{{"look", "pay"}, {"look", "look", "pay"}} {
			a := s.try(cellOf("m", "easy", 1), "a", 1+i, assay.Setting{}, true)
			a.ExecutedTools, a.ToolCalls, a.WorkingMS, a.InputTokens = tools, 2+2*i, tc.ms*int64(1+2*i), tc.tokens
			s.try(cellOf("m", "easy", .8), "a", 1+i, assay.Setting{}, i > 0).WorkingMS = tc.ms
		}
		s.try(cellOf("m", "easy", 1), "b", 1, assay.Setting{}, true).WorkingMS = tc.ms
		a := s.analyze(t, report.Beside{})
		wantValue(t, tc.name+": outcome", profileOf(t, a, "m", report.ConsistentOutcome), 0, 1)
		wantValue(t, tc.name+": order", profileOf(t, a, "m", report.ConsistentOrder), 2./3, 1)
		wantValue(t, tc.name+": effort", profileOf(t, a, "m", report.ConsistentUse), (math.Exp(-tc.variation)+1)/2, 1)
		wantValue(t, tc.name+": published", profileOf(t, a, "m", report.PublishedOutcome), .5, 1)
	}
}

// TestConfidenceAveragesCells has a task that is tried three times in one cell and once in another.
func TestConfidenceAveragesCells(t *testing.T) {
	t.Parallel()
	var s scene
	ask := assay.Setting{AsksConfidence: true}
	for i := range 3 {
		s.try(cellOf("m", "easy", 1), "a", 1+i, ask, true).Confidence = new(1.)
	}
	s.try(cellOf("m", "easy", .8), "a", 1, ask, false).Confidence = new(1.)
	a := s.analyze(t, report.Beside{})
	wantValue(t, "Brier", profileOf(t, a, "m", report.Brier), .5, 1)
	wantValue(t, "overconfidence", profileOf(t, a, "m", report.Overconfidence), .5, 1)
}

func TestProfileNeedsRepeats(t *testing.T) {
	t.Parallel()
	var s scene
	s.try(cellOf("m", "easy", 1), "a", 1, assay.Setting{}, true)
	s.try(cellOf("m", "easy", .8), "a", 1, assay.Setting{}, true)
	if a := s.analyze(t, report.Beside{}); a.Profile != nil {
		t.Errorf("%+v", a.Profile)
	}
	s.trials = append(s.trials, assay.NewTrial(cellOf("m", "easy", 1), assay.TaskRef{ID: "a"}, assay.Setting{}, 1, 2))
	if a := s.analyze(t, report.Beside{}); a.Profile != nil {
		t.Errorf("of a pending repeat: %+v", a.Profile)
	}
}
