package exhibit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

func (p pivot) table() *document.Table {
	model := func(r report.PivotRow) document.Cell { return text(r.Model) }
	columns := []figureColumn[report.PivotRow]{{label("model"), true, model}}
	for i, l := range p.Levels {
		columns = append(columns, figureColumn[report.PivotRow]{
			figure(report.Readable(l)), true,
			func(r report.PivotRow) document.Cell { return pivotCell(r.Cells[i]) },
		})
	}
	return tableBy(p.Rows, append(columns, p.derived()...))
}

// derived returns the derived columns. A column is wanted if some row has its figure.
func (p pivot) derived() []figureColumn[report.PivotRow] {
	some := func(has func(report.PivotRow) bool) bool { return slices.ContainsFunc(p.Rows, has) }
	derived := func(
		head string, wanted bool, of func(report.PivotRow) *float64, show func(float64) string,
	) figureColumn[report.PivotRow] {
		return figureColumn[report.PivotRow]{
			figure(head), wanted && some(func(r report.PivotRow) bool { return of(r) != nil }),
			func(r report.PivotRow) document.Cell { return optional(of(r), show) },
		}
	}
	mixed := slices.ContainsFunc(p.Levels, isPlain) // else the mean is the flawed mean
	optimal := func(r report.PivotRow) document.Cell {
		if r.Optimal == nil {
			return unknown
		}
		return pivotCell(*r.Optimal)
	}
	hasOptimal := func(r report.PivotRow) bool { return optimal(r).Text != missing }
	return []figureColumn[report.PivotRow]{
		derived("mean", len(p.Levels) > 1,
			func(r report.PivotRow) *float64 { return r.Mean }, report.Percent),
		{figure("optimal"), some(hasOptimal), optimal},
		derived("flawed mean", mixed,
			func(r report.PivotRow) *float64 { return r.FlawedMean }, report.Percent),
		{
			figure(p.contrastHead()), some(func(r report.PivotRow) bool { return r.Difference != nil }),
			p.contrastCell,
		},
		derived("sensitivity", true,
			func(r report.PivotRow) *float64 { return r.Sensitivity }, formatted("%.3f")),
		{
			label("best"), some(func(r report.PivotRow) bool { return len(r.Best) > 0 }),
			func(r report.PivotRow) document.Cell {
				return text(cmp.Or(strings.Join(r.Best, ", "), missing))
			},
		},
	}
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

// contrastCell shows a difference in percentage points above its interval.
func (p pivot) contrastCell(r report.PivotRow) document.Cell {
	if r.Difference == nil {
		return unknown
	}
	format := "%+.1f"
	if p.Contrast == report.FirstMinusLast {
		format = "%.1f"
	}
	cell := sorted(fmt.Sprintf(format, math.Round(1000**r.Difference)/10+0), *r.Difference)
	i := r.DifferenceInterval
	cell.Note = fmt.Sprintf("%+.0f to %+.0f", 100*i.Low+0, 100*i.High+0)
	cell.Hint = fmt.Sprintf("95 %% interval %+.1f to %+.1f, on %s", 100*i.Low, 100*i.High,
		assay.Counted(r.DifferenceTasks, "task"))
	return cell
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
		notes = append(notes, fmt.Sprintf("Column heads name the flaw of the plan: %s is the "+
			"variant %s.", report.Readable(name), name))
	}
	graded := func(level string) bool { return strings.Contains(level, ", ") }
	if len(p.Levels) > 1 && (p.Factor == severity || slices.ContainsFunc(p.Levels, graded)) {
		notes = append(notes, "The prompts of all severities differ at every task: one without such "+
			"plans has no trial. So rates of severities are of different tasks.")
	}
	if some(func(r report.PivotRow) bool { return r.Difference != nil }) {
		notes = append(notes, "Differences are in percentage points, on the tasks that both "+
			"levels have under the same conditions, with the 95 % interval below. Without a common "+
			"task there is none.")
	} else if p.Contrast != "" {
		notes = append(notes, "No model has the same tasks at the levels that would be compared, "+
			"so no difference is shown.")
	}
	harmless := 0
	for _, r := range p.Rows {
		harmless += r.Harmless
	}
	if harmless > 0 {
		notes = append(notes, fmt.Sprintf("Flawed means, and differences from them, leave out %s "+
			"whose flaw does not hurt an agent that follows the plan to the letter.",
			assay.Counted(harmless, "outcome")))
	}
	if some(func(r report.PivotRow) bool { return r.Sensitivity != nil }) {
		notes = append(notes, "Sensitivity is the population standard deviation of the variants' "+
			"rates, with the mean of the flawed ones as one rate.")
	}
	if from := p.borrowed(); len(from) > 0 {
		notes = append(notes, "Taken from other trials of the same difficulty, task type and "+
			"reliability: "+strings.Join(from, ", ")+".")
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
