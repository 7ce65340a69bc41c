package sections

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

// pivotSection shows the table of a factor, if it varies.
func (a analysis) pivotSection(factor, title, lead string) *document.Section {
	i := slices.IndexFunc(a.Pivots, func(p report.Pivot) bool { return p.Factor == factor })
	if i < 0 {
		return nil
	}
	return pivot{&a.Pivots[i]}.section("by-"+strings.ReplaceAll(factor, "_", "-"), title, lead)
}

func (p pivot) section(id, title, lead string) *document.Section {
	return &document.Section{
		ID: id, Title: title, Lead: lead, Chart: p.chart(), Table: p.table(), Notes: p.notes(),
	}
}

// curveSection shows success by reliability below the ceiling of the best policy.
func (a analysis) curveSection() *document.Section {
	if a.ByReliability == nil {
		return nil
	}
	p := pivot{a.ByReliability}
	t := p.table()
	ceiling := slices.Repeat([]document.Cell{unknown}, len(t.Columns))
	ceiling[0] = text("best possible")
	for i, l := range p.Levels {
		ceiling[i+1] = optional(a.BestAt(l), report.Percent)
	}
	t.Rows = append(t.Rows, ceiling)
	return &document.Section{
		ID: "by-reliability", Title: "Success by reliability of the tools",
		Lead:  report.BestMeaning,
		Chart: a.curveChart(), Table: t, Notes: p.notes(),
	}
}

// partSections shows the tables of one part of the experiment.
func (a analysis) partSections(i int) []*document.Section {
	p := pivot{&a.Parts[i]}
	if len(p.Rows) == 0 {
		return nil
	}
	title := strings.TrimSpace("Part " + p.Name)
	s := p.section(fmt.Sprintf("part-%d", i+1), title, "Full success by "+report.Readable(p.Factor)+".")
	if p.Factor != taskType || p.Metrics == nil {
		return []*document.Section{s}
	}
	metrics := &document.Section{ID: s.ID + "-metrics", Title: title + ": main metrics"}
	var caption string
	metrics.Table, caption = a.gridTable(p.Metrics, section{}.columns("main-metrics"))
	metrics.Notes = []string{caption}
	return []*document.Section{s, metrics}
}

func (p pivot) table() *document.Table {
	type row = report.PivotRow
	columns := []column[row]{fixed(label("model"), func(r row) document.Cell { return text(r.Model) })}
	add := func(head document.Column, cell func(row) document.Cell) {
		columns = append(columns, columnOf(head, cell))
	}
	for i, l := range p.Levels {
		columns = append(columns, fixed(figure(report.Readable(l)), func(r row) document.Cell {
			return pivotCell(&r.Cells[i])
		}))
	}
	if len(p.Levels) > 1 {
		add(figure("mean"), func(r row) document.Cell { return optional(r.Mean, report.Percent) })
	}
	add(figure("optimal"), func(r row) document.Cell { return pivotCell(r.Optimal) })
	if slices.ContainsFunc(p.Levels, isPlain) { // else the mean is the flawed mean
		add(figure("flawed mean"), func(r row) document.Cell { return optional(r.FlawedMean, report.Percent) })
	}
	add(figure(p.contrastHead()), p.contrastCell)
	add(figure("sensitivity"), func(r row) document.Cell {
		return optional(r.Sensitivity, func(v float64) string { return fmt.Sprintf("%.3f", v) })
	})
	add(label("best"), func(r row) document.Cell { return text(cmp.Or(strings.Join(r.Best, ", "), missing)) })
	t, _ := tableBy(p.Rows, append(columns, p.scale()...))
	return t
}

// scale returns columns about scale for a table by difficulty.
func (p pivot) scale() []column[report.PivotRow] {
	type row = report.PivotRow
	if p.Factor != difficulty || p.Metrics == nil || len(p.Metrics.Rows) != len(p.Rows) {
		return nil
	}
	of := func(r row, m *report.Measure) report.Value {
		i := slices.IndexFunc(p.Rows, func(o row) bool { return o.Model == r.Model })
		return p.Metrics.Rows[i].Get(m)
	}
	var columns []column[row]
	for _, m := range []*report.Measure{report.ToolCoverage, report.Ordered} {
		columns = append(columns, fixed(headOf(m), func(r row) document.Cell { return valueCell(m, of(r, m), 0) }))
	}
	return append(columns, fixed(document.Column{
		Head: "per √B", Hint: "percent of full success by the square root of the parameters in billions",
	}, func(r row) document.Cell {
		full := of(r, report.Full)
		if _, billions, ok := report.Family(r.Model); ok && full.Known {
			return decimal(100*full.Number/math.Sqrt(billions), "%.1f")
		}
		return unknown
	}))
}

// pivotCell shows the rate with its interval and n, and the number planned if trials are
// pending.
func pivotCell(c *report.PivotCell) document.Cell {
	if c == nil {
		return unknown
	}
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
	cell := decimal(math.Round(1000**r.Difference)/10+0, format)
	i := r.DifferenceInterval
	cell.Note = signed("%+.0f to %+.0f", 100*i.Low+0, 100*i.High+0)
	cell.Hint = signed("95 %% interval %+.1f to %+.1f, on %s", 100*i.Low, 100*i.High,
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
