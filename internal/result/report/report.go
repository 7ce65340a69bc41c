// Package report computes the figures of an experiment from its attempts: counts, rates, intervals
// and comparisons.
//
// It reads an iterator of attempts, not a store, and computes figures on demand. Package plan
// decides which trials exist, package stat has the formulas, and package exhibit shows the
// figures to people.
package report

import (
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Design describes an experiment to its tables, besides its trials. The zero Design has
// no parts.
type Design struct {
	Parts []Part
	// Models, Variants and TaskTypes list the levels of factors in the order of the experiment.
	// Models that are missing come last, in the order of their trials, and other levels by name.
	Models, Variants, TaskTypes []string
	LeftOut                     []LeftOut
	// Cluster is the unit that intervals and tests count as independent, one of stat.Clusters.
	// Empty is stat.Auto.
	Cluster string
	// Hurts reports whether the flaw in a trial's plan hurts agents that follow it. Flawed means
	// leave out trials with other flaws. If Hurts is nil, all flaws hurt.
	Hurts func(*assay.Trial) bool
	// Survivable reports whether an agent that follows a trial's plan, and repeats each call until
	// it has happened, succeeds in spite of the faults of tools that the trial's luck has in store.
	// If it is nil, all trials are survivable.
	Survivable func(*assay.Trial) bool
	// Floor returns the rate of full success that a policy without skill has in a cell. It returns
	// false if that is unknown. If it is nil, no floor is known.
	Floor func(assay.Cell) (rate float64, ok bool)
	// Open reports whether the plan for a trial's task is unknown, so that there is no best
	// possible rate. If it is nil, all tasks have plans.
	Open func(*assay.Trial) bool
}

// LeftOut counts the tasks of a type that a flaw does not apply to at a severity. They were not
// planned with that variant and severity.
type LeftOut struct {
	Variant  string `json:"variant"`
	Severity string `json:"severity"`
	TaskType string `json:"task_type"`
	// Tasks is how many of the Of tasks are left out.
	Tasks int `json:"left_out"`
	Of    int `json:"of"`
}

// A Row counts the trials of one model, variant, severity, difficulty, reliability and mix of
// faults.
type Row struct {
	Model   string `json:"model"`
	Variant string `json:"variant"`
	// Severity is empty unless the variant is flawed.
	Severity    string  `json:"severity"`
	Difficulty  string  `json:"difficulty"`
	Reliability float64 `json:"reliability"`
	// FaultMix is the mix in [assay.Cell].
	FaultMix string `json:"fault_mix,omitempty"`
	// Planned and Done count trials. Coverage is Done / Planned.
	Planned int `json:"planned"`
	Done    int `json:"done"`
	// Faults counts attempts that ended in a fault.
	Faults  int `json:"faults"`
	Full    int `json:"full_success"`
	Partial int `json:"partial_success"`
	Failed  int `json:"failure"`
	// FullRate is Full / Done. Its 95 % interval accounts for repeats within tasks; see
	// [stat.Clustered]. If Done is 0, the rates and the mean are 0 and meaningless.
	FullRate     float64       `json:"full_success_rate"`
	FullInterval stat.Interval `json:"full_success_95"`
	// DesignEffect is the factor by which repeats of tasks widen the interval.
	DesignEffect    float64       `json:"design_effect"`
	PartialRate     float64       `json:"partial_success_rate"`
	PartialInterval stat.Interval `json:"partial_success_95"`
	FailureRate     float64       `json:"failure_rate"`
	FailureInterval stat.Interval `json:"failure_95"`
	// Floor is the rate of full success of a policy without skill. It is nil if it is unknown.
	Floor *float64 `json:"floor"`
	// Best is the mean of [assay.Outcome.Best] over the BestMeasured trials for whose setting it is
	// the ceiling. It is nil if there is no such trial. OfBest is the rate of full success of these
	// trials, divided by Best. Its 95 % interval is the interval of the rate, divided likewise.
	Best           *float64       `json:"best_possible"`
	BestMeasured   int            `json:"best_measured"`
	OfBest         *float64       `json:"of_best"`
	OfBestInterval *stat.Interval `json:"of_best_95"`
	// Security is the share of the attacks that failed. It is nil if no trial had an attacker.
	Security *Share `json:"security,omitempty"`
	Attacks  int    `json:"attacks,omitempty"`
	// MeanTurns covers the trials that are done.
	MeanTurns float64 `json:"mean_turns"`
	// CostUSD covers all attempts, including faults.
	CostUSD float64 `json:"cost_usd"`
	// Unpriced counts the tokens with an unknown cost, which CostUSD leaves out.
	Unpriced int `json:"unpriced_tokens"`
}

// A Share is a count with its rate. The 95 % interval accounts for repeats within tasks; see
// [stat.Clustered]. If the share has no trials, its rate is 0 and meaningless.
type Share struct {
	Count    int           `json:"count"`
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
}

// A Table has the main results of an experiment and the tables of its parts.
type Table struct {
	Experiment string `json:"experiment"`
	// Rows are sorted by model, variant, severity, reliability, difficulty and mix of faults.
	Rows []Row `json:"rows"`
	// Averaged names the factors that rows average over.
	Averaged []string `json:"averaged_over"`
	Planned  int      `json:"planned"`
	Done     int      `json:"done"`
	// Population describes the tasks that intervals and tests are about.
	Population Population `json:"population"`
	// Skipped counts trials that a stop rule gave up. Other trials that are not done are pending.
	Skipped int `json:"skipped"`
	// Templates holds the hashes of the prompts of the outcomes, and ScoreVersions the versions of
	// the rules that judged them. Both are sorted, and "" means unknown.
	Templates     []string `json:"templates"`
	ScoreVersions []string `json:"score_versions"`
	Parts         []Pivot  `json:"parts"`
	Errors        Errors   `json:"errors"`
	// Loops counts the episodes that got into a loop, by its first kind.
	Loops []LoopCount `json:"loops"`
	// Pilot is empty unless outcomes have the further verdicts of the pilot world.
	Pilot   Pilot     `json:"pilot"`
	LeftOut []LeftOut `json:"left_out"`
}

// table computes the tables of an experiment from its cells.
func (d Design) table(experiment string, cells []*cell) *Table {
	t := &Table{
		Experiment: experiment, Parts: []Pivot{}, Errors: d.errors(cells), Loops: loops(cells),
		Pilot: pilot(cells), LeftOut: orEmpty(d.LeftOut),
	}
	t.Rows, t.Averaged = d.rows(cells)
	total := sum(cells)
	t.Planned, t.Done = total.planned, total.n(done)
	t.Templates = orEmpty(slices.Sorted(maps.Keys(total.templates)))
	t.ScoreVersions = orEmpty(slices.Sorted(maps.Keys(total.rules)))
	for _, p := range d.Parts {
		t.Parts = append(t.Parts, p.pivot(cells, d.LeftOut))
	}
	return t
}

func (d Design) rows(cells []*cell) (rows []Row, averaged []string) {
	rows = []Row{}
	for _, p := range pool(cells, withoutType) {
		rows = append(rows, d.rowOf(&p.tally, withoutType(p.Cell)))
	}
	return rows, averagedBy(cells, withoutType)
}

func withoutType(c assay.Cell) assay.Cell { return without(c, taskType) }

func (d Design) floor(c assay.Cell) (rate float64, ok bool) {
	if d.Floor == nil {
		return 0, false
	}
	return d.Floor(c)
}

// rowOf returns counts as the row of a cell.
func (d Design) rowOf(t *tally, c assay.Cell) Row {
	r := t.row()
	if rate, ok := d.floor(c); ok {
		r.Floor = &rate
	}
	r.Model, r.Variant, r.Severity = c.Model, c.Variant, c.Severity
	r.Difficulty, r.Reliability, r.FaultMix = c.Difficulty, c.Reliability, c.Faults
	return r
}

// row returns the counts as a row, without its key.
func (t *tally) row() Row {
	success := stat.Clustered(t.byTask(), 0.95)
	halfway, failure := t.among(done, partial), t.among(done, failed)
	r := Row{
		Planned: t.planned, Done: t.n(done), Faults: t.faults,
		Full: t.n(full), Partial: t.n(partial), Failed: t.n(failed),
		FullRate: success.Rate, FullInterval: success.Interval, DesignEffect: success.DesignEffect,
		PartialRate: halfway.Rate, PartialInterval: halfway.Interval,
		FailureRate: failure.Rate, FailureInterval: failure.Interval,
		MeanTurns: t.meanTurns(), CostUSD: t.costUSD, Unpriced: t.usage.UnpricedTokens,
		BestMeasured: t.n(measured),
	}
	if r.BestMeasured > 0 {
		r.Best = new(t.best / float64(r.BestMeasured))
	}
	if r.Attacks = t.n(attacked); r.Attacks > 0 {
		r.Security = new(t.among(attacked, held))
	}
	if t.best > 0 {
		s := t.among(measured, reached)
		r.OfBest = new(s.Rate / *r.Best)
		r.OfBestInterval = &stat.Interval{Low: s.Interval.Low / *r.Best, High: s.Interval.High / *r.Best}
	}
	return r
}
