package report

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Pivot is the table of a part: rates of full success by model and by the
// levels of one factor.
type Pivot struct {
	Name   string `json:"name"`
	Factor string `json:"factor"`
	// Levels are in their natural order: plain variants before flawed ones,
	// what is easier, milder or more reliable before the rest. Of variants,
	// where flawed ones are there in several severities, each severity is a
	// level: "flawed_tool_misuse, light".
	Levels []string `json:"levels"`
	// Averaged names the factors that cells average over.
	Averaged []string   `json:"averaged_over"`
	Rows     []PivotRow `json:"rows"`
	// Contrast says of what the rows' Difference is; empty without any.
	Contrast Contrast `json:"contrast,omitempty"`
	// Metrics is there where the task type or the difficulty varies, and no variant.
	Metrics []Metrics `json:"metrics,omitempty"`
	// LeftOut are the tasks that the part does without.
	LeftOut []LeftOut `json:"left_out"`
}

// A Contrast is how a difference of two rates comes about.
type Contrast string

// The contrasts.
const (
	FlawedMinusOptimal Contrast = "flawed_mean_minus_optimal"
	FirstMinusLast     Contrast = "first_minus_last" // what is lost, of reliabilities
	LastMinusFirst     Contrast = "last_minus_first"
)

// A PivotRow is one model's. Rates and their differences are fractions. What is
// nil could not be computed: a level that it needs has no outcome, or the
// experiment no such trials.
type PivotRow struct {
	Model string `json:"model"`
	// Cells has one for each of the levels.
	Cells []PivotCell `json:"cells"`
	// Mean is over the levels that were planned for the model, each counting
	// the same.
	Mean *float64 `json:"mean"`
	// Optimal is there for parts with flawed variants and without that one: it
	// is the experiment's, at the same difficulties, reliabilities and types of
	// task.
	Optimal *PivotCell `json:"optimal,omitempty"`
	// FlawedMean is over the flawed variants and, where there are several, their
	// severities, each counting the same: the part's, or where it has none the
	// experiment's as above.
	FlawedMean *float64 `json:"flawed_mean,omitempty"`
	// Difference is the contrast. That of flawed variants to optimal is the mean over the
	// flawed levels of the differences on the tasks that both have.
	Difference *float64 `json:"difference,omitempty"`
	// Sensitivity is the population standard deviation of the rates of the
	// variants, the flawed ones taken together as FlawedMean, in parts that
	// have baseline, cot and optimal. Best names the best of them.
	Sensitivity *float64 `json:"sensitivity,omitempty"`
	Best        []string `json:"best,omitempty"`
}

// A PivotCell tells of the trials of a model at a level. Without Done the rate
// is 0 and says nothing.
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
	return PivotCell{level, t.done, t.planned, t.full, r.Rate, r.Interval}
}

// Metrics are a model's main metrics in a part.
type Metrics struct {
	Model   string `json:"model"`
	Done    int    `json:"done"`
	Planned int    `json:"planned"`
	// Success is full or partial success.
	Success Share `json:"success"`
	Full    Share `json:"full_success"`
	Partial Share `json:"partial_success"`
	Failure Share `json:"failure"`
	// Weighted counts a partial success as half a full one. It is a mean, for
	// which there is no Wilson interval.
	Weighted  float64 `json:"weighted_success"`
	MeanTurns float64 `json:"mean_turns"`
	// ToolCoverage is the mean share of the required tools that succeeded.
	ToolCoverage float64 `json:"mean_coverage"`
	// Ordered counts outcomes in which all required tools succeeded in order.
	Ordered Share `json:"order_correct"`
}

// pivot makes the part's table from all cells of the experiment.
func (p Part) pivot(all []*cell, left []LeftOut) Pivot {
	cells := where(all, p.has)
	factor := p.factor()
	by := factor
	if factor == variant && severityVaries(cells) {
		by = Graded
	}
	type key struct{ model, level string }
	pools, averaged := pool(cells, func(c assay.Cell) key { return key{c.Model, level(c, by)} })
	at := make(map[key]*tally)
	for _, pool := range pools {
		at[pool.key] = &pool.tally
	}
	v := Pivot{
		Name: p.Name, Factor: factor, Levels: levels(cells, by), Averaged: averaged,
		Rows: []PivotRow{}, LeftOut: p.leftOut(cells, left),
	}
	v.Contrast = contrast(factor, v.Levels)
	for _, m := range p.models(cells) {
		row := PivotRow{Model: m.key}
		for _, l := range v.Levels {
			row.Cells = append(row.Cells, newPivotCell(l, cmp.Or(at[key{m.key, l}], new(tally))))
		}
		row.derive(v.Contrast)
		switch factor {
		case variant:
			row.compareVariants(all, where(cells, func(c assay.Cell) bool { return c.Model == m.key }), by)
		case taskType, difficulty:
			v.Metrics = append(v.Metrics, m.metrics(m.key))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// contrast chooses the difference that a table of these levels shows.
func contrast(factor string, levels []string) Contrast {
	switch {
	case factor == variant && slices.ContainsFunc(levels, IsFlawed):
		return FlawedMinusOptimal
	case factor == reliability && len(levels) > 1:
		return FirstMinusLast
	case (factor == difficulty || factor == severity) && len(levels) > 1:
		return LastMinusFirst
	}
	return ""
}

// derive fills in what follows from the row's own cells.
func (r *PivotRow) derive(of Contrast) {
	var rates []*float64
	for _, c := range r.Cells {
		if c.Planned > 0 {
			rates = append(rates, c.known())
		}
	}
	r.Mean = mean(rates)
	first, last := r.Cells[0].known(), r.Cells[len(r.Cells)-1].known()
	switch of {
	case FirstMinusLast:
		r.Difference = difference(first, last)
	case LastMinusFirst:
		r.Difference = difference(last, first)
	}
}

// known is the rate, nil without an outcome.
func (c PivotCell) known() *float64 {
	if c.Done == 0 {
		return nil
	}
	return &c.Rate
}

func difference(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a - *b)
}

// mean is nil without rates, or where one of them is not known.
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

func (t *tally) metrics(model string) Metrics {
	m := Metrics{
		Model: model, Done: t.done, Planned: t.planned,
		Success:   t.among(func(o outcomes) int32 { return o.full + o.partial }),
		Full:      t.among(func(o outcomes) int32 { return o.full }),
		Partial:   t.among(func(o outcomes) int32 { return o.partial }),
		Failure:   t.among(outcomes.failed),
		Ordered:   t.among(func(o outcomes) int32 { return o.ordered }),
		MeanTurns: t.meanTurns(),
	}
	n := float64(max(1, t.done))
	m.Weighted, m.ToolCoverage = (float64(t.full)+float64(t.partial)/2)/n, t.coverage/n
	return m
}
