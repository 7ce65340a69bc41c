package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/result/stat"
)

// succeed adds the outcomes of trials at n tasks in a cell, of which the first ones fully succeed.
func (s *scene) succeed(c assay.Cell, n, full int, cause assay.Cause) {
	c.Difficulty = "easy"
	for i := range n {
		task := fmt.Sprintf("%s-%d", c.TaskType, i)
		a := s.try(c, task, 1, assay.Setting{World: "pilot"}, i < full, task)
		a.Cause = cause
	}
}

func inCell(model, variant string, reliability float64) assay.Cell {
	return assay.Cell{Model: model, Variant: variant, TaskType: "t", Reliability: reliability}
}

// TestHeadlineNamesTheLargestLoss checks that the loss is the largest that is significant, and
// that the example is a failure in its cells, for the most frequent reason there and with the most
// reliable tools.
func TestHeadlineNamesTheLargestLoss(t *testing.T) {
	t.Parallel()
	var p scene
	for _, reliability := range []float64{0.9, 0.6} {
		p.succeed(inCell("m", assay.Optimal, reliability), 30, 30, "")
		p.succeed(inCell("m", "flawed_missing_step", reliability), 30, 3, assay.WrongTool)
		p.succeed(inCell("n", assay.Optimal, reliability), 30, 21, assay.NoAction)
		p.succeed(inCell("n", "flawed_missing_step", reliability), 30, 21, assay.NoAction)
	}
	h := p.analyze(t, report.Beside{})
	if l := h.Losses.Largest; l == nil || l.Model != "m" || l.Level != "flawed_missing_step" ||
		l.Against != assay.Optimal || fmt.Sprintf("%.2f", l.Points) != "0.90" || l.AtLeast < 0.5 {
		t.Fatalf("loss %+v", l)
	}
	e := h.Example
	if e == nil || e.Cell.Model != "m" || e.Cell.Variant != "flawed_missing_step" ||
		e.Cell.Reliability != 0.9 || e.Cause != assay.WrongTool {
		t.Fatalf("example %+v", e)
	}
	at := slices.IndexFunc(p.attempts, func(a assay.Attempt) bool { return a.ID == e.Trial })
	if p.attempts[at].Level == assay.FullSuccess {
		t.Errorf("the example is a success")
	}
}

// TestReplaysShowNoLoss has tasks whose one luck decides all plays. A fifth of them had bad luck, which is no
// property of a task.
func TestReplaysShowNoLoss(t *testing.T) {
	t.Parallel()
	var p scene
	for i := range 20 {
		for n := range 5 {
			p.try(inCell("m", assay.Optimal, .8), fmt.Sprint(i), 1, assay.Setting{}, i%5 > 0).Cause = assay.BadLuck
			at := len(p.trials) - 1
			p.trials[at] = p.trials[at].Replayed(n)
			p.attempts[at].Trial = p.trials[at]
		}
	}
	l := p.analyze(t, report.Beside{}).Losses
	if l.Largest != nil || l.Compared != 20 || l.Fewest != 1 {
		t.Errorf("%+v, the largest %+v", l, l.Largest)
	}
}

// TestSharedLuckShowsNoLoss has tasks whose one luck decides under all conditions in which tools fail. With
// more of it, a task that always fails is a loss; with reliable tools, each condition is a trial of its own.
func TestSharedLuckShowsNoLoss(t *testing.T) {
	t.Parallel()
	find := func(reliability float64, repeats int, full func(task, repeat int) bool) report.Losses {
		var p scene
		for i := range 20 {
			for repeat := range repeats {
				for _, words := range []string{"", "casual", "typed"} {
					for _, other := range []string{"", "mild", "severe"} {
						c := inCell("m", assay.Optimal, reliability)
						c.Phrasing, c.Interface = words, other
						p.try(c, fmt.Sprint(i), repeat+1, assay.Setting{}, full(i, repeat)).Cause = assay.BadLuck
					}
				}
			}
		}
		return p.analyze(t, report.Beside{}).Losses
	}
	r := rand.New(rand.NewPCG(3, 9))
	for range 20 {
		luck := make(map[[2]int]bool)
		l := find(.8, 1+r.IntN(3), func(task, repeat int) bool {
			if _, known := luck[[2]int{task, repeat}]; !known {
				luck[[2]int{task, repeat}] = r.IntN(5) > 0
			}
			return luck[[2]int{task, repeat}]
		})
		if l.Largest != nil {
			t.Errorf("%+v, the largest %+v", l, l.Largest)
		}
	}
	broken := func(task, repeat int) bool { return task != 7 }
	for reliability, repeats := range map[float64]int{.8: 6, 1: 1} {
		if l := find(reliability, repeats, broken); l.Largest == nil || l.Largest.Level != "7" || l.Largest.AtLeast <= 0 {
			t.Errorf("reliability %g: %+v, the largest %+v", reliability, l, l.Largest)
		}
	}
}

// TestHeadlineFindsLossesWithoutFactors checks the losses of experiments whose cells differ in the
// type of tasks, in the reliability, or not at all.
func TestHeadlineFindsLossesWithoutFactors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		play func(p *scene)
		want string // factor and level
	}{
		"type": {func(p *scene) {
			c := inCell("m", assay.Baseline, 1)
			p.succeed(c, 20, 19, assay.BadLuck)
			c.TaskType = "hard"
			p.succeed(c, 20, 2, assay.BadLuck)
		}, "task_type hard"},
		"reliability": {func(p *scene) {
			p.succeed(inCell("m", assay.Baseline, 1), 20, 20, assay.BadLuck)
			p.succeed(inCell("m", assay.Baseline, 0.5), 20, 5, assay.BadLuck)
		}, "reliability 0.5"},
		"one failure of many": {func(p *scene) {
			p.succeed(inCell("m", assay.Baseline, 1), 12, 11, assay.BadLuck)
		}, ""},
		"nothing failed": {func(p *scene) {
			p.succeed(inCell("m", assay.Baseline, 1), 12, 12, assay.BadLuck)
		}, ""},
		"everything failed": {func(p *scene) {
			p.succeed(inCell("m", assay.Baseline, 1), 12, 0, assay.BadLuck)
		}, ""},
		"nothing done": {func(*scene) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var p scene
			c.play(&p)
			got := ""
			h := p.analyze(t, report.Beside{})
			if l := h.Losses.Largest; l != nil {
				got = l.Factor + " " + l.Level
			}
			if got != c.want {
				t.Errorf("loss %q, want %q", got, c.want)
			}
			failed := slices.ContainsFunc(p.attempts, func(a assay.Attempt) bool {
				return a.Level != assay.FullSuccess
			})
			if failed != (h.Example != nil) {
				t.Errorf("example %+v", h.Example)
			}
		})
	}
}

// TestOrderIsAboutSharedTasks checks that a model that was only tried on easy tasks does not rank
// above one that is better on them, and that each step has its test.
func TestOrderIsAboutSharedTasks(t *testing.T) {
	t.Parallel()
	var p scene
	easy, hard := inCell("", assay.Baseline, 1), inCell("", assay.Baseline, 0.5)
	for _, m := range []struct {
		model      string
		easy, hard int
	}{{"narrow", 20, -1}, {"good", 30, 0}, {"bad", 2, 0}} {
		easy.Model, hard.Model = m.model, m.model
		p.succeed(easy, 30, m.easy, assay.BadLuck)
		if m.hard >= 0 {
			p.succeed(hard, 30, m.hard, assay.BadLuck)
		}
	}
	got := sections.Headline(p.analyze(t, report.Beside{}))[0].Text
	want := "with no plan and reliable tools: good 100 % > narrow 67 % > bad 7 % " +
		"(> is significant, adjusted p ≤ .004)"
	if got != want {
		t.Errorf("order %q, want %q", got, want)
	}
}

// TestProgressHasIntervalsOfReport checks that the intervals of a run in progress are those that a
// report has for the same outcomes, with few sequences of tools and with many.
func TestProgressHasIntervalsOfReport(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var trials []assay.Trial
		var attempts []assay.Attempt
		var p report.Progress
		sequences := rapid.IntRange(1, 40).Draw(t, "sequences")
		for i := range rapid.IntRange(1, 40).Draw(t, "tasks") {
			for repeat := range rapid.IntRange(1, 4).Draw(t, "repeats") {
				ref := assay.TaskRef{ID: assay.TaskID(fmt.Sprint("task-", i))}
				trial := assay.NewTrial(inCell("m", "cot", 1), ref, assay.Setting{}, 1, repeat)
				a := outcome(trial, assay.Failure, 1)
				g := stat.Group{N: 1}
				if rapid.Bool().Draw(t, "full") {
					a.Level, g.Full = assay.FullSuccess, 1
				}
				a.RequiredTools = []string{fmt.Sprint("tool-", i%sequences)}
				trials, attempts = append(trials, trial), append(attempts, a)
				p.Add("m", trial.Task, a.RequiredTools, g)
			}
		}
		a, err := report.Design{}.Analyze("e", slices.Values(trials), all(attempts...),
			report.Beside{})
		if err != nil {
			t.Fatal(err)
		}
		got, want := p.Rate("m").Interval, rows[metrics](a.Main)[0].Full.Interval
		if math.Abs(got.Low-want.Low)+math.Abs(got.High-want.High) > 1e-9 {
			t.Errorf("interval %v, and %v in the report by %s", got, want, a.Population.Cluster)
		}
	})
}

// TestTablesDoNotDependOnOrder checks that rows and the example stay the same if trials and
// attempts come in another order.
func TestTablesDoNotDependOnOrder(t *testing.T) {
	t.Parallel()
	var p scene
	for _, reliability := range []float64{1, 0.6, 0.8} {
		for _, variant := range []string{"own", assay.Optimal, "flawed_tool_misuse", assay.Baseline} {
			for _, model := range []string{"b", "a"} {
				p.succeed(inCell(model, variant, reliability), 3, 1, assay.BadLuck)
			}
		}
	}
	design := report.Design{Models: []string{"b", "a"}, Variants: []string{"own"}}
	analyze := func() (rows []string, example assay.TrialID) {
		a, err := design.Analyze("e", slices.Values(p.trials), all(p.attempts...), report.Beside{})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range a.Rows.Rows {
			rows = append(rows, fmt.Sprint(r.Model, " ", r.Variant, " ", r.Reliability))
		}
		return rows, a.Example.Trial
	}
	want, example := analyze()
	var sorted []string
	for _, model := range design.Models {
		for _, variant := range []string{assay.Baseline, assay.Optimal, "flawed_tool_misuse", "own"} {
			for _, reliability := range []float64{0.6, 0.8, 1} {
				sorted = append(sorted, fmt.Sprint(model, " ", variant, " ", reliability))
			}
		}
	}
	if diff := cmp.Diff(sorted, want); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	luck := rand.New(rand.NewPCG(1, 2))
	luck.Shuffle(len(p.trials), func(i, k int) {
		p.trials[i], p.trials[k] = p.trials[k], p.trials[i]
		p.attempts[i], p.attempts[k] = p.attempts[k], p.attempts[i]
	})
	got, again := analyze()
	if diff := cmp.Diff(want, got); diff != "" || example != again {
		t.Errorf("in another order, the example is %s instead of %s, and rows (-want +got):\n%s",
			again, example, diff)
	}
}
