package report

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Pivot is a table of rates of full success by model and by the levels of one factor.
type Pivot struct {
	Name   string `json:"name"`
	Factor string `json:"factor"`
	// Levels are in their natural order: plain variants before flawed ones, and easier, milder or
	// more reliable levels first. If flawed variants have several severities, each severity is a
	// level, such as "flawed_tool_misuse, light".
	Levels []string `json:"levels"`
	// Averaged names the factors that cells average over.
	Averaged []string   `json:"averaged_over"`
	Rows     []PivotRow `json:"rows"`
	// Contrast describes the Difference of the rows. It is empty if there is no difference to show.
	Contrast Contrast `json:"contrast,omitempty"`
	// Metrics is set if the factor is the task type or the difficulty.
	Metrics *Grid `json:"metrics,omitempty"`
	// LeftOut lists the tasks that the part lacks.
	LeftOut []LeftOut `json:"left_out"`
}

// A Contrast describes which rate is subtracted from which.
type Contrast string

const (
	FlawedMinusOptimal Contrast = "flawed_mean_minus_optimal"
	FirstMinusLast     Contrast = "first_minus_last" // the loss from the most to the least reliable
	LastMinusFirst     Contrast = "last_minus_first"
)

// A PivotRow has the figures of one model. Rates and differences are fractions of 1. A nil figure
// could not be computed: a level has no outcome, or the experiment lacks the trials.
type PivotRow struct {
	Model string `json:"model"`
	// Cells has one cell for each level.
	Cells []PivotCell `json:"cells"`
	// Mean is the unweighted mean over the levels that were planned for the model.
	Mean *float64 `json:"mean"`
	// Optimal is set if the part has flawed variants but not the optimal one. It comes from the
	// other parts, at the same difficulties, reliabilities and task types.
	Optimal *PivotCell `json:"optimal,omitempty"`
	// FlawedMean is the unweighted mean over the flawed variants and their severities. If the part
	// lacks them, they come from the other parts like Optimal. It leaves out the Harmless outcomes
	// of the part, whose flaw does not hurt an agent that follows the plan; see [Design].
	FlawedMean *float64 `json:"flawed_mean,omitempty"`
	Harmless   int      `json:"harmless,omitempty"`
	// Difference is the contrast, on the tasks that both levels have under the same conditions;
	// see [stat.Compare]. For flawed variants, each flawed level of a task is a condition.
	Difference *float64 `json:"difference,omitempty"`
	// DifferenceInterval is its 95 % interval, over the DifferenceTasks tasks that both levels
	// have. Without a common task there is no difference.
	DifferenceInterval *stat.Interval `json:"difference_95,omitempty"`
	DifferenceTasks    int            `json:"difference_tasks,omitempty"`
	// Sensitivity is the population standard deviation of the variants' rates, with FlawedMean as
	// one of them. It needs baseline, cot and optimal. Best names the variants with the highest
	// rate.
	Sensitivity *float64 `json:"sensitivity,omitempty"`
	Best        []string `json:"best,omitempty"`
}

// A PivotCell counts the trials of a model at a level. If Done is 0, the rate is 0 and meaningless.
type PivotCell struct {
	Level    string        `json:"level"`
	Done     int           `json:"done"`
	Planned  int           `json:"planned"`
	Full     int           `json:"full"`
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
}

func newPivotCell(level string, t *tally) PivotCell {
	r := stat.Clustered(t.byTask(), 0.95)
	return PivotCell{level, t.n(done), t.planned, t.n(full), r.Rate, r.Interval}
}

// pivot computes the part's table from all cells of the experiment.
func (p Part) pivot(all []*cell, left []LeftOut) Pivot {
	cells := where(all, p.has)
	factor := p.factor()
	by := factor
	if factor == variant && severityVaries(cells) {
		by = Graded
	}
	v := Pivot{
		Name: p.Name, Factor: factor, Levels: levels(cells, by),
		Averaged: averagedBy(cells, byModelAnd(by)), Rows: []PivotRow{}, LeftOut: p.leftOut(cells, left),
	}
	v.Contrast = contrast(factor, v.Levels)
	models := p.models(cells)
	if len(models) > 0 && (factor == taskType || factor == difficulty) {
		v.Metrics = grid(models, []string{model}, mainMeasures...)
	}
	for _, m := range models {
		row, mine := PivotRow{Model: m.Model}, ofModel(cells, m.Model)
		var planned []*float64
		for _, l := range v.Levels {
			c := pivotCellAt(mine, l, by)
			row.Cells = append(row.Cells, c)
			if c.Planned > 0 {
				planned = append(planned, c.known())
			}
		}
		row.Mean = mean(planned)
		first, last := v.Levels[0], v.Levels[len(v.Levels)-1]
		switch v.Contrast {
		case FirstMinusLast:
			row.differ(p.drop(mine, first, last))
		case LastMinusFirst:
			row.differ(pairs(mine, first, last, factor))
		}
		if factor == variant {
			row.compareVariants(all, mine, by)
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// drop pairs the least reliable tools with the most reliable ones. If those never fail, they stand for every
// mix of faults.
func (p Part) drop(mine []*cell, first, last string) *pairing[task] {
	worst := levels(where(mine, func(c assay.Cell) bool { return level(c, reliability) == last }), Tools)
	if best := levels(where(mine, func(c assay.Cell) bool { return level(c, reliability) == first }), Tools); len(best) == 1 && best[0] == Reliable {
		return pairsOf(mine, worst, best, Tools)
	}
	return pairs(mine, last, first, reliability)
}

// contrast chooses the difference for a table of these levels.
func contrast(factor string, levels []string) Contrast {
	switch {
	case factor == variant && slices.ContainsFunc(levels, IsFlawed):
		return FlawedMinusOptimal
	case factor == reliability && len(levels) > 1:
		return FirstMinusLast
	case slices.Contains([]string{difficulty, severity, faultMix, interfaces, phrasing}, factor) && len(levels) > 1:
		return LastMinusFirst
	}
	return ""
}

// differ fills in the difference of two sides.
func (r *PivotRow) differ(s *pairing[task]) {
	if c := s.compare(); c.Tasks > 0 {
		r.Difference, r.DifferenceInterval = &c.Difference, &c.Interval
		r.DifferenceTasks = c.Tasks
	}
}

// known returns the rate, or nil if there is no outcome.
func (c PivotCell) known() *float64 {
	if c.Done == 0 {
		return nil
	}
	return &c.Rate
}

// mean returns nil if there are no rates or if one of them is unknown.
func mean(rates []*float64) *float64 {
	if len(rates) == 0 || slices.Contains(rates, nil) {
		return nil
	}
	sum := 0.0
	for _, r := range rates {
		sum += *r
	}
	return new(sum / float64(len(rates)))
}
