package report_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

func TestFindingsNameBestAndMainReason(t *testing.T) {
	t.Parallel()
	var s scene
	s.play("sim/optimal", "optimal", 40, func(int, *assay.Attempt) {})
	s.play("good", "optimal", 40, fails(10, 0))
	s.play("good", "baseline", 40, func(i int, a *assay.Attempt) {
		fails(2, 0)(i, a)
		a.RequiredTools = []string{"reader", "writer", "reader"}
		a.ExecutedTools = [][]string{
			a.RequiredTools, {"writer", "reader"}, {"reader"}, {"other"},
		}[i/2%4]
	})
	s.play("bad", "optimal", 40, func(i int, a *assay.Attempt) {
		fails(4, 2)(i, a)
		if a.Level == assay.Failure {
			a.ErrorCategory = assay.CategorySequenceOrder
		}
	})
	f := s.analyze(t, report.Beside{}).Findings

	if f.Best == nil || f.Best.Model != "good" || f.Best.Level != "optimal" {
		t.Fatalf("the best is %+v, want good with optimal: simulated models do not count", f.Best)
	}
	if r := f.Rivals; len(r) != 2 || r[0].Rate.Level != "baseline" || r[1].Rate.Model != "bad" {
		t.Errorf("the rivals are %+v, want good with baseline and bad", f.Rivals)
	}
	for _, r := range f.Rivals {
		if !r.Test.Significant() || r.Test.Difference <= 0 || r.Test.Tasks != 40 {
			t.Errorf("good is not significantly better than %+v", r)
		}
	}
	if r := f.Reason; r == nil || r.Category != assay.CategorySequenceOrder || r.Count != 30 ||
		r.Place.Model != "bad" || r.Failed != 54 {
		t.Errorf("the main reason is %+v, want sequence order in 30 of 54, in bad", r)
	}
	want := report.MissingTool{Tool: "reader", Count: 10, Failed: 54}
	if f.Missing == nil || *f.Missing != want {
		t.Errorf("the tool that is most often missing is %+v, want %+v", f.Missing, want)
	}
	if f.Weakest == nil || f.Weakest.Level != "baseline" {
		t.Errorf("the weakest variant is %+v, want baseline", f.Weakest)
	}
}

func TestFindingsOfNothingAreEmpty(t *testing.T) {
	t.Parallel()
	var s scene
	f := s.analyze(t, report.Beside{}).Findings
	if f.Best != nil || f.Reason != nil || f.Missing != nil || f.Weakest != nil ||
		len(f.Rivals) > 0 {
		t.Errorf("the findings are %+v", f)
	}
}
