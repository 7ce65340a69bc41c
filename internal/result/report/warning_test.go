package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
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
		if a.Level != "" && a.Level != assay.FullSuccess && a.Cause == "" {
			a.Cause = assay.BadLuck
			a.ToolCalls = 1
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
	return s.analyzeAs(t, report.Design{}, b)
}

// analyzeAs analyzes attempts as stores yield them: without their trials, but for the IDs.
func (s *scene) analyzeAs(t testing.TB, d report.Design, b report.Beside) *report.Analysis {
	t.Helper()
	bare := slices.Clone(s.attempts)
	for i := range bare {
		bare[i].Trial = assay.Trial{ID: bare[i].ID}
	}
	a, err := d.Analyze("e", slices.Values(s.trials), all(bare...), b)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Each case raises at most one kind of warning.
func TestEachWarningHasItsCause(t *testing.T) {
	t.Parallel()
	half := fails(2, 0)
	ordinary := func(s *scene) { s.play("m", "optimal", 20, half) }
	unfinished := func(s *scene) {
		ordinary(s)
		s.attempts = s.attempts[:15]
	}
	prompts := func(flawed string) report.Beside {
		return report.Beside{Prompts: map[string]string{
			"optimal": "a", "flawed_tool_misuse, severe": flawed,
		}}
	}
	for name, c := range map[string]struct {
		kind   string
		scene  func(*scene)
		beside report.Beside
		where  string
	}{
		"no success": {
			kind: "zero", where: "m, optimal",
			scene: func(s *scene) { s.play("m", "optimal", 20, fails(1, 0)) },
		},
		"no success in one task type": {
			kind: "zero", where: "m, optimal, easy, simple task, reliability 0.8 (n = 12)",
			scene: func(s *scene) {
				s.play("m", "optimal", 20, half)
				for i := range 12 {
					a := s.attempts[i]
					cell := a.Cell
					cell.TaskType = "simple_task"
					a.Trial = assay.NewTrial(cell, assay.TaskRef{ID: a.Task, Digest: "d"},
						assay.Setting{World: "assay-1"}, 1, 1)
					a.Level, a.Cause = assay.Failure, assay.BadLuck
					s.trials, s.attempts = append(s.trials, a.Trial), append(s.attempts, a)
				}
			},
		},
		"tasks beyond every policy": {
			kind: "unsolvable", where: "10 of 20 tasks",
			scene: func(s *scene) {
				s.play("m", "optimal", 20, func(i int, a *assay.Attempt) {
					half(i, a)
					a.ScoreVersion, a.Best = "assay-1.3", float64(i%2)
				})
			},
		},
		"success only": {
			kind: "perfect", where: "n = 20",
			scene: func(s *scene) { s.play("m", "optimal", 20, func(int, *assay.Attempt) {}) },
		},
		"no valid calls": {
			kind: "malformed", where: "19 of 20",
			scene: func(s *scene) {
				s.play("m", "optimal", 20, func(i int, a *assay.Attempt) {
					if i > 0 {
						a.Level, a.Cause = assay.Failure, assay.MalformedCall
					}
				})
			},
		},
		"a large model below a small one": {
			kind: "size", where: "qwen2.5-72b-instruct is 45.0 points below qwen2.5-7b-instruct",
			scene: func(s *scene) {
				s.play("qwen2.5-72b-instruct", "optimal", 40, fails(2, 0))
				s.play("qwen2.5-7b-instruct", "optimal", 40, fails(20, 0))
			},
		},
		"a large mixture of experts, far down the list": {
			kind: "size", where: "Qwen3-235B-A22B is 45.0 points below Qwen3-30B-A3B",
			scene: func(s *scene) {
				for i := range 20 {
					s.play(fmt.Sprint("other", i), "optimal", 20, half)
				}
				s.play("Qwen3-235B-A22B", "optimal", 40, fails(2, 0))
				s.play("Qwen3-30B-A3B", "optimal", 40, fails(20, 0))
			},
		},
		"another prompt without an effect": {
			kind: "no_difference", where: "tool misuse and optimal", beside: prompts("b"),
			scene: func(s *scene) {
				s.play("m", "optimal", 30, half)
				s.play("m", "flawed_tool_misuse", 30, half)
			},
		},
		"no effect against the model's own reference": {
			kind: "no_difference", where: "cot and baseline",
			scene: func(s *scene) {
				s.play("m", "baseline", 30, half)
				s.play("m", "cot", 30, half)
				s.play("n", "optimal", 30, half)
			},
			beside: report.Beside{Prompts: map[string]string{
				"baseline": "a", "cot": "b", "optimal": "c",
			}},
		},
		"an effect without another prompt": {
			kind: "difference", where: "optimal and flawed_tool_misuse", beside: prompts("a"),
			scene: func(s *scene) {
				s.play("m", "optimal", 40, fails(20, 0))
				s.play("m", "flawed_tool_misuse", 40, half)
			},
		},
		"another served model": {
			kind: "drift", where: "m: of 20 outcomes m in 13, m-turbo in 7",
			scene: func(s *scene) {
				s.play("m", "optimal", 20, func(i int, a *assay.Attempt) {
					half(i, a)
					if i > 12 {
						a.ServedModel = "m-turbo"
					}
				})
			},
		},
		"replies without an end": {
			kind: "truncated", where: "m: 3 of 20 outcomes",
			scene: func(s *scene) {
				s.play("m", "optimal", 20, half)
				for i := range 3 {
					s.attempts[i].Truncated = 2
				}
			},
		},
		"other requests": {
			kind: "deviations", where: "m: no temperature in 4 of 20 outcomes",
			scene: func(s *scene) {
				s.play("m", "optimal", 20, half)
				for i := range 4 {
					s.attempts[i].Deviations = "no temperature"
				}
			},
		},
		"a model under another's name": {
			scene: func(s *scene) {
				s.play("qwen2.5-7b-instruct", "optimal", 20, func(i int, a *assay.Attempt) {
					half(i, a)
					a.Lane, a.ServedModel = "gw/KEY/prod/qwen2.5-72b", "gpt-4o"
				})
			},
			kind:  "identity",
			where: "20 have the deployment prod/qwen2.5-72b (size 7b and 72b)",
		},
		"another served model within an episode": {
			kind: "drift", where: "m in 20, m-turbo in 1",
			scene: func(s *scene) {
				s.play("m", "optimal", 20, func(i int, a *assay.Attempt) {
					half(i, a)
					if i == 3 {
						a.Add(&assay.Response{ServedModel: "m-turbo"})
						a.Add(&assay.Response{ServedModel: "m"})
					}
				})
			},
		},
		"another effort than asked": {
			kind: "settings", where: "m@high: effort medium instead of high in 7 of 20 outcomes",
			scene: func(s *scene) {
				s.play("m@high", "optimal", 20, func(i int, a *assay.Attempt) {
					half(i, a)
					a.Reported = "effort=high, service_tier=flex"
					if i > 12 {
						a.Reported = "effort=high, effort=medium"
					}
				})
				for i := range s.trials {
					s.trials[i].Sampling.Effort = "high"
				}
			},
		},
		"many faults": {
			kind: "faults", where: "3 of 43 attempts: 3 rate limited",
			scene: func(s *scene) {
				s.play("m", "optimal", 40, half)
				for i := range 3 {
					f := s.attempts[i]
					f.Outcome, f.FaultKind = assay.Outcome{}, assay.RateLimited
					s.attempts = append(s.attempts, f)
				}
			},
		},
		"stopped": {
			kind: "stopped", where: "m is hopeless", scene: ordinary,
			beside: report.Beside{Stopped: []string{"m is hopeless"}},
		},
		"stopped, so the rest is not pending": {
			kind: "stopped", where: "m is hopeless", scene: unfinished,
			beside: report.Beside{
				Stopped: []string{"m is hopeless"}, Skipped: map[string]int{"m": 5},
			},
		},
		"pending trials": {
			kind: "incomplete", where: "15 of 20 trials done, 3 pending", scene: unfinished,
			beside: report.Beside{Skipped: map[string]int{"m": 2}},
		},
		"trials of other plans": {
			kind: "plans", where: "7 attempts", scene: ordinary,
			beside: report.Beside{Unplanned: []string{"n, cot: 7 attempts"}},
		},
		"an ordinary result": {scene: ordinary},
		"few outcomes, a family of one size, and 5 % faults": {scene: func(s *scene) {
			s.play("m-7b", "optimal", 9, fails(1, 0))
			s.play("n-70b", "baseline", 40, half)
			f := s.attempts[9]
			f.Outcome, f.FaultKind = assay.Outcome{}, assay.Timeout
			s.attempts = append(s.attempts, f, f)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s scene
			c.scene(&s)
			a := s.analyze(t, c.beside)
			var kinds, want []string
			for _, w := range a.Warnings {
				kinds = append(kinds, w.Kind)
				if w.Title == "" || w.Text == "" || len(w.Where) == 0 {
					t.Errorf("%+v lacks a title, a reason or a place", w)
				}
			}
			if c.kind != "" {
				want = []string{c.kind}
			}
			if diff := cmp.Diff(want, kinds); diff != "" {
				t.Fatalf("warnings (-want +got):\n%s%+v", diff, a.Warnings)
			}
			if want != nil && !strings.Contains(strings.Join(a.Warnings[0].Where, "; "), c.where) {
				t.Errorf("the warning is about %q, want %q", a.Warnings[0].Where, c.where)
			}
			if d := sections.Report(a); len(d.Warnings) != len(want) {
				t.Errorf("the document has %d warnings", len(d.Warnings))
			}
		})
	}
}

// TestProgramsThatChanged checks that outcomes of an earlier version of an agent's program are
// counted, and that the latest change is named.
func TestProgramsThatChanged(t *testing.T) {
	t.Parallel()
	var s scene
	runs := []assay.RunID{"one", "two", "two", "three", "three", "three"}
	s.play("bot", "baseline", len(runs), func(i int, a *assay.Attempt) { a.Run = runs[i] })
	s.play("other", "baseline", 2, func(_ int, a *assay.Attempt) { a.Run = "one" })
	at := func(run assay.RunID, agent, library string) report.Program {
		files := map[string]string{"agent.py": agent}
		if library != "" {
			files["--rules=rules.txt"] = library
		}
		return report.Program{Run: run, Files: files}
	}
	for name, tc := range map[string]struct {
		programs []report.Program
		want     string
	}{
		"unknown": {nil, ""},
		"same":    {[]report.Program{at("one", "a", ""), at("two", "a", ""), at("three", "a", "")}, ""},
		"changed": {
			[]report.Program{at("one", "a", ""), at("two", "b", ""), at("three", "b", "")},
			"bot: 1 attempt was made by an earlier version of its program (agent.py changed " +
				"between run one and run two)",
		},
		"changed twice": {
			[]report.Program{at("one", "a", ""), at("two", "b", ""), at("three", "b", "x")},
			"bot: 3 attempts were made by an earlier version of its program (--rules=rules.txt " +
				"changed between run two and run three)",
		},
		"changed back": {
			[]report.Program{at("one", "a", ""), at("two", "b", ""), at("three", "a", "")},
			"bot: 2 attempts were made by an earlier version of its program (agent.py changed " +
				"between run two and run three)",
		},
	} {
		a := s.analyze(t, report.Beside{Programs: map[string][]report.Program{"bot": tc.programs}})
		got := ""
		for _, w := range a.Warnings {
			if w.Kind == "program" {
				got = strings.Join(w.Where, "; ")
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestJudgesThatNobodyCompared checks which outcomes a report warns of: those of models that judge, unless
// the same model, asked with the same words, was compared with people; and those that nothing else decided.
func TestJudgesThatNobodyCompared(t *testing.T) {
	t.Parallel()
	var s scene
	s.play("m", "baseline", 8, func(i int, a *assay.Attempt) {
		if i == 7 {
			return // a check judges its task
		}
		a.JudgedBy, a.Verdict, a.JudgePrompt = "jury", assay.Pass, fmt.Sprint("p", i%2)
		a.JudgedAlone = i < 3
	})
	for _, c := range []struct {
		compared []report.Judge
		want     []string
	}{
		{nil, []string{"jury: 7 outcomes"}},
		{[]report.Judge{{Model: "jury", Prompt: "p0"}}, []string{"jury: 3 outcomes"}},
		{[]report.Judge{{Model: "jury", Prompt: "p0"}, {Model: "jury", Prompt: "p1"}}, nil},
		{[]report.Judge{{Model: "other", Prompt: "p0"}}, []string{"jury: 7 outcomes"}},
	} {
		where := make(map[string][]string)
		for _, w := range s.analyze(t, report.Beside{Compared: c.compared}).Warnings {
			where[w.Kind] = w.Where
		}
		if !slices.Equal(where["uncompared"], c.want) || !slices.Equal(where["judged_alone"], []string{"jury: 3 outcomes"}) {
			t.Errorf("compared %v: warnings about %q and %q", c.compared, where["uncompared"], where["judged_alone"])
		}
	}
}
