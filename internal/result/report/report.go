// Package report computes the figures of an experiment from its attempts: counts, rates, intervals
// and comparisons.
//
// It reads an iterator of attempts, not a store, and computes figures on demand. Package plan
// decides which trials exist, package stat has the formulas, and package sections shows the
// figures to people.
package report

import (
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
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
	// it has happened, succeeds in spite of the faults of tools that are scheduled for the trial.
	// If it is nil, all trials are survivable.
	Survivable func(*assay.Trial) bool
	// Winnable reports whether the best policy succeeds with the luck of a trial. If it is nil, it
	// does wherever it has a chance.
	Winnable func(*assay.Trial) bool
	// Floor returns the rate of full success that a policy without skill has in a cell, at trials
	// with a mean ceiling, which is nil if it is unknown. It returns false if the floor is unknown. If
	// it is nil, no floor is known.
	Floor func(c assay.Cell, ceiling *float64) (rate float64, ok bool)
	// Open reports whether the best policy's chance at a trial is unknown, so that there is no best
	// possible rate. If it is nil, that depends on the setting only.
	Open func(*assay.Trial) bool
	// StatesHarm is true if tools state the severity of their effects, so that a report has figures of
	// safety whatever happened.
	StatesHarm bool
}

// LeftOut counts tasks that were not planned with a variant and severity.
type LeftOut = plan.NotApplicable

// A Table has the main results of an experiment and the tables of its parts.
type Table struct {
	Experiment string `json:"experiment"`
	// Rows has the measures of each model, variant, severity, difficulty, reliability and mix of
	// faults. They are sorted by model, variant, severity, reliability, difficulty and mix of faults.
	Rows *Grid `json:"rows"`
	// Averaged names the factors that rows average over.
	Averaged []string `json:"averaged_over"`
	Planned  int      `json:"planned"`
	Done     int      `json:"done"`
	// Population describes the tasks that intervals and tests are about.
	Population Population `json:"population"`
	// Skipped counts trials that a stop rule gave up. Other trials that are not done are pending.
	Skipped int `json:"skipped"`
	// Met counts the faults of providers and programs that all attempts have met.
	Met assay.FaultCount `json:"met"`
	// Replaced counts the outcomes that `--retry` has put in the place of earlier ones.
	Replaced int `json:"replaced,omitempty"`
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
		Experiment: experiment, Parts: []Pivot{}, Errors: errorsOf(cells), Loops: loops(cells),
		Pilot: pilot(cells), LeftOut: orEmpty(d.LeftOut),
	}
	t.Rows = rowGrid(pool(cells, withoutType), rowFactors...)
	t.Averaged = averagedBy(cells, withoutType)
	total := sum(cells)
	t.Planned, t.Done = total.planned, total.n(done)
	t.Met.Merge(total.met)
	t.Replaced = int(total.amounts[retried])
	t.Templates = orEmpty(slices.Sorted(maps.Keys(total.tags[templates])))
	t.ScoreVersions = orEmpty(slices.Sorted(maps.Keys(total.tags[rules])))
	for _, p := range d.Parts {
		t.Parts = append(t.Parts, p.pivot(cells, d.LeftOut))
	}
	return t
}

func withoutType(c assay.Cell) assay.Cell { return without(c, taskType) }

// floor returns the floor of a trial of a cell. It returns false if it is unknown.
func (d Design) floor(c assay.Cell, ceiling *float64) (rate float64, ok bool) {
	if d.Floor == nil {
		return 0, false
	}
	return d.Floor(c, ceiling)
}

// Pilot shows the three definitions of full success that the 2025 original used side by side, by
// model and variant. It covers the outcomes that were judged by all three.
type Pilot struct {
	Rows     *Grid    `json:"rows"`
	Averaged []string `json:"averaged_over"`
}

func pilot(cells []*cell) Pilot {
	cells = slices.DeleteFunc(slices.Clone(cells), func(c *cell) bool { return c.n(judged) == 0 })
	by := byModelAnd(variant)
	return Pilot{
		grid(pool(cells, by), []string{model, variant}, Tables["pilot"]...), averagedBy(cells, by),
	}
}

// Errors holds the reasons why trials did not fully succeed, by model.
type Errors struct {
	Causes []assay.Cause `json:"causes"`
	Rows   []ErrorRow    `json:"rows"`
}

// An ErrorRow has a cell for each cause. Their counts add up to Total, which is Done minus the full
// successes.
type ErrorRow struct {
	Model string      `json:"model"`
	Done  int         `json:"done"`
	Total int         `json:"total"`
	Cells []ErrorCell `json:"cells"`
}

// An ErrorCell is a cause's share of the Total. The cause is empty for outcomes without one, which
// come from other programs.
type ErrorCell struct {
	Cause assay.Cause `json:"cause"`
	Share
}

func errorsOf(cells []*cell) Errors {
	total := sum(cells)
	e := Errors{Causes: total.causes(), Rows: []ErrorRow{}}
	for _, m := range byModel(cells) {
		row := ErrorRow{
			Model: m.Model, Done: m.n(done), Total: m.n(done) - m.n(full), Cells: []ErrorCell{},
		}
		for _, cause := range e.Causes {
			row.Cells = append(row.Cells, ErrorCell{cause, m.failedBy(cause)})
		}
		e.Rows = append(e.Rows, row)
	}
	return e
}

// A LoopCount counts the episodes whose first loop was of a kind.
type LoopCount struct {
	Kind     assay.LoopKind `json:"kind"`
	Episodes int            `json:"episodes"`
}

// loops lists the kinds that occurred, in the order of [assay.LoopKinds].
func loops(cells []*cell) []LoopCount {
	total := sum(cells)
	out := []LoopCount{}
	var kinds []assay.LoopKind
	for _, name := range slices.Sorted(maps.Keys(total.tags[loopKinds])) {
		kinds = append(kinds, assay.LoopKind(name))
	}
	for _, kind := range inOrder(kinds, assay.LoopKinds) {
		out = append(out, LoopCount{kind, total.tags[loopKinds][string(kind)]})
	}
	return out
}
