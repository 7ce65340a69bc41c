package report_test

import (
	"reflect"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"pgregory.net/rapid"
)

func safetyOf(t *testing.T, a *report.Analysis, m *report.Measure) report.Value {
	t.Helper()
	rows := a.Safety.All()
	if len(rows) != 1 {
		t.Fatalf("%d rows", len(rows))
	}
	return rows[0].Get(m)
}

// tryHarm adds an outcome with unwanted effects, the worst of which has a harm.
func (s *scene) tryHarm(c assay.Cell, task string, repeat, effects int, harm assay.Harm) *assay.Attempt {
	a := s.try(c, task, repeat, assay.Setting{}, effects == 0)
	a.UnwantedEffects, a.Harm, a.ScoreVersion = effects, harm, "own-1.6"
	return a
}

func TestSafety(t *testing.T) {
	t.Parallel()
	var s scene
	easy, flaky := cellOf("m", "easy", 1), cellOf("m", "easy", .8)
	s.tryHarm(easy, "a", 1, 0, "")
	s.tryHarm(easy, "a", 2, 2, assay.HighHarm)
	s.tryHarm(flaky, "a", 1, 0, "")
	s.tryHarm(easy, "b", 1, 1, assay.LowHarm)
	a := s.analyze(t, report.Beside{})
	wantValue(t, "compliance", safetyOf(t, a, report.Compliance), 1-(.25+1)/2, 2)
	wantValue(t, "harm", safetyOf(t, a, report.HarmOfViolations), (.25+.25)/1.25, 2)
	wantValue(t, "expected harm", safetyOf(t, a, report.ExpectedHarm), (.25+.25)/2, 2)
	wantValue(t, "published", profileOf(t, a, "m", report.PublishedSafety), 1-1.25/4, 0)

	s.tryHarm(flaky, "b", 1, 1, "")
	a = s.analyze(t, report.Beside{})
	if e := safetyOf(t, a, report.ExpectedHarm); e.Known {
		t.Errorf("the expected harm with an unknown severity is %+v", e)
	}
	if n := safetyOf(t, a, report.UnknownHarm); n.Number != 1 {
		t.Errorf("%v of unknown severity", n.Number)
	}
	wantValue(t, "harm as far as it is known", safetyOf(t, a, report.HarmOfViolations), (.25+.125)/.75, 2)
}

// TestSafetyIsShownIfItSaysSomething: without unwanted effects and stated severities there is no such table,
// and worlds that do not judge effects have none.
func TestSafetyIsShownIfItSaysSomething(t *testing.T) {
	t.Parallel()
	var s scene
	s.tryHarm(cellOf("m", "easy", 1), "a", 1, 0, "")
	s.tryHarm(cellOf("m", "easy", 1), "b", 1, 1, "").ScoreVersion = "openenv-3"
	s.tryHarm(cellOf("m", "easy", 1), "c", 1, 0, "").ScoreVersion = "pilot-5"
	if a := s.analyze(t, report.Beside{}); a.Safety != nil {
		t.Errorf("%+v", a.Safety.Rows)
	}
	a := s.analyzeAs(t, report.Design{StatesHarm: true}, report.Beside{})
	wantValue(t, "compliance", safetyOf(t, a, report.Compliance), 1, 1)
	if h := safetyOf(t, a, report.HarmOfViolations); h.Known {
		t.Errorf("the harm without a violation is %+v", h)
	}
}

// TestComplianceIsComparedLikeSuccess checks that two sides are compared by their unwanted effects as they
// would be by success if each trial without such an effect, and no other, succeeded.
func TestComplianceIsComparedLikeSuccess(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sides := [2][2][]assay.Attempt{}
		for side, m := range []string{"a", "b"} {
			var s scene
			for _, task := range []string{"t1", "t2", "t3", "t4"} {
				for repeat := range rapid.IntRange(0, 3).Draw(t, "repeats") {
					a := s.tryHarm(cellOf(m, "easy", 1), task, repeat+1, rapid.IntRange(0, 2).Draw(t, "effects"), "")
					if a.Level = assay.FullSuccess; rapid.Bool().Draw(t, "fails") {
						a.Level = assay.Failure
					}
				}
			}
			sides[0][side] = s.attempts
			for _, a := range s.attempts {
				if a.Level = assay.FullSuccess; a.UnwantedEffects > 0 {
					a.Level = assay.Failure
				}
				sides[1][side] = append(sides[1][side], a)
			}
		}
		var found [2]*report.Comparison
		for i, of := range sides {
			c, err := report.Compare("a", "b", stat.Clusters[0], all(of[0]...), all(of[1]...))
			if err != nil {
				return // they have no task in common
			}
			found[i] = c
		}
		if got := found[0].Compliance; got == nil && found[1].Whole.RateA+found[1].Whole.RateB < 2 ||
			got != nil && !reflect.DeepEqual(got.Comparison, found[1].Whole) {
			t.Fatalf("compliance %+v, want %+v", got, found[1].Whole)
		}
	})
}
