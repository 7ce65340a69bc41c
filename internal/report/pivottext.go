package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/document"
)

// A column is what a pivot table shows of a row.
type column struct {
	head string
	cell func(PivotRow) string
}

// columns has those beside the levels where some row has something in them.
func (p *Pivot) columns() []column {
	columns := []column{{"model", func(r PivotRow) string { return r.Model }}}
	for i, l := range p.Levels {
		columns = append(columns, column{levelHead(l), func(r PivotRow) string { return cellText(&r.Cells[i]) }})
	}
	for _, c := range []column{
		{"mean", func(r PivotRow) string {
			if len(p.Levels) < 2 {
				return nothing
			}
			return percentOr(r.Mean)
		}},
		{"optimal", func(r PivotRow) string { return cellText(r.Optimal) }},
		{"flawed\nmean", func(r PivotRow) string {
			if !slices.ContainsFunc(p.Levels, isPlain) { // the mean is that already
				return nothing
			}
			return percentOr(r.FlawedMean)
		}},
		{p.contrastHead(), func(r PivotRow) string { return p.contrastText(r.Difference) }},
		{"sensi-\ntivity", func(r PivotRow) string { return decimals(r.Sensitivity) }},
		{"best", func(r PivotRow) string { return cmp.Or(strings.Join(r.Best, ", "), nothing) }},
	} {
		if slices.ContainsFunc(p.Rows, func(r PivotRow) bool { return c.cell(r) != nothing }) {
			columns = append(columns, c)
		}
	}
	return columns
}

// levelHead has a severity on a line of its own.
func levelHead(level string) string {
	name, severity, graded := strings.Cut(level, ", ")
	if !graded {
		return headText(readable(name))
	}
	return headText(readable(name)) + "\n" + severity
}

func isPlain(name string) bool { return !isFlawed(name) }

func (p *Pivot) text() string {
	columns := p.columns()
	var heads []string
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	tab := document.NewScreenTable(1, heads...)
	for _, r := range p.Rows {
		var row []string
		for _, c := range columns {
			row = append(row, c.cell(r))
		}
		tab.Row(row...)
	}
	return section(p.title("full success by "+readable(p.Factor)), tab, p.notes())
}

func (p *Pivot) title(what string) string {
	if p.Name == "" {
		return what
	}
	return p.Name + ": " + what
}

func (p *Pivot) contrastHead() string {
	if len(p.Levels) == 0 {
		return ""
	}
	first, last := readable(p.Levels[0]), readable(p.Levels[len(p.Levels)-1])
	switch p.Contrast {
	case FirstMinusLast:
		return "drop\n" + first + " − " + last
	case LastMinusFirst:
		return last + " −\n" + first
	}
	return "flawed −\noptimal"
}

// contrastText is a difference in percentage points.
func (p *Pivot) contrastText(d *float64) string {
	if d == nil {
		return nothing
	}
	points := math.Round(1000**d)/10 + 0 // and so never -0
	if p.Contrast == FirstMinusLast {
		return fmt.Sprintf("%.1f", points)
	}
	return fmt.Sprintf("%+.1f", points)
}

func (p *Pivot) notes() []string {
	notes := []string{"Cells are rates of full success, with n in brackets."}
	if len(p.Averaged) > 0 {
		notes[0] = "Cells are rates of full success, with n in brackets, and average over " + strings.Join(p.Averaged, ", ") + "."
	}
	some := func(has func(PivotRow) bool) bool { return slices.ContainsFunc(p.Rows, has) }
	if len(p.Levels) > 1 && some(func(r PivotRow) bool { return r.Mean != nil }) {
		notes = append(notes, "The mean is unweighted: each level counts the same, whatever its n.")
	}
	if i := slices.IndexFunc(p.Levels, isFlawed); i >= 0 && p.Factor == variant {
		name, _, _ := strings.Cut(p.Levels[i], ", ")
		notes = append(notes, fmt.Sprintf("Heads name the flaw of a plan: %s is the variant %s.", readable(name), name))
	}
	if some(func(r PivotRow) bool { return r.Difference != nil }) {
		notes = append(notes, "Differences are in percentage points.")
	}
	if some(func(r PivotRow) bool { return r.Sensitivity != nil }) {
		notes = append(notes, "Sensitivity is the population standard deviation of the rates of the variants, the mean of flawed ones as one.")
	}
	if from := p.borrowed(); len(from) > 0 {
		notes = append(notes, "Taken from other trials of the same difficulty, task type and reliability: "+strings.Join(from, ", ")+".")
	}
	left := leftOutNotes(p.LeftOut)
	notes = append(notes, left...)
	if len(left) > 0 && p.Contrast == FlawedMinusOptimal && some(func(r PivotRow) bool { return r.Difference != nil }) {
		notes = append(notes, "Optimal includes the tasks that are left out of flawed variants, so the difference is not over the same tasks.")
	}
	return notes
}

// borrowed names the columns that are of trials outside the part.
func (p *Pivot) borrowed() []string {
	var names []string
	if slices.ContainsFunc(p.Rows, func(r PivotRow) bool { return r.Optimal != nil }) {
		names = append(names, "optimal")
	}
	if slices.ContainsFunc(p.Rows, func(r PivotRow) bool { return r.FlawedMean != nil }) && !slices.ContainsFunc(p.Levels, isFlawed) {
		names = append(names, "flawed mean")
	}
	return names
}

func (p *Pivot) metricsText() string {
	tab := document.NewScreenTable(1, "model", "n", "full or\npartial", "full", "partial", "failure", "weighted", "turns", "tools\ncovered")
	for _, m := range p.Metrics {
		row := ifAny(m.Done, percent(m.Success.Rate), percent(m.Full.Rate), percent(m.Partial.Rate), percent(m.Failure.Rate),
			percent(m.Weighted), fmt.Sprintf("%.1f", m.MeanTurns), percent(m.ToolCoverage))
		tab.Row(append([]string{m.Model, fmt.Sprint(m.Done)}, row...)...)
	}
	return section(p.title("main metrics"), tab, []string{
		"Weighted counts a partial success as half a full one.",
		"Tools covered is the mean share of the required tools that succeeded.",
	})
}
