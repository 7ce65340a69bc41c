package exhibit_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// ranked returns a model's place, and its comparison with the next one.
func ranked(model string, rate, q float64) report.Rank {
	return report.Rank{
		Model: model, Done: 40, Rate: rate,
		Interval: stat.Interval{Low: rate - .1, High: rate + .1},
		Next: &report.Paired{
			Q: q, Comparison: stat.Comparison{Tasks: 20, Difference: -.1, Detectable: .2},
		},
	}
}

func last(model string, rate float64) report.Rank {
	r := ranked(model, rate, 1)
	r.Next = nil
	return r
}

func TestHeadlineSaysHowSureTheOrderIs(t *testing.T) {
	t.Parallel()
	alone := ranked("c", .5, 1)
	alone.Next = nil
	for want, order := range map[string][]report.Rank{
		"a 80 % of 40 trials (95 % interval 70 to 90 %)": {last("a", .8)},
		"a 80 % > b 60 %, which is more than chance (q = .002)": {
			ranked("a", .8, .002), last("b", .6),
		},
		"a 80 % and b 70 % cannot be told apart (q = .400); about 80 tasks may be enough": {
			ranked("a", .8, .4), last("b", .7),
		},
		"c 50 %, b 40 %; they have no task in common": {alone, last("b", .4)},
		"a 90 % > b 80 % > d 0 % (> is more than chance, q ≤ .010)": {
			ranked("a", .9, .002), ranked("b", .8, .01), last("d", 0),
		},
		"a 90 % > b 80 % ≈ c 50 % | d 0 % (> is more than chance, q < .001; ≈ may be chance; " +
			"| have no task in common)": {
			ranked("a", .9, .0001), ranked("b", .8, .2), alone, last("d", 0),
		},
		"a 90 % > a 90 % > a 90 % > a 90 % > a 90 %, and 2 more (> is more than chance, q ≤ .010)": {
			ranked("a", .9, .01), ranked("a", .9, .01), ranked("a", .9, .01), ranked("a", .9, .01),
			ranked("a", .9, .4), ranked("a", .9, .01), last("a", .9),
		},
	} {
		a := &report.Analysis{Table: &report.Table{}, Headline: report.Headline{Order: order}}
		if got := exhibit.Headline(a)[0].Text; got != want {
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
		a := &report.Analysis{Table: &report.Table{}, Headline: report.Headline{Loss: l}}
		if got := exhibit.Headline(a)[0].Text; got != want {
			t.Errorf("the line is\n%s\nwant\n%s", got, want)
		}
	}
}

func TestHeadlineSaysWhatItTook(t *testing.T) {
	t.Parallel()
	for want, a := range map[string]report.Analysis{
		"0 of 9 trials done, no faults, cost $0.00": {Table: &report.Table{Planned: 9}},
		"7 of 9 trials done (1 skipped) in 1m30s over 2 runs, 1 fault, " +
			"at least $1.20; the cost of m is unknown, 1 warning": {
			Table:    &report.Table{Planned: 9, Done: 7, Skipped: 1},
			Headline: report.Headline{Runs: 2, Seconds: 90, Faults: 1, USD: 1.2, Unpriced: []string{"m"}},
			Warnings: []report.Warning{{}},
		},
		"9 of 9 trials done in 2.5 s, 3 faults, cost unknown, 2 warnings": {
			Table:    &report.Table{Planned: 9, Done: 9},
			Headline: report.Headline{Runs: 1, Seconds: 2.5, Faults: 3, Unpriced: []string{"m"}},
			Warnings: []report.Warning{{}, {}},
		},
	} {
		lines := exhibit.Headline(&a)
		if got := lines[len(lines)-1].Text; got != want {
			t.Errorf("the last line is\n%s\nwant\n%s", got, want)
		}
	}
}

// TestHeadlineLeavesOutEmptyLines checks the labels of all lines, and which ones fall away.
func TestHeadlineLeavesOutEmptyLines(t *testing.T) {
	t.Parallel()
	full := report.Headline{
		Order: []report.Rank{last("m", .5)}, Loss: &report.Loss{},
		Causes: []report.TopCause{
			{Model: "m", Cause: assay.NoAction, Count: 3, Failed: 4},
			{Model: "n", Cause: assay.BadLuck, Count: 1, Failed: 2},
			{Model: "o", Cause: assay.NoAction, Count: 5, Failed: 5},
		},
		Example: &report.Example{
			Trial: "0123456789", Cause: assay.NoAction,
			Cell: assay.Cell{Model: "m", Variant: "cot", TaskType: "basic_task", Reliability: .7},
		},
		Show: "go run ./cmd/assay show",
	}
	labels := func(h report.Headline) (all []string) {
		for _, p := range exhibit.Headline(&report.Analysis{Table: &report.Table{}, Headline: h}) {
			all = append(all, p.Label)
		}
		return all
	}
	want := []string{"Full success", "Largest loss", "Failures", "To look at", "Run"}
	if diff := cmp.Diff(want, labels(full)); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	full.Shared, full.Without = true, []string{"p", "q"}
	order := exhibit.Headline(&report.Analysis{Table: &report.Table{}, Headline: full})[0].Text
	if !strings.HasSuffix(order, ", on what all have done; no outcome yet: p, q") {
		t.Errorf("order %q", order)
	}
	if diff := cmp.Diff([]string{"Run"}, labels(report.Headline{})); diff != "" {
		t.Errorf("labels without outcomes (-want +got):\n%s", diff)
	}
	lines := exhibit.Headline(&report.Analysis{Table: &report.Table{}, Headline: full})
	if want := "no action: m 3 of 4, o 5 of 5; bad luck: n 1 of 2"; lines[2].Text != want {
		t.Errorf("causes %q, want %q", lines[2].Text, want)
	}
	example := "`go run ./cmd/assay show 01234567`: m, cot, basic task, reliability 0.7: no action"
	if lines[3].Text != example {
		t.Errorf("example %q, want %q", lines[3].Text, example)
	}
	if strings.Contains(lines[4].Text, "\n") {
		t.Errorf("the last line is several: %q", lines[4].Text)
	}
}
