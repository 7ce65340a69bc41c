// Package report turns attempts into tables of counts, rates and intervals.
//
// It reads an iterator of attempts, not a store, and derives every number when
// it is asked. It does not decide what was planned (package plan) and does no
// statistics of its own (package stat).
package report

import (
	"iter"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/stat"
)

// A Row counts the trials of one model, variant and reliability.
type Row struct {
	Model       string  `json:"model"`
	Variant     string  `json:"variant"`
	Reliability float64 `json:"reliability"`
	// Planned and Done count trials; coverage is their quotient.
	Planned int `json:"planned"`
	Done    int `json:"done"`
	// Faults counts attempts that ended in a fault.
	Faults  int `json:"faults"`
	Full    int `json:"full_success"`
	Partial int `json:"partial_success"`
	Failed  int `json:"failure"`
	// FullRate is Full / Done with its 95 % interval. Without Done the rates
	// and the mean are 0 and say nothing.
	FullRate     float64       `json:"full_success_rate"`
	FullInterval stat.Interval `json:"full_success_95"`
	PartialRate  float64       `json:"partial_success_rate"`
	FailureRate  float64       `json:"failure_rate"`
	// MeanTurns is over the trials that are done.
	MeanTurns float64 `json:"mean_turns"`
	// CostUSD is of all attempts, faults too.
	CostUSD float64 `json:"cost_usd"`

	turns int // of the trials that are done
}

// A Table is the main result of an experiment.
type Table struct {
	Experiment string `json:"experiment"`
	// Rows are in the order in which their trials were planned.
	Rows []Row `json:"rows"`
	// Averaged names the factors that vary and that the rows average over.
	Averaged []string `json:"averaged_over"`
	Planned  int      `json:"planned"`
	Done     int      `json:"done"`
}

type key struct {
	model, variant string
	reliability    float64
}

// planned is what Build knows of a trial.
type planned struct {
	row     int // index in Table.Rows
	settled bool
}

// Build makes the table of an experiment from its planned trials, each of them
// once, and from attempts, oldest first. An attempt counts by its trial alone:
// the outcome of a trial that another experiment shares counts here too, and
// attempts at other trials are passed over. The first outcome settles a trial;
// a later one adds its cost and nothing else.
func Build(experiment string, trials iter.Seq[assay.Trial], attempts iter.Seq2[assay.Attempt, error]) (*Table, error) {
	t := &Table{Experiment: experiment, Rows: []Row{}}
	rows := make(map[key]int)
	known := make(map[assay.TrialID]planned)
	varies := newVariety()
	for trial := range trials {
		k := key{trial.Model, trial.Variant, trial.Reliability}
		i, ok := rows[k]
		if !ok {
			i = len(t.Rows)
			rows[k] = i
			t.Rows = append(t.Rows, Row{Model: trial.Model, Variant: trial.Variant, Reliability: trial.Reliability})
		}
		t.Rows[i].Planned++
		known[trial.ID] = planned{row: i}
		varies.add(trial)
	}
	for a, err := range attempts {
		if err != nil {
			return nil, err
		}
		if p, ok := known[a.ID]; ok {
			t.Rows[p.row].add(&a, p.settled)
			known[a.ID] = planned{p.row, p.settled || a.Settles()}
		}
	}
	for i := range t.Rows {
		t.Rows[i].finish()
		t.Planned += t.Rows[i].Planned
		t.Done += t.Rows[i].Done
	}
	t.Averaged = varies.names()
	return t, nil
}

// add counts an attempt at a trial that an earlier one may have settled.
func (r *Row) add(a *assay.Attempt, settled bool) {
	r.CostUSD += a.CostUSD
	switch {
	case !a.Settles():
		r.Faults++
		return
	case settled:
		return
	}
	r.Done++
	r.turns += a.Outcome.Turns
	switch a.Level {
	case assay.FullSuccess:
		r.Full++
	case assay.PartialSuccess:
		r.Partial++
	default:
		r.Failed++
	}
}

func (r *Row) finish() {
	n := float64(max(1, r.Done))
	r.FullRate, r.PartialRate, r.FailureRate = float64(r.Full)/n, float64(r.Partial)/n, float64(r.Failed)/n
	r.FullInterval = stat.Wilson(r.Full, r.Done, stat.Z95)
	r.MeanTurns = float64(r.turns) / n
}

// variety finds the factors beside a row's own that take several values.
type variety struct {
	types, difficulties, severities map[string]bool
	repeats                         map[int]bool
}

func newVariety() *variety {
	return &variety{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[int]bool{}}
}

func (v *variety) add(t assay.Trial) {
	v.types[t.TaskType] = true
	v.difficulties[t.Difficulty] = true
	v.severities[t.Severity] = true
	v.repeats[t.Repeat] = true
}

// names uses the names of an export's fields.
func (v *variety) names() []string {
	names := []string{}
	for _, f := range []struct {
		name   string
		values int
	}{{"task_type", len(v.types)}, {"difficulty", len(v.difficulties)}, {"severity", len(v.severities)}, {"repeat", len(v.repeats)}} {
		if f.values > 1 {
			names = append(names, f.name)
		}
	}
	return names
}
