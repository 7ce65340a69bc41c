package sections

import (
	"fmt"
	"math"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// Forks lays out what faults of tools have caused.
func Forks(f *report.Forks) *document.Document {
	d := &document.Document{
		Title: "What faults caused in " + f.Of,
		Lead: fmt.Sprintf("%s of attempts of %s, %d of %d played: of those of a call that met a fault, half meet "+
			"it again and half are spared it. Their beginnings cost nothing; the rest used %s tokens%s.",
			report.Capital(assay.Counted(f.Planned, "fork")), f.Of, f.Done, f.Planned,
			tokens(float64(f.Spent.Total())).Text, costOf(f.Spent)),
	}
	for _, e := range f.Effects {
		d.Headline = append(d.Headline, document.Point{
			Label: report.Capital(report.Readable(string(e.Fault))), Text: e.Model + ": " + lostText(&e),
		})
	}
	if n := f.Planned - f.Done; n > 0 {
		d.Warnings = append(d.Warnings, document.Warning{
			Title: "Some forks are not played",
			Text:  fmt.Sprintf("`assay fork %s` plays the %d that are left. What is missing may be what takes longest.", f.Of, n),
		})
	}
	d.Overview = &document.Section{
		ID: "forks", Title: "What each kind of fault costs", Table: forkTable(f.Effects, false),
		Lead: "Full success with the fault and without it, from the same beginnings, in percentage points.",
		Notes: []string{
			"Each call counts the same. Intervals and p are over tasks, because the forks of a task depend on " +
				"each other. q is adjusted for all rows.",
			"The difference is what the fault caused where it struck, which depends on how far the model had got. " +
				"It is no difference of success rates, and forks count in none.",
		},
	}
	if len(f.Places) > len(f.Effects) {
		d.Sections = append(d.Sections, document.Section{
			ID: "places", Title: "By place in the plan", Table: forkTable(f.Places, true),
			Lead: "The place is that of the first step that the call was right for.",
		})
	}
	return d
}

func costOf(s assay.Spend) string {
	if !s.Paid() {
		return ""
	}
	cost := assay.DollarsText(s.CostUSD, 2, s.AtLeast())
	if !s.Priced() {
		cost = "an unknown cost"
	}
	return " and " + cost
}

// lostText says how many successes a fault costs.
func lostText(e *report.ForkEffect) string {
	if e.Lost.Share == nil {
		return fmt.Sprintf("no fork succeeds that is spared it, so it has nothing to lose (%s)",
			assay.Counted(e.Calls, "call"))
	}
	bound := func(x *float64, otherwise string) string {
		if x == nil {
			return otherwise
		}
		return signed("%.0f", 100**x)
	}
	text := fmt.Sprintf("of 100 successes that this fault meets, %.0f are lost", 100*math.Max(0, *e.Lost.Share))
	if *e.Lost.Share < 0 {
		text = fmt.Sprintf("of 100 successes that this fault meets, none is lost, and %.0f are won", -100**e.Lost.Share)
	}
	return text + fmt.Sprintf(" (95 %% interval %s to %s; %s of %s)", bound(e.Lost.Low, "−∞"),
		bound(e.Lost.High, "100"), assay.Counted(e.Calls, "call"), assay.Counted(e.OfTasks, "task"))
}

// forkTable has a row for each effect.
func forkTable(effects []report.ForkEffect, places bool) *document.Table {
	type row = report.ForkEffect
	var columns []column[row]
	add := func(c document.Column, cell func(row) document.Cell) { columns = append(columns, fixed(c, cell)) }
	add(label("fault"), func(e row) document.Cell { return text(string(e.Fault)) })
	add(label("model"), func(e row) document.Cell { return text(e.Model) })
	if places {
		add(label("place"), func(e row) document.Cell { return text(e.Place) })
	} else {
		add(label("class"), func(e row) document.Cell { return text(e.Class) })
	}
	add(document.Column{Head: "calls", Hint: "that met the fault and have forks on both sides"},
		func(e row) document.Cell { return whole(e.Calls) })
	add(document.Column{Head: "tasks"}, func(e row) document.Cell { return whole(e.OfTasks) })
	add(document.Column{Head: "spared"}, func(e row) document.Cell { return points(e.RateA) })
	add(document.Column{Head: "with fault"}, func(e row) document.Cell { return points(e.RateB) })
	add(document.Column{Head: "caused", Hint: "with the fault less without it, in percentage points"},
		func(e row) document.Cell { return differenceCell(e.Paired) })
	add(document.Column{Head: "95 % interval"}, func(e row) document.Cell {
		return sorted(signed("%+.1f to %+.1f", 100*e.Interval.Low, 100*e.Interval.High), e.Interval.Low)
	})
	add(document.Column{Head: "p"}, func(e row) document.Cell { return sorted(report.Probability(e.P), e.P) })
	add(document.Column{Head: "q", Hint: "p adjusted for the other rows (Benjamini–Hochberg)"},
		func(e row) document.Cell { return sorted(report.Probability(e.Q), e.Q) })
	t, _ := tableBy(effects, columns)
	return t
}
