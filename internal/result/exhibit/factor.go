package exhibit

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

func (a analysis) pivotOf(factor string) *pivot {
	for i := range a.Pivots {
		if a.Pivots[i].Factor == factor {
			return &pivot{&a.Pivots[i]}
		}
	}
	return nil
}

func (a analysis) pivotSection(factor, title string) *document.Section {
	p := a.pivotOf(factor)
	if p == nil {
		return nil
	}
	return &document.Section{
		ID: "by-" + strings.ReplaceAll(factor, "_", "-"), Title: title,
		Chart: p.chart(), Table: p.table(), Notes: p.notes(),
	}
}

func (a analysis) mixSection() *document.Section {
	s := a.pivotSection(faultMix, "By mix of faults")
	if s != nil {
		s.Lead = "Only trials with the right plan, or else with the first variant without a flaw, and " +
			"with tools that can fail."
	}
	return s
}

func (a analysis) variantSection() *document.Section {
	s := a.pivotSection(variant, "Variants")
	if s != nil {
		s.Lead = "How the same task is given to the model: alone, with advice, with its plan, or " +
			"with a flawed plan."
	}
	return s
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
		Lead:  "Best possible is the rate of the best policy: no agent can do better on average.",
		Chart: a.curveChart(), Table: t, Notes: p.notes(),
	}
}

// scaleSection shows success by difficulty, and by size of the models.
func (a analysis) scaleSection() *document.Section {
	s := a.pivotSection(difficulty, "By difficulty, and scale")
	if s != nil {
		a.pivotOf(difficulty).addScale(s.Table)
	}
	return s
}

// addScale adds columns about scale to a table by difficulty.
func (p pivot) addScale(t *document.Table) {
	if p.Metrics == nil || len(p.Metrics.Rows) != len(t.Rows) {
		return
	}
	t.Columns = append(t.Columns, []document.Column{
		{Head: report.ToolCoverage.Heads[0], Hint: report.ToolCoverage.Means},
		{Head: report.Ordered.Heads[0], Hint: report.Ordered.Means},
		{
			Head: "per √B",
			Hint: "percent of full success by the square root of the parameters in billions",
		},
	}...)
	for i, r := range p.Metrics.Rows {
		size, full := unknown, r.Get(report.Full)
		if _, billions, ok := report.Family(r.Model); ok && full.Known {
			size = decimal(100*full.Number/math.Sqrt(billions), "%.1f")
		}
		t.Rows[i] = append(t.Rows[i], valueCell(report.ToolCoverage, r.Get(report.ToolCoverage), 0),
			valueCell(report.Ordered, r.Get(report.Ordered), 0), size)
	}
}

// partSections shows the tables of one part of the experiment.
func (a analysis) partSections(i int) []*document.Section {
	p := pivot{&a.Parts[i]}
	if len(p.Rows) == 0 {
		return nil
	}
	title := strings.TrimSpace("Part " + p.Name)
	s := &document.Section{
		ID: fmt.Sprintf("part-%d", i+1), Title: title,
		Lead:  "Full success by " + report.Readable(p.Factor) + ".",
		Chart: p.chart(), Table: p.table(), Notes: p.notes(),
	}
	if p.Factor == difficulty {
		p.addScale(s.Table)
	}
	if p.Factor != taskType || p.Metrics == nil {
		return []*document.Section{s}
	}
	metrics := &document.Section{ID: s.ID + "-metrics", Title: title + ": main metrics"}
	var caption string
	metrics.Table, caption = a.gridTable(p.Metrics, mainColumns)
	metrics.Notes = []string{caption}
	return []*document.Section{s, metrics}
}
