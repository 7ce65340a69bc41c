package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
)

// A scene is a set of trials with their attempts.
type scene struct {
	trials   []assay.Trial
	attempts []assay.Attempt
}

// play adds n trials of a model in a variant. decide sets each outcome. All calls share their
// tasks.
func (s *scene) play(model, variant string, n int, decide func(i int, a *assay.Attempt)) {
	severity := ""
	if strings.HasPrefix(variant, "flawed") {
		severity = "severe"
	}
	for i := range n {
		t := assay.NewTrial(
			assay.Cell{
				Model: model, Variant: variant, Severity: severity, Difficulty: "easy",
				TaskType: "basic_task", Reliability: .8,
			},
			assay.TaskRef{ID: assay.TaskID(fmt.Sprint("t", i)), Digest: "d"},
			assay.Setting{World: "assay-1"},
			1,
			1,
		)
		a := assay.Attempt{Trial: t, ServedModel: model}
		a.Level = assay.FullSuccess
		decide(i, &a)
		if a.Level != "" && a.Level != assay.FullSuccess && a.ErrorCategory == "" {
			a.ErrorCategory = "other"
		}
		s.trials, s.attempts = append(s.trials, t), append(s.attempts, a)
	}
}

// fails makes a trial fail if its number modulo n is at most upTo.
func fails(n, upTo int) func(int, *assay.Attempt) {
	return func(i int, a *assay.Attempt) {
		if i%n <= upTo {
			a.Level = assay.Failure
		}
	}
}

func (s *scene) analyze(t testing.TB, b report.Beside) *report.Analysis {
	t.Helper()
	a, err := report.Design{}.Analyze("e", slices.Values(s.trials), all(s.attempts...), b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Each case raises its warning and no other.
func TestEachWarningHasItsCause(t *testing.T) {
	t.Parallel()
	half := fails(2, 0)
	for kind, c := range map[string]struct {
		scene  func(*scene)
		beside report.Beside
		where  string
	}{
		"zero":    {func(s *scene) { s.play("m", "optimal", 20, fails(1, 0)) }, report.Beside{}, "m, optimal"},
		"perfect": {func(s *scene) { s.play("m", "optimal", 20, func(int, *assay.Attempt) {}) }, report.Beside{}, "n = 20"},
		"malformed": {func(s *scene) {
			s.play("m", "optimal", 20, func(i int, a *assay.Attempt) {
				if i > 0 {
					a.Level, a.ErrorCategory = assay.Failure, "tool_call_format"
				}
			})
		}, report.Beside{}, "19 of 20"},
		"size": {func(s *scene) {
			s.play("qwen2.5-72b-instruct", "optimal", 40, fails(2, 0))
			s.play("qwen2.5-7b-instruct", "optimal", 40, fails(20, 0))
		}, report.Beside{}, "qwen2.5-72b-instruct is 45.0 points below qwen2.5-7b-instruct"},
		"size ": {func(s *scene) { // a mixture of experts, and far down the list
			for i := range 20 {
				s.play(fmt.Sprint("other", i), "optimal", 20, half)
			}
			s.play("Qwen3-235B-A22B", "optimal", 40, fails(2, 0))
			s.play("Qwen3-30B-A3B", "optimal", 40, fails(20, 0))
		}, report.Beside{}, "Qwen3-235B-A22B is 45.0 points below Qwen3-30B-A3B"},
		"zero ": {func(s *scene) { // one type of task of two
			s.play("m", "optimal", 20, half)
			for i := range 12 {
				a := s.attempts[i]
				a.Trial = assay.NewTrial(assay.Cell{Model: "m", Variant: "optimal", Difficulty: "easy", TaskType: "simple_task", Reliability: .8},
					assay.TaskRef{ID: a.Task, Digest: "d"}, assay.Setting{World: "assay-1"}, 1, 1)
				a.Level, a.ErrorCategory = assay.Failure, "other"
				s.trials, s.attempts = append(s.trials, a.Trial), append(s.attempts, a)
			}
		}, report.Beside{}, "m, optimal, easy, simple task, reliability 0.8 (n = 12)"},
		"no_difference": {func(s *scene) {
			s.play("m", "optimal", 30, half)
			s.play("m", "flawed_tool_misuse", 30, half)
		}, report.Beside{Prompts: map[string]string{"optimal": "a", "flawed_tool_misuse, severe": "b"}}, "tool misuse and optimal"},
		"difference": {func(s *scene) {
			s.play("m", "optimal", 40, fails(20, 0))
			s.play("m", "flawed_tool_misuse", 40, half)
		}, report.Beside{Prompts: map[string]string{"optimal": "a", "flawed_tool_misuse, severe": "a"}}, "optimal and flawed_tool_misuse"},
		"drift": {func(s *scene) {
			s.play("m", "optimal", 20, func(i int, a *assay.Attempt) {
				half(i, a)
				if i > 12 {
					a.ServedModel = "m-turbo"
				}
			})
		}, report.Beside{}, "m: of 20 outcomes m in 13, m-turbo in 7"},
		"drift ": {func(s *scene) { // within one episode, which ended as it had begun
			s.play("m", "optimal", 20, func(i int, a *assay.Attempt) {
				half(i, a)
				if i == 3 {
					a.AddServed("m-turbo")
					a.AddServed("m")
				}
			})
		}, report.Beside{}, "m in 20, m-turbo in 1"},
		"faults": {func(s *scene) {
			s.play("m", "optimal", 40, half)
			for i := range 3 {
				f := s.attempts[i]
				f.Outcome, f.FaultKind = assay.Outcome{}, assay.RateLimited
				s.attempts = append(s.attempts, f)
			}
		}, report.Beside{}, "3 of 43 attempts: 3 rate limited"},
		"stopped": {func(s *scene) { s.play("m", "optimal", 20, half) }, report.Beside{Stopped: []string{"m is hopeless"}}, "m is hopeless"},
		"no_difference ": {func(s *scene) { // against the model's own reference
			s.play("m", "baseline", 30, half)
			s.play("m", "cot", 30, half)
			s.play("n", "optimal", 30, half)
		}, report.Beside{Prompts: map[string]string{"baseline": "a", "cot": "b", "optimal": "c"}}, "cot and baseline"},
		"stopped ": {func(s *scene) {
			s.play("m", "optimal", 20, half)
			s.attempts = s.attempts[:15]
		}, report.Beside{Stopped: []string{"m is hopeless"}, Skipped: map[string]int{"m": 5}}, "m is hopeless"},
		"plans": {func(s *scene) { s.play("m", "optimal", 20, half) }, report.Beside{Unplanned: []string{"n, cot: 7 attempts"}}, "7 attempts"},
		"incomplete": {func(s *scene) {
			s.play("m", "optimal", 20, half)
			s.attempts = s.attempts[:15]
		}, report.Beside{Skipped: map[string]int{"m": 2}}, "15 of 20 trials done, 3 pending"},
		"": {func(s *scene) { s.play("m", "optimal", 20, half) }, report.Beside{}, ""},
		// Few outcomes, a family of one size, and 5 % faults are no reason for a warning.
		" ": {func(s *scene) {
			s.play("m-7b", "optimal", 9, fails(1, 0))
			s.play("n-70b", "baseline", 40, half)
			f := s.attempts[9]
			f.Outcome, f.FaultKind = assay.Outcome{}, assay.Timeout
			s.attempts = append(s.attempts, f, f)
		}, report.Beside{}, ""},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var s scene
			c.scene(&s)
			a := s.analyze(t, c.beside)
			var kinds []string
			for _, w := range a.Warnings {
				kinds = append(kinds, w.Kind)
				if w.Title == "" || w.Text == "" || len(w.Where) == 0 {
					t.Errorf("%+v lacks a title, a reason or a place", w)
				}
			}
			var want []string
			if k := strings.TrimSpace(kind); k != "" {
				want = []string{k}
			}
			if diff := cmp.Diff(want, kinds); diff != "" {
				t.Fatalf("warnings (-want +got):\n%s%+v", diff, a.Warnings)
			}
			if want != nil && !strings.Contains(strings.Join(a.Warnings[0].Where, "; "), c.where) {
				t.Errorf("the warning is about %q, want %q", a.Warnings[0].Where, c.where)
			}
			if d := exhibit.Report(a); len(d.Warnings) != len(want) {
				t.Errorf("the document has %d warnings", len(d.Warnings))
			}
		})
	}
}

// Counts of cells add up. Comparisons are on tasks that both sides tried.
func TestComparisonsUseSharedTasks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s scene
		full := make(map[string]int)
		for _, m := range []string{"a", "b"} {
			for _, v := range []string{"baseline", "optimal"} {
				n := rapid.IntRange(0, 12).Draw(t, "n")
				s.play(m, v, n, func(i int, a *assay.Attempt) {
					if rapid.Bool().Draw(t, "fails") {
						a.Level = assay.Failure
						return
					}
					full[m+v]++
				})
			}
		}
		a, err := report.Design{}.Analyze(
			"e", slices.Values(s.trials), all(s.attempts...), report.Beside{},
		)
		if err != nil {
			t.Fatal(err)
		}
		done := 0
		for _, c := range a.Cells {
			done += c.Done
			if c.Full != full[c.Model+c.Variant] || c.FullInterval.Low > c.FullRate ||
				c.FullInterval.High < c.FullRate {
				t.Fatalf("%+v", c)
			}
		}
		if done != len(s.attempts) || a.Done != done {
			t.Fatalf("cells have %d outcomes, the table %d, want %d", done, a.Done, len(s.attempts))
		}
		for _, p := range a.Variants {
			both := min(played(s, p.Model, p.A), played(s, p.Model, p.B))
			if p.Tasks != both || p.Q < p.P-1e-12 {
				t.Fatalf("%+v over %d tasks, want %d that both tried", p, p.Tasks, both)
			}
		}
	})
}

func played(s scene, model, variant string) (n int) {
	for _, t := range s.trials {
		if t.Model == model && t.Variant == variant {
			n++
		}
	}
	return n
}

// Exchanging the sides reverses all signs and flips. Trials of only one side count on neither, and
// a side does not differ from itself.
func TestExchangingSidesReversesSigns(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		side := func(name, variant string) []assay.Attempt {
			var s scene
			s.play(
				"m",
				variant,
				rapid.IntRange(1, 15).Draw(t, name),
				func(i int, a *assay.Attempt) {
					if rapid.Bool().Draw(t, "fails") {
						a.Level = assay.Failure
					}
				},
			)
			return s.attempts
		}
		a, b := side("a", "baseline"), side("b", "optimal")
		ab, err := report.Compare("a", "b", all(a...), all(b...))
		if err != nil {
			t.Fatal(err)
		}
		ba, err := report.Compare("b", "a", all(b...), all(a...))
		if err != nil {
			t.Fatal(err)
		}
		flips := 0
		for i := range min(len(a), len(b)) {
			if a[i].Level != b[i].Level {
				flips++
			}
		}
		if ab.Whole.Tasks != min(len(a), len(b)) || ab.Worse+ab.Better != flips ||
			len(ab.Flips) != flips {
			t.Fatalf(
				"%d tasks and %d + %d flips, want %d and %d", ab.Whole.Tasks, ab.Worse, ab.Better,
				min(len(a), len(b)), flips,
			)
		}
		if ab.Whole.Difference != -ba.Whole.Difference || ab.Whole.P != ba.Whole.P ||
			ab.Worse != ba.Better {
			t.Fatalf("%+v and, exchanged, %+v", ab.Whole, ba.Whole)
		}
		if len(ab.Differ) != 1 || ab.Differ[0].A != "baseline" || ab.Differ[0].B != "optimal" {
			t.Fatalf("they differ in %v", ab.Differ)
		}
		aa, err := report.Compare("a", "a", all(a...), all(a...))
		if err != nil || aa.Whole.Difference != 0 || aa.Shared != len(a) || len(aa.Flips) > 0 {
			t.Fatalf("a side against itself: %+v, %v", aa, err)
		}
	})
	checkMatching(t)
	var s, other scene
	s.play("m", "baseline", 3, func(int, *assay.Attempt) {})
	other.play("n", "baseline", 3, func(int, *assay.Attempt) {})
	for i := range other.attempts {
		other.attempts[i].Task = "elsewhere"
	}
	if _, err := report.Compare("s", "other", all(s.attempts...), all(other.attempts...)); err == nil {
		t.Error("sides without a common task compare")
	}
}

// checkMatching checks that trials with other seeds and settings are different trials, and that the
// factors in which the sides differ are named.
func checkMatching(t *testing.T) {
	t.Helper()
	side := func(model string, seeds []int64, failures []float64, level assay.Level) (all []assay.Attempt) {
		for _, seed := range seeds {
			for _, burst := range failures {
				for i := range 5 {
					cell := assay.Cell{
						Model: model, Variant: "optimal", Difficulty: "easy",
						TaskType: "basic_task", Reliability: .8,
					}
					a := assay.Attempt{
						Trial: assay.NewTrial(
							cell, assay.TaskRef{ID: assay.TaskID(fmt.Sprint("t", i)), Digest: "d"},
							assay.Setting{World: "assay-1", Burst: burst}, seed, 1,
						),
					}
					a.Level = level
					all = append(all, a)
				}
			}
		}
		return all
	}
	compare := func(a, b []assay.Attempt) *report.Comparison {
		v, err := report.Compare("a", "b", all(a...), all(b...))
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	both, chances := []int64{1, 2}, []float64{0, .5}
	v := compare(
		side("m", both, chances, assay.Failure),
		side("n", both, chances, assay.FullSuccess),
	)
	if v.A.Matched != 20 || v.B.Matched != 20 || v.Better != 20 || !v.SameLuck ||
		len(v.Cells) != 2 ||
		v.Whole.Tasks != 5 {
		t.Errorf("two seeds and two settings: %+v", v)
	}
	if v.Whole.RateA != 0 || v.Whole.RateB != 1 || v.Whole.OnlyA != 0 || v.Whole.OnlyB != 5 ||
		v.Whole.Difference != 1 {
		t.Errorf("sides: %+v", v.Whole)
	}
	v = compare(
		side("m", both[:1], chances[:1], assay.Failure),
		side("m", both[1:], chances[1:], assay.FullSuccess),
	)
	if v.SameLuck || v.Better != 5 || len(v.Differ) != 1 || v.Differ[0].Factor != "failures" {
		t.Errorf("another seed and setting: %+v", v)
	}
	other := side("n", both, chances, assay.FullSuccess)
	for i := range other {
		if other[i].Task == "t0" {
			other[i].TaskDigest = "another"
		}
	}
	if v = compare(side("m", both, chances, assay.Failure), other); v.Unlike != 2 ||
		v.Whole.Tasks != 4 { // once in each condition
		t.Errorf("another task of the same name: %+v", v)
	}
}
