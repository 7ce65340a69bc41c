package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
)

// A column is what a pivot table shows of a row.
type column struct {
	document.Column
	cell func(PivotRow) document.Cell
}

// columns has those beside the levels where some row has something in them.
func (p *Pivot) columns() []column {
	columns := []column{{document.Column{Head: "model", Names: true}, func(r PivotRow) document.Cell { return text(r.Model) }}}
	for i, l := range p.Levels {
		columns = append(columns, column{document.Column{Head: readable(l)}, func(r PivotRow) document.Cell { return r.Cells[i].shown() }})
	}
	for _, c := range []column{
		{document.Column{Head: "mean"}, func(r PivotRow) document.Cell {
			if len(p.Levels) < 2 {
				return unknown
			}
			return optional(r.Mean, percent)
		}},
		{document.Column{Head: "optimal"}, func(r PivotRow) document.Cell {
			if r.Optimal == nil {
				return unknown
			}
			return r.Optimal.shown()
		}},
		{document.Column{Head: "flawed mean"}, func(r PivotRow) document.Cell {
			if !slices.ContainsFunc(p.Levels, isPlain) { // the mean is that already
				return unknown
			}
			return optional(r.FlawedMean, percent)
		}},
		{document.Column{Head: p.contrastHead()}, func(r PivotRow) document.Cell { return optional(r.Difference, p.contrastText) }},
		{document.Column{Head: "sensitivity"}, func(r PivotRow) document.Cell {
			return optional(r.Sensitivity, func(v float64) string { return fmt.Sprintf("%.3f", v) })
		}},
		{document.Column{Head: "best", Names: true}, func(r PivotRow) document.Cell { return text(cmp.Or(strings.Join(r.Best, ", "), nothing)) }},
	} {
		if slices.ContainsFunc(p.Rows, func(r PivotRow) bool { return c.cell(r).Text != nothing }) {
			columns = append(columns, c)
		}
	}
	return columns
}

func (p *Pivot) table() *document.Table {
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

// shown is the rate with its interval and n, of how many that is not all.
func (c PivotCell) shown() document.Cell {
	cell := rate(c.Rate, c.Done, c.Interval)
	if c.Done > 0 {
		cell.Note += fmt.Sprintf(", n %d", c.Done)
		if c.Done < c.Planned {
			cell.Note += fmt.Sprintf(" of %d", c.Planned)
		}
	}
	return cell
}

func isPlain(name string) bool { return !isFlawed(name) }

func (p *Pivot) contrastHead() string {
	if len(p.Levels) == 0 {
		return ""
	}
	first, last := readable(p.Levels[0]), readable(p.Levels[len(p.Levels)-1])
	switch p.Contrast {
	case FirstMinusLast:
		return "drop " + first + " − " + last
	case LastMinusFirst:
		return last + " − " + first
	}
	return "flawed − optimal"
}

// contrastText is a difference in percentage points.
func (p *Pivot) contrastText(d float64) string {
	points := math.Round(1000*d)/10 + 0 // and so never -0
	if p.Contrast == FirstMinusLast {
		return fmt.Sprintf("%.1f", points)
	}
	return fmt.Sprintf("%+.1f", points)
}

func (p *Pivot) notes() []string {
	notes := []string{"Cells are rates of full success, with the 95 % interval and n below."}
	if len(p.Averaged) > 0 {
		notes[0] = "Cells are rates of full success, with the 95 % interval and n below, and average over " + readableList(p.Averaged) + "."
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
		note := "Differences are in percentage points."
		if p.Contrast == FlawedMinusOptimal {
			note = "Differences are in percentage points, on the tasks that both sides have under the same conditions."
		}
		notes = append(notes, note)
	}
	if some(func(r PivotRow) bool { return r.Sensitivity != nil }) {
		notes = append(notes, "Sensitivity is the population standard deviation of the rates of the variants, the mean of flawed ones as one.")
	}
	if from := p.borrowed(); len(from) > 0 {
		notes = append(notes, "Taken from other trials of the same difficulty, task type and reliability: "+strings.Join(from, ", ")+".")
	}
	return append(notes, leftOutNotes(p.LeftOut)...)
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
