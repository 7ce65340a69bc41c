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
	if len(p.Metrics) != len(t.Rows) {
		return
	}
	t.Columns = append(t.Columns, []document.Column{
		{Head: "tools covered", Hint: "mean share of the required tools that succeeded"},
		{Head: "order correct", Hint: "outcomes in which all required tools succeeded in order"},
		{
			Head: "per √B",
			Hint: "percent of full success by the square root of the parameters in billions",
		},
	}...)
	for i, m := range p.Metrics {
		covered, size := unknown, unknown
		if m.Done > 0 {
			covered = points(m.ToolCoverage)
			if _, billions, ok := report.Family(m.Model); ok {
				size = decimal(100*m.Full.Rate/math.Sqrt(billions), "%.1f")
			}
		}
		ordered := rate(m.Ordered.Rate, m.Done, m.Ordered.Interval)
		t.Rows[i] = append(t.Rows[i], covered, ordered, size)
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
	if p.Factor != taskType || len(p.Metrics) == 0 {
		return []*document.Section{s}
	}
	return []*document.Section{
		s, metricsSection(s.ID+"-metrics", title+": main metrics", p.Metrics),
	}
}
