// Package report turns attempts into tables of counts, rates and intervals.
//
// It reads an iterator of attempts, not a store, and derives every number when
// it is asked. It does not decide what was planned (package plan) and does no
// statistics of its own (package stat).
package report

import (
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Design is what a table has to know of an experiment beside its trials. The
// zero Design gives one without parts.
type Design struct {
	Parts []Part
	// Categories are those of error, in the order of their table; others that
	// occur come after them.
	Categories []string
	LeftOut    []LeftOut
}

// LeftOut says that a flaw does not apply to some of the tasks of a type, which
// were therefore not planned with that variant.
type LeftOut struct {
	Variant  string `json:"variant"`
	TaskType string `json:"task_type"`
	// Tasks are left out of Of.
	Tasks int `json:"left_out"`
	Of    int `json:"of"`
}

// A Row counts the trials of one model, variant, severity, difficulty and reliability.
type Row struct {
	Model   string `json:"model"`
	Variant string `json:"variant"`
	// Severity is of a flawed variant, and empty for others.
	Severity    string  `json:"severity"`
	Difficulty  string  `json:"difficulty"`
	Reliability float64 `json:"reliability"`
	// Planned and Done count trials; coverage is their quotient.
	Planned int `json:"planned"`
	Done    int `json:"done"`
	// Faults counts attempts that ended in a fault.
	Faults  int `json:"faults"`
	Full    int `json:"full_success"`
	Partial int `json:"partial_success"`
	Failed  int `json:"failure"`
	// FullRate is Full / Done with its 95 % interval, which respects that trials
	// repeat within tasks: see [stat.Clustered]. Without Done the rates
	// and the mean are 0 and say nothing.
	FullRate     float64       `json:"full_success_rate"`
	FullInterval stat.Interval `json:"full_success_95"`
	// DesignEffect is by how much repeats of tasks widen the interval: 1 for none.
	DesignEffect    float64       `json:"design_effect"`
	PartialRate     float64       `json:"partial_success_rate"`
	PartialInterval stat.Interval `json:"partial_success_95"`
	FailureRate     float64       `json:"failure_rate"`
	FailureInterval stat.Interval `json:"failure_95"`
	// Best is the mean of [assay.Outcome.Best] over the BestMeasured trials
	// that were judged by rules which measure it, nil without any, and OfBest
	// the rate of full success of the same trials as a share of it.
	Best         *float64 `json:"best_possible"`
	BestMeasured int      `json:"best_measured"`
	OfBest       *float64 `json:"of_best"`
	// MeanTurns is over the trials that are done.
	MeanTurns float64 `json:"mean_turns"`
	// CostUSD is of all attempts, faults too.
	CostUSD float64 `json:"cost_usd"`
}

// A Share is a count with the rate that it makes and the rate's 95 % interval, which
// respects that trials repeat within tasks: see [stat.Clustered]. Of nothing the rate
// is 0 and says nothing.
type Share struct {
	Count    int           `json:"count"`
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
}

// A Table is the main result of an experiment, with the tables of its parts.
type Table struct {
	Experiment string `json:"experiment"`
	// Rows are in the order in which their trials were planned.
	Rows []Row `json:"rows"`
	// Averaged names the factors that rows average over.
	Averaged []string `json:"averaged_over"`
	Planned  int      `json:"planned"`
	Done     int      `json:"done"`
	// Skipped counts trials that a stop rule gave up; the others that are not done are
	// pending.
	Skipped int `json:"skipped"`
	// Templates and ScoreVersions are sorted: the hashes of the prompts that
	// the outcomes which count were played with, and the versions of the rules
	// that judged them. Empty stands for one that is not known.
	Templates     []string `json:"templates"`
	ScoreVersions []string `json:"score_versions"`
	Parts         []Pivot  `json:"parts"`
	Errors        Errors   `json:"errors"`
	// Loops counts the episodes that got into a loop, by its first kind.
	Loops []LoopCount `json:"loops"`
	// Pilot is empty unless outcomes have the pilot world's further verdicts.
	Pilot   Pilot     `json:"pilot"`
	LeftOut []LeftOut `json:"left_out"`
}

// table makes the tables of an experiment's cells.
func (d Design) table(experiment string, cells []*cell) *Table {
	t := &Table{
		Experiment: experiment,
		Parts:      []Pivot{},
		Errors:     d.errors(cells),
		Loops:      loops(cells),
		Pilot:      pilot(cells),
		LeftOut:    append([]LeftOut{}, d.LeftOut...),
	}
	t.Rows, t.Averaged = rows(cells)
	var total tally
	for _, c := range cells {
		total.merge(&c.tally)
	}
	t.Planned, t.Done = total.planned, total.done
	t.Templates = append([]string{}, slices.Sorted(maps.Keys(total.templates))...)
	t.ScoreVersions = append([]string{}, slices.Sorted(maps.Keys(total.rules))...)
	for _, p := range d.Parts {
		t.Parts = append(t.Parts, p.pivot(cells, d.LeftOut))
	}
	return t
}

func rows(cells []*cell) (rows []Row, averaged []string) {
	type key struct {
		model, variant, severity, difficulty string
		reliability                          float64
	}
	pools, averaged := pool(cells, func(c assay.Cell) key {
		return key{c.Model, c.Variant, c.Severity, c.Difficulty, c.Reliability}
	})
	rows = []Row{}
	for _, p := range pools {
		r := p.row()
		r.Model, r.Variant, r.Severity, r.Difficulty, r.Reliability = p.key.model, p.key.variant, p.key.severity, p.key.difficulty, p.key.reliability
		rows = append(rows, r)
	}
	return rows, averaged
}

// row tells what was counted.
func (t *tally) row() Row {
	full := stat.Clustered(t.byTask(), 0.95)
	partial := t.among(func(o outcomes) int32 { return o.partial })
	failed := t.among(outcomes.failed)
	r := Row{
		Planned: t.planned, Done: t.done, Faults: t.faults, Full: t.full, Partial: t.partial, Failed: t.failed,
		FullRate: full.Rate, FullInterval: full.Interval, DesignEffect: full.DesignEffect,
		PartialRate: partial.Rate, PartialInterval: partial.Interval, FailureRate: failed.Rate, FailureInterval: failed.Interval,
		MeanTurns: t.meanTurns(), CostUSD: t.costUSD, BestMeasured: t.best.done,
	}
	if t.best.done > 0 {
		r.Best = new(t.best.sum / float64(t.best.done))
	}
	if t.best.sum > 0 {
		r.OfBest = new(float64(t.best.full) / t.best.sum)
	}
	return r
}
