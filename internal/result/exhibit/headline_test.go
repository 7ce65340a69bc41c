package exhibit_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A ranked model has the q of its comparison with the next one, or 0 without a common task.
type ranked struct {
	model   string
	rate, q float64
}

// order returns an analysis that ranks models.
func order(all ...ranked) *report.Analysis {
	a := &report.Analysis{Table: &report.Table{}}
	for i, r := range all {
		success := report.Share{
			Rate: r.rate, Interval: stat.Interval{Low: r.rate - .1, High: r.rate + .1},
		}
		a.Standings = append(a.Standings,
			report.Standing{Model: r.model, Common: 40, Success: success})
		if r.q > 0 {
			a.Models = append(a.Models, report.Paired{
				A: r.model, B: all[i+1].model, Q: r.q,
				Comparison: stat.Comparison{Tasks: 20, Difference: -.1, Detectable: .2},
			})
		}
	}
	return a
}

func TestHeadlineSaysHowSureTheOrderIs(t *testing.T) {
	t.Parallel()
	for want, all := range map[string][]ranked{
		"a 80 % of 40 trials (95 % interval 70 to 90 %)":        {{"a", .8, 0}},
		"a 80 % > b 60 %, which is more than chance (q = .002)": {{"a", .8, .002}, {"b", .6, 0}},
		"a 80 % and b 70 % cannot be told apart (q = .400); about 80 tasks may be enough": {
			{"a", .8, .4}, {"b", .7, 0},
		},
		"c 50 %, b 40 %; they have no task in common": {{"c", .5, 0}, {"b", .4, 0}},
		"a 90 % > b 80 % > d 0 % (> is more than chance, q ≤ .010)": {
			{"a", .9, .002}, {"b", .8, .01}, {"d", 0, 0},
		},
		"a 90 % > b 80 % ≈ c 50 % | d 0 % (> is more than chance, q < .001; ≈ may be chance; " +
			"| have no task in common)": {
			{"a", .9, .0001}, {"b", .8, .2}, {"c", .5, 0}, {"d", 0, 0},
		},
		"a 90 % > b 90 % > c 90 % > d 90 % > e 90 %, and 2 more (> is more than chance, q ≤ .010)": {
			{"a", .9, .01},
			{"b", .9, .01},
			{"c", .9, .01},
			{"d", .9, .01},
			{"e", .9, .4},
			{"f", .9, .01},
			{"g", .9, 0},
		},
	} {
		if got := exhibit.Headline(order(all...))[0].Text; got != want {
			t.Errorf("the first line is\n%s\nwant\n%s", got, want)
		}
	}
}

func TestHeadlineSaysWhatCostsMost(t *testing.T) {
	t.Parallel()
	loss := func(factor, level, against string, significant bool) *report.Loss {
		return &report.Loss{
			Model: "m", Factor: factor, Level: level, Against: against, Points: .25,
			Interval: stat.Interval{Low: .1, High: .4}, Significant: significant,
		}
	}
	for want, l := range map[string]*report.Loss{
		"m loses 25 points (10 to 40) with the flawed plan missing step instead of optimal": loss(
			"variant", "flawed_missing_step", "optimal", true),
		"m loses 25 points (10 to 40) with variant own plan instead of optimal": loss(
			"variant", "own_plan", "optimal", true),
		"m loses 25 points (10 to 40) at reliability 0.6 instead of 0.9": loss(
			"reliability", "0.6", "0.9", true),
		"m loses 25 points (10 to 40) on very hard tasks instead of easy ones": loss(
			"difficulty", "very_hard", "easy", true),
		"m loses 25 points (10 to 40) on tasks of type refund, compared with the others": loss(
			"task_type", "refund", "", true),
		"none is more than chance; the largest is 25 points (10 to 40) for m on task t_7, " +
			"compared with the others": loss(report.Task, "t_7", "", false),
	} {
		a := &report.Analysis{Table: &report.Table{}, Loss: l}
		if got := exhibit.Headline(a)[0].Text; got != want {
			t.Errorf("the line is\n%s\nwant\n%s", got, want)
		}
	}
}

// faults returns rows with attempts that ended in faults.
func faults(counts ...int) *report.Grid {
	var rows []report.GridRow
	for _, n := range counts {
		rows = append(rows, report.GridRow{
			Values: []report.Value{{Known: true, Number: float64(n)}},
		})
	}
	return report.NewGrid(nil, []*report.Measure{report.Faults}, rows...)
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
		"7 of 9 trials done (1 skipped) in 1m30s over 2 runs, 1 fault, " +
			"at least $1.20; not all costs of m are known, 1 warning": {
			Table: &report.Table{Planned: 9, Done: 7, Skipped: 1, Rows: faults(1)},
			Runs:  2, Seconds: 90, Warnings: []report.Warning{{}},
			Effort: spent(1.2, 0),
		},
		"9 of 9 trials done in 2.5 s, 3 faults, cost unknown, 2 warnings": {
			Table: &report.Table{Planned: 9, Done: 9, Rows: faults(1, 2)},
			Runs:  1, Seconds: 2.5, Warnings: []report.Warning{{}, {}},
			Effort: spent(0),
		},
	} {
		lines := exhibit.Headline(&a)
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
	full := order(ranked{"m", .5, 0})
	full.Standings[0].Done = 50
	full.Main = report.NewGrid([]string{"model"}, []*report.Measure{report.Done},
		report.GridRow{Cell: assay.Cell{Model: "m"}, Values: []report.Value{{Known: true, Number: 50}}},
		report.GridRow{Cell: assay.Cell{Model: "p"}, Values: []report.Value{{Known: true}}},
		report.GridRow{Cell: assay.Cell{Model: "q"}, Values: []report.Value{{Known: true}}})
	full.Loss, full.Show = &report.Loss{}, "go run ./cmd/assay show"
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
		{Label: "Full success", Text: "m 50 % of 40 trials (95 % interval 40 to 60 %), on what all " +
			"have done; no outcome yet: p, q"},
		{Label: "Largest loss", Text: "none is more than chance; the largest is 0 points (0 to 0) for  " +
			"with variant none instead of none"},
		{Label: "Failures", Text: "no action: m 3 of 4, o 5 of 5; bad luck: n 1 of 2"},
		{Label: "To look at", Text: "`go run ./cmd/assay show 01234567`: m, cot, basic task, " +
			"reliability 0.7: no action"},
		{Label: "Run", Text: "0 of 0 trials done, no faults, cost $0.00"},
	}
	if diff := cmp.Diff(want, exhibit.Headline(full)); diff != "" {
		t.Errorf("all lines (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[4:], exhibit.Headline(order())); diff != "" {
		t.Errorf("lines without outcomes (-want +got):\n%s", diff)
	}
}
