package sections_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A ranked model succeeds at the first ones of some tasks.
type ranked struct {
	model string
	full  int
}

// order returns an analysis that ranks models, the best first, on n tasks.
func order(n int, all ...ranked) *report.Analysis {
	a := &report.Analysis{
		Table: &report.Table{}, Condition: "the right plan and reliable tools",
		Ranking: &report.Ranking{Pairs: []report.RankedPair{}},
	}
	tasks := make([]stat.Shared, n)
	for i := range tasks {
		tasks[i].Cells = make([][]stat.Group, 1)
	}
	for _, r := range all {
		a.Ranking.Names = append(a.Ranking.Names, r.model)
		for i := range tasks {
			g := stat.Group{N: 1}
			if i < r.full {
				g.Full = 1
			}
			tasks[i].Cells[0] = append(tasks[i].Cells[0], g)
		}
	}
	a.Ranking.Ranking = stat.Rank(tasks, false)
	for i, r := range all {
		rate := stat.SharedRate(tasks, i, false, .95)
		a.Standings = append(a.Standings, report.Standing{
			Model: r.model, Common: n, Ranked: n, Planned: n, Done: n, Compared: len(all) > 1,
			Success: report.Share{Rate: rate.Rate, Interval: rate.Interval},
		})
		for k := range all[i+1:] {
			if p := a.Ranking.P(i, i+1+k); p <= stat.RankLevel {
				a.Ranking.Pairs = append(a.Ranking.Pairs, report.RankedPair{A: r.model, B: all[i+1+k].model, P: p})
			}
		}
	}
	return a
}

func TestHeadlineSaysHowSureTheOrderIs(t *testing.T) {
	t.Parallel()
	const with = "with the right plan and reliable tools: "
	for want, a := range map[string]*report.Analysis{
		"a 80 % of 40 trials (95 % interval 65 to 90 %)":        order(40, ranked{"a", 32}),
		"a 80 % > b 50 % (> is significant, adjusted p < .001)": order(40, ranked{"a", 32}, ranked{"b", 20}),
		"a 80 % ≈ b 75 % (≈ may be chance)":                     order(40, ranked{"a", 32}, ranked{"b", 30}),
		"a 90 % > b 50 % ≈ c 48 % > d 0 % (> is significant, adjusted p < .001; ≈ may be chance)": order(40,
			ranked{"a", 36}, ranked{"b", 20}, ranked{"c", 19}, ranked{"d", 0}),
		"a 60 % ≈ b 50 % ≈ c 40 % (≈ may be chance, but a > c, adjusted p = .008)": order(40,
			ranked{"a", 24}, ranked{"b", 20}, ranked{"c", 16}),
		"a 90 % ≈ b 90 % ≈ c 90 % ≈ d 90 % ≈ e 90 %, and 2 more (≈ may be chance)": order(40,
			ranked{"a", 36}, ranked{"b", 36}, ranked{"c", 36}, ranked{"d", 36}, ranked{"e", 36},
			ranked{"f", 36}, ranked{"g", 36}),
	} {
		if got := sections.Headline(a)[0].Text; got != with+want {
			t.Errorf("the first line is\n%s\nwant\n%s", got, with+want)
		}
	}
	out := order(40, ranked{"a", 32}, ranked{"b", 20})
	out.Standings = append(out.Standings, report.Standing{Model: "c", Success: report.Share{Rate: .9}})
	want := with + "a 80 % > b 50 % | c 90 % (> is significant, adjusted p < .001; | is not compared)"
	if got := sections.Headline(out)[0].Text; got != want {
		t.Errorf("the first line is\n%s\nwant\n%s", got, want)
	}
}

func TestHeadlineSaysWhatCostsMost(t *testing.T) {
	t.Parallel()
	loss := func(factor, level, against string) report.Losses {
		return report.Losses{Compared: 3, Largest: &report.Loss{
			Model: "m", Factor: factor, Level: level, Against: against,
			ShownLoss: stat.ShownLoss{Points: .25, AtLeast: .1},
		}}
	}
	const lost = "m loses at least 10 points "
	for want, l := range map[string]report.Losses{
		lost + "with the flawed plan missing step instead of optimal": loss(
			"variant", "flawed_missing_step", "optimal"),
		lost + "with variant own plan instead of optimal":               loss("variant", "own_plan", "optimal"),
		lost + "at reliability 0.6 instead of 0.9":                      loss("reliability", "0.6", "0.9"),
		lost + "on very hard tasks instead of easy ones":                loss("difficulty", "very_hard", "easy"),
		lost + "on tasks of type refund, compared with its other tasks": loss("task_type", "refund", ""),
		lost + "on task t_7, compared with its other tasks":             loss(report.Task, "t_7", ""),
		"none is beyond chance if all 3 comparisons are taken together": {Compared: 3},
		"none is beyond chance if all 3 comparisons are taken together; a level needs 9 independent tasks to " +
			"show one, and there are 6": {Compared: 3, Clusters: 6, ClustersNeeded: 9},
	} {
		if l.Largest != nil {
			want += " (25 points in these trials)"
		}
		a := &report.Analysis{Table: &report.Table{}, Losses: l}
		if got := sections.Headline(a)[0].Text; got != want {
			t.Errorf("the line is\n%s\nwant\n%s", got, want)
		}
	}
}

// spent returns the costs of models, of which the last one, m, has tokens of unknown cost.
func spent(usd ...float64) *report.Grid {
	var rows []report.GridRow
	for i, n := range usd {
		last := i+1 == len(usd)
		r := report.GridRow{Values: []report.Value{{Known: true, Number: n, AtLeast: last}}}
		if last {
			r.Model = "m"
		}
		rows = append(rows, r)
	}
	return report.NewGrid([]string{"model"}, []*report.Measure{report.Spent}, rows...)
}

func TestHeadlineSaysWhatItTook(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]report.Analysis{
		"0 of 9 trials done, no faults, cost $0.00": {Table: &report.Table{Planned: 9}},
		"7 of 9 trials done (1 skipped) in 1m30s over 2 runs, 1 fault (1 network, retried), " +
			"at least $1.20; not all costs of m are known, 1 warning": {
			Table: &report.Table{Planned: 9, Done: 7, Skipped: 1, Met: assay.FaultCount{
				Retried: map[assay.FaultKind]int{assay.Network: 1},
			}},
			Background: report.Background{Runs: 2, Seconds: 90}, Warnings: []report.Warning{{}},
			Effort: spent(1.2, 0),
		},
		"9 of 9 trials done in 2.5 s, 70 faults (49 rate_limited, 21 network; 2 ended attempts), " +
			"cost unknown, 2 warnings": {
			Table: &report.Table{Planned: 9, Done: 9, Met: assay.FaultCount{
				Ended:   map[assay.FaultKind]int{assay.Network: 2},
				Retried: map[assay.FaultKind]int{assay.RateLimited: 49, assay.Network: 19},
			}},
			Background: report.Background{Runs: 1, Seconds: 2.5}, Warnings: []report.Warning{{}, {}},
			Effort: spent(0),
		},
	} {
		lines := sections.Headline(&a)
		if got := lines[len(lines)-1].Text; got != want {
			t.Errorf("the last line is\n%s\nwant\n%s", got, want)
		}
	}
}

// TestHeadlineLeavesOutEmptyLines checks all lines, and which ones fall away.
func TestHeadlineLeavesOutEmptyLines(t *testing.T) {
	t.Parallel()
	failed := func(model string, cause assay.Cause, n, total int) report.ErrorRow {
		cells := []report.ErrorCell{{Cause: cause, Share: report.Share{Count: n}}}
		return report.ErrorRow{Model: model, Total: total, Cells: cells}
	}
	full := order(40, ranked{"m", 20})
	full.Main = report.NewGrid([]string{"model"}, []*report.Measure{report.Done},
		report.GridRow{Cell: assay.Cell{Model: "m"}, Values: []report.Value{{Known: true, Number: 50}}},
		report.GridRow{Cell: assay.Cell{Model: "p"}, Values: []report.Value{{Known: true}}},
		report.GridRow{Cell: assay.Cell{Model: "q"}, Values: []report.Value{{Known: true}}})
	full.Losses.Compared, full.Show = 1, "go run ./cmd/assay show"
	full.Errors.Rows = []report.ErrorRow{
		failed("m", assay.NoAction, 3, 4), failed("n", assay.BadLuck, 1, 2),
		{Model: "never"},
		failed("o", assay.NoAction, 5, 5),
	}
	full.Example = &report.Example{
		Trial: "0123456789", Cause: assay.NoAction,
		Cell: &assay.Cell{Model: "m", Variant: "cot", TaskType: "basic_task", Reliability: .7},
	}
	want := []document.Point{
		{Label: "Full success", Text: "with the right plan and reliable tools: m 50 % of 40 trials " +
			"(95 % interval 35 to 65 %); no outcome yet: p, q"},
		{Label: "Largest loss", Text: "none is beyond chance"},
		{Label: "Failures", Text: "no action: m 3 of 4, o 5 of 5; bad luck: n 1 of 2"},
		{Label: "To look at", Text: "`go run ./cmd/assay show 01234567`: m, cot, basic task, " +
			"reliability 0.7: no action"},
		{Label: "Run", Text: "0 of 0 trials done, no faults, cost $0.00"},
	}
	if diff := cmp.Diff(want, sections.Headline(full)); diff != "" {
		t.Errorf("all lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[4:], sections.Headline(order(1))); diff != "" {
		t.Errorf("lines without outcomes (-want +got):\n%s", diff)
	}
}
