package exhibit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// A pivotColumn shows one figure of each row.
type pivotColumn struct {
	document.Column
	cell func(report.PivotRow) document.Cell
}

// columns returns the column of models, those of the levels, and the derived ones that have a
// figure in some row.
func (p pivot) columns() []pivotColumn {
	columns := []pivotColumn{{
		document.Column{Head: "model", Names: true},
		func(r report.PivotRow) document.Cell { return text(r.Model) },
	}}
	for i, l := range p.Levels {
		columns = append(columns, pivotColumn{
			document.Column{Head: report.Readable(l)},
			func(r report.PivotRow) document.Cell { return pivotCell(r.Cells[i]) },
		})
	}
	for _, c := range p.derived() {
		known := func(r report.PivotRow) bool { return c.cell(r).Text != missing }
		if slices.ContainsFunc(p.Rows, known) {
			columns = append(columns, c)
		}
	}
	return columns
}

func (p pivot) derived() []pivotColumn {
	mixed := slices.ContainsFunc(p.Levels, isPlain) // else the mean is the flawed mean
	return []pivotColumn{
		{document.Column{Head: "mean"}, func(r report.PivotRow) document.Cell {
			if len(p.Levels) < 2 {
				return unknown
			}
			return optional(r.Mean, report.Percent)
		}},
		{document.Column{Head: "optimal"}, func(r report.PivotRow) document.Cell {
			if r.Optimal == nil {
				return unknown
			}
			return pivotCell(*r.Optimal)
		}},
		{document.Column{Head: "flawed mean"}, func(r report.PivotRow) document.Cell {
			if !mixed {
				return unknown
			}
			return optional(r.FlawedMean, report.Percent)
		}},
		{document.Column{Head: p.contrastHead()}, func(r report.PivotRow) document.Cell {
			return optional(r.Difference, p.contrastText)
		}},
		{document.Column{Head: "sensitivity"}, func(r report.PivotRow) document.Cell {
			return optional(r.Sensitivity, func(v float64) string { return fmt.Sprintf("%.3f", v) })
		}},
		{document.Column{Head: "best", Names: true}, func(r report.PivotRow) document.Cell {
			return text(cmp.Or(strings.Join(r.Best, ", "), missing))
		}},
	}
}

func (p pivot) table() *document.Table {
	t := &document.Table{}
	columns := p.columns()
	for _, c := range columns {
		t.Columns = append(t.Columns, c.Column)
	}
	for _, r := range p.Rows {
		var row []document.Cell
		for _, c := range columns {
			row = append(row, c.cell(r))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// pivotCell shows the rate with its interval and n, and the number planned if trials are
// pending.
func pivotCell(c report.PivotCell) document.Cell {
	cell := rate(c.Rate, c.Done, c.Interval)
	if c.Done > 0 {
		cell.Note += fmt.Sprintf(", n %d", c.Done)
		if c.Done < c.Planned {
			cell.Note += fmt.Sprintf(" of %d", c.Planned)
		}
	}
	return cell
}

func isPlain(variant string) bool { return !report.IsFlawed(variant) }

func (p pivot) contrastHead() string {
	if len(p.Levels) == 0 {
		return ""
	}
	first, last := report.Readable(p.Levels[0]), report.Readable(p.Levels[len(p.Levels)-1])
	switch p.Contrast {
	case report.FirstMinusLast:
		return "drop " + first + " − " + last
	case report.LastMinusFirst:
		return last + " − " + first
	}
	return "flawed − optimal"
}

// contrastText writes a difference in percentage points.
func (p pivot) contrastText(d float64) string {
	points := math.Round(1000*d)/10 + 0 // adding 0 turns -0 into 0
	if p.Contrast == report.FirstMinusLast {
		return fmt.Sprintf("%.1f", points)
	}
	return fmt.Sprintf("%+.1f", points)
}

func (p pivot) notes() []string {
	notes := []string{"Cells are rates of full success, with the 95 % interval and n below."}
	if len(p.Averaged) > 0 {
		notes[0] += " They average over " + report.ReadableList(p.Averaged) + "."
	}
	some := func(has func(report.PivotRow) bool) bool { return slices.ContainsFunc(p.Rows, has) }
	if len(p.Levels) > 1 && some(func(r report.PivotRow) bool { return r.Mean != nil }) {
		notes = append(notes, "The mean is unweighted: each level counts the same, whatever its n.")
	}
	if i := slices.IndexFunc(p.Levels, report.IsFlawed); i >= 0 && p.Factor == variant {
		name, _, _ := strings.Cut(p.Levels[i], ", ")
		notes = append(
			notes,
			fmt.Sprintf("Column heads name the flaw of the plan: %s is the variant %s.",
				report.Readable(name), name),
		)
	}
	if some(func(r report.PivotRow) bool { return r.Difference != nil }) {
		note := "Differences are in percentage points."
		if p.Contrast == report.FlawedMinusOptimal {
			note = "Differences are in percentage points, on the tasks that both sides have " +
				"under the same conditions."
		}
		notes = append(notes, note)
	}
	if some(func(r report.PivotRow) bool { return r.Sensitivity != nil }) {
		notes = append(
			notes,
			"Sensitivity is the population standard deviation of the variants' rates, "+
				"with the mean of the flawed ones as one rate.",
		)
	}
	if from := p.borrowed(); len(from) > 0 {
		notes = append(
			notes,
			"Taken from other trials of the same difficulty, task type and reliability: "+
				strings.Join(from, ", ")+".",
		)
	}
	return append(notes, leftOutNotes(p.LeftOut)...)
}

// borrowed names the columns whose trials are outside the part.
func (p pivot) borrowed() []string {
	var names []string
	if slices.ContainsFunc(p.Rows, func(r report.PivotRow) bool { return r.Optimal != nil }) {
		names = append(names, "optimal")
	}
	hasMean := func(r report.PivotRow) bool { return r.FlawedMean != nil }
	if slices.ContainsFunc(p.Rows, hasMean) && !slices.ContainsFunc(p.Levels, report.IsFlawed) {
		names = append(names, "flawed mean")
	}
	return names
}
