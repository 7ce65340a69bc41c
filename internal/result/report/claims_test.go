package report_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// try adds an attempt at a task by a model.
func (s *scene) try(
	c assay.Cell, task string, repeat int, set assay.Setting, full bool, tools ...string,
) *assay.Attempt {
	s.trials = append(s.trials, assay.NewTrial(c,
		assay.TaskRef{ID: assay.TaskID(task), Digest: "d"}, set, 1, repeat))
	level := assay.Failure
	if full {
		level = assay.FullSuccess
	}
	s.attempts = append(s.attempts, outcome(s.trials[len(s.trials)-1], level, 3))
	a := &s.attempts[len(s.attempts)-1]
	a.RequiredTools, a.ScoreVersion, a.Best = tools, "v2", .8
	return a
}

func cellOf(model, difficulty string, reliability float64) assay.Cell {
	return assay.Cell{
		Model: model, Variant: "optimal", Difficulty: difficulty, TaskType: "basic_task",
		Reliability: reliability,
	}
}

// simpson returns two identical models. The first one has four repeats at the higher reliability
// and one at the lower, and the second one the reverse.
func simpson(r *rand.Rand) (s scene) {
	for task := range 40 {
		for i, model := range []string{"a", "b"} {
			for k, reliability := range []float64{.9, .6} {
				for repeat := range 1 + 3*((i+k+1)%2) {
					s.try(cellOf(model, "easy", reliability), fmt.Sprint(task), repeat+1,
						assay.Setting{World: "assay-1"}, r.Float64() < reliability)
				}
			}
		}
	}
	return s
}

// TestConditionsWeighAlike checks that a condition's effect does not pass for the model's if the
// models have unequal repeats, in comparisons and in reports. Added up over conditions, the models
// would differ by 18 points.
func TestConditionsWeighAlike(t *testing.T) {
	t.Parallel()
	const draws = 30
	var compared, reported float64
	for seed := range uint64(draws) {
		s := simpson(rand.New(rand.NewPCG(seed, 13)))
		of := func(model string) []assay.Attempt {
			return slices.DeleteFunc(slices.Clone(s.attempts),
				func(a assay.Attempt) bool { return a.Model != model })
		}
		c, err := report.Compare("a", "b", stat.Auto, all(of("a")...), all(of("b")...))
		if err != nil {
			t.Fatal(err)
		}
		if c.Whole.P < .05 {
			compared++
		}
		if s.analyze(t, report.Beside{}).Models[0].P < .05 {
			reported++
		}
	}
	for what, n := range map[string]float64{"compare": compared, "report": reported} {
		if n/draws > .15 {
			t.Errorf("%s: %.3f of equal models differ", what, n/draws)
		}
	}
}

// TestFewSequencesAreClusters gives two models 120 tasks of six sequences of tools. Each model
// solves the tasks of some sequences, so there are six independent observations.
func TestFewSequencesAreClusters(t *testing.T) {
	t.Parallel()
	var s scene
	for task := range 120 {
		sequence := task % 6
		for i, model := range []string{"a", "b"} {
			for repeat := range 2 {
				s.try(cellOf(model, "easy", .8), fmt.Sprint(task), repeat+1,
					assay.Setting{World: "assay-1"}, sequence < 3+i, fmt.Sprint("tool", sequence))
			}
		}
	}
	width, passes := make(map[string]float64), make(map[string]float64)
	for _, cluster := range []string{stat.Auto, stat.ByTask, stat.BySequence} {
		d := report.Design{Cluster: cluster}
		a, err := d.Analyze("e", slices.Values(s.trials), all(s.attempts...), report.Beside{})
		if err != nil {
			t.Fatal(err)
		}
		if p := a.Population; p.Tasks != 120 || p.Sequences != 6 {
			t.Errorf("%s: %+v", cluster, p)
		}
		m := a.Models[0]
		if (m.P < .05) != (cluster == stat.ByTask) || m.Mixed == nil || m.Mixed.Interval.Low > 0 {
			t.Errorf("%s: p = %v, mixed model %+v", cluster, m.P, m.Mixed)
		}
		width[cluster] = intervalOf(rows[row](a.Rows)[0])
		pass := a.Repeats[0].Passes[1].HatInterval
		passes[cluster] = pass.High - pass.Low
	}
	if passes[stat.Auto] != passes[stat.BySequence] ||
		passes[stat.BySequence] < 2*passes[stat.ByTask] {
		t.Errorf("widths of pass^2 %v", passes)
	}
	if width[stat.Auto] != width[stat.BySequence] ||
		width[stat.BySequence] < 2*width[stat.ByTask] {
		t.Errorf("widths %v", width)
	}
}

// TestDifferencesOfLevelsHaveIntervals checks that a difference of levels is paired and has an
// interval, and that there is no difference if the levels have different tasks.
func TestDifferencesOfLevelsHaveIntervals(t *testing.T) {
	t.Parallel()
	for name, same := range map[string]bool{"the same tasks": true, "other tasks": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s scene
			for i := range 30 {
				task := fmt.Sprint(i)
				s.try(cellOf("m", "easy", .8), task, 1, assay.Setting{}, i%3 > 0)
				if !same {
					task += " reworded"
				}
				s.try(cellOf("m", "hard", .8), task, 1, assay.Setting{}, i%3 > 1)
			}
			d := report.Design{Parts: []report.Part{{Varies: []string{"difficulty"}}}}
			r := s.build(t, d).Parts[0].Rows[0]
			if !same {
				if r.Difference != nil || r.DifferenceInterval != nil {
					t.Errorf("%v in %v", *r.Difference, *r.DifferenceInterval)
				}
				return
			}
			if value(r.Difference) != "-0.3333" || r.DifferenceTasks != 30 ||
				r.DifferenceInterval.High >= 0 || r.DifferenceInterval.Low < -.55 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestOfBestHasInterval checks the share of the best possible and its interval, and that a setting with
// another ceiling has neither. It is at most 1, because it is about the trials that can be won with
// their luck: here, a tenth of them can only be won because the model has won them.
func TestOfBestHasInterval(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]assay.Setting{
		"":        {},
		"tokens":  {Tokens: 1000},
		"dollars": {USD: 1},
		"loops":   {Loops: "repeat=3!"},
	} {
		var s scene
		for i := range 40 {
			s.try(cellOf("m", "easy", .8), fmt.Sprint(i), 1, set, i%2 > 0)
		}
		lost := make(map[assay.TrialID]bool)
		for i := range 8 {
			lost[s.trials[i].ID] = true
		}
		for i := range s.attempts { // a store does not read the settings of attempts again
			s.attempts[i].Setting = assay.Setting{}
		}
		r := rows[row](s.build(t, report.Design{
			Winnable: func(trial *assay.Trial) bool { return !lost[trial.ID] },
		}).Rows)[0]
		if name != "" {
			if r.OfBest != nil || r.OfBestInterval != nil || r.Best != nil {
				t.Errorf("%s: %+v", name, r)
			}
			continue
		}
		want := stat.Wilson(20, 36, stat.Z95)
		diff := cmp.Diff(&want, r.OfBestInterval, cmpopts.EquateApprox(0, 1e-9))
		if value(r.OfBest) != "0.5556" || diff != "" {
			t.Errorf("%s of best (-want +got):\n%s", value(r.OfBest), diff)
		}
	}
}

// TestAlarmsWeighChance checks that equal results of two variants raise an alarm only if chance
// would have made them differ. Repeats are no further tasks.
func TestAlarmsWeighChance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tasks, repeats, failures int
		alarm                    bool
	}{
		"20 tasks at 95 %":             {20, 1, 1, false},
		"20 tasks at 50 %":             {20, 1, 10, true},
		"5 tasks of 8 trials at 40 %":  {5, 8, 3, false},
		"300 tasks at 95 %":            {300, 1, 15, true},
		"20 tasks of 3 trials at 50 %": {20, 3, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s scene
			for task := range c.tasks {
				for _, v := range []string{"cot", "optimal"} {
					for repeat := range c.repeats {
						cell := cellOf("m", "easy", .8)
						cell.Variant = v
						s.try(cell, fmt.Sprint(task), repeat+1, assay.Setting{}, task >= c.failures)
					}
				}
			}
			prompts := map[string]string{"cot": "a", "optimal": "b"}
			a := s.analyze(t, report.Beside{Prompts: prompts})
			alarm := slices.ContainsFunc(a.Warnings,
				func(w report.Warning) bool { return w.Kind == "no_difference" })
			if alarm != c.alarm {
				t.Errorf("alarm %v: %+v", alarm, a.Variants)
			}
		})
	}
}

// TestTestsAreFamilies checks that each q is adjusted for all tests of a report but those of pairs of
// models, which have the p of the ranking.
func TestTestsAreFamilies(t *testing.T) {
	t.Parallel()
	var s scene
	for task := range 40 {
		for i, model := range []string{"a", "b", "c"} {
			for k, v := range []string{"cot", "optimal"} {
				cell := cellOf(model, "easy", .8)
				cell.Variant = v
				s.try(cell, fmt.Sprint(task), 1, assay.Setting{}, (task+3*k)%8 > i)
			}
		}
	}
	a := s.analyze(t, report.Beside{})
	tests := a.Variants
	if a.Tests != len(tests) || a.Tests != 3 {
		t.Errorf("a family of %d, with %d tests", a.Tests, len(tests))
	}
	var p []float64
	for _, test := range tests {
		p = append(p, test.P)
	}
	for i, q := range stat.BenjaminiHochberg(p) {
		if tests[i].Q != q {
			t.Errorf("%s and %s: q = %v, want %v", tests[i].A, tests[i].B, tests[i].Q, q)
		}
	}
	better := 0
	for _, m := range a.Models {
		if m.Significant() {
			better++
		}
	}
	if len(a.Models) != 3 || better != len(a.Ranking.Pairs) || better == 0 {
		t.Errorf("%d of %d pairs of models differ, and %d in the ranking", better, len(a.Models),
			len(a.Ranking.Pairs))
	}
}

func intervalOf(r row) float64 { return r.FullInterval.High - r.FullInterval.Low }
