// Package report turns attempts into tables of counts, rates and intervals.
//
// It reads an iterator of attempts, not a store, and derives every number when
// it is asked. It does not decide what was planned (package plan) and does no
// statistics of its own (package stat).
package report

import (
	"fmt"
	"iter"
	"slices"

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
	// FullRate is Full / Done with its 95 % interval; meaningless without Done.
	FullRate     float64       `json:"full_success_rate"`
	FullInterval stat.Interval `json:"full_success_95"`
	PartialRate  float64       `json:"partial_success_rate"`
	FailureRate  float64       `json:"failure_rate"`
	MeanTurns    float64       `json:"mean_turns"`
	CostUSD      float64       `json:"cost_usd"`

	turns int
}

// A Table is the main result of an experiment.
type Table struct {
	Experiment string `json:"experiment"`
	Rows       []Row  `json:"rows"`
	// Averaged names the factors that vary and that the rows average over.
	Averaged []string `json:"averaged_over"`
	Planned  int      `json:"planned"`
	Done     int      `json:"done"`
}

type key struct {
	model, variant string
	reliability    float64
}

// Build makes the table of an experiment from its planned trials, in order,
// and from attempts. Attempts at other trials are passed over.
func Build(experiment string, planned iter.Seq[assay.Trial], attempts iter.Seq2[assay.Attempt, error]) (*Table, error) {
	t := &Table{Experiment: experiment}
	rows := make(map[key]int)
	of := make(map[assay.TrialID]int)
	varies := newVariety()
	for trial := range planned {
		k := key{trial.Model, trial.Variant, trial.Reliability}
		i, ok := rows[k]
		if !ok {
			i = len(t.Rows)
			rows[k] = i
			t.Rows = append(t.Rows, Row{Model: trial.Model, Variant: trial.Variant, Reliability: trial.Reliability})
		}
		t.Rows[i].Planned++
		of[trial.ID] = i
		varies.add(trial)
	}
	for a, err := range attempts {
		if err != nil {
			return nil, err
		}
		if i, ok := of[a.ID]; ok {
			t.Rows[i].add(&a)
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

func (r *Row) add(a *assay.Attempt) {
	r.CostUSD += a.CostUSD
	if !a.Settles() {
		r.Faults++
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

// variety finds the factors that take several values.
type variety struct {
	types, difficulties, severities, repeats map[string]bool
}

func newVariety() *variety {
	return &variety{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
}

func (v *variety) add(t assay.Trial) {
	v.types[t.TaskType] = true
	v.difficulties[t.Difficulty] = true
	v.severities[t.Severity] = true
	v.repeats[fmt.Sprint(t.Repeat)] = true
}

func (v *variety) names() []string {
	names := []string{}
	for _, f := range []struct {
		name   string
		values map[string]bool
	}{{"task_type", v.types}, {"difficulty", v.difficulties}, {"severity", v.severities}, {"repeat", v.repeats}} {
		if len(f.values) > 1 {
			names = append(names, f.name)
		}
	}
	return slices.Clip(names)
}
