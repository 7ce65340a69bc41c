package publish

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/assay-eval/assay/internal/result/report"
)

// An Entry is one evaluation result in a model's repository on the Hub.
type Entry struct {
	Dataset, Task string
	Value         float64
	Date, Notes   string
}

// Dataset returns the dataset on the Hub that has an experiment's tasks, or "" if there is none: only the
// built-in tasks are the same for everybody.
func (x *Experiment) Dataset() string {
	if !x.Builtin {
		return ""
	}
	return "assay-eval/" + x.World
}

// HubName returns the model's repository on the Hub. It is empty without one, and for a foreign agent, whose
// results are not those of its model alone.
func (r *Results) HubName() string {
	if r.model.Agent != "" {
		return ""
	}
	return r.model.Hub
}

// Lacking returns the conditions in which too few trials are done to publish a rate, with their counts.
func (r *Results) Lacking() (short []string) {
	for _, row := range r.all {
		planned, done := row.Int(report.Planned), row.Get(report.Full).N
		if float64(done) < report.Enough*float64(planned) {
			short = append(short, fmt.Sprintf("%s at %s: %d of %d trials", r.model.Name, condition(row.Cell), done, planned))
		}
	}
	return short
}

// Entries returns an entry for each condition.
func (r *Results) Entries() (all []Entry) {
	for _, row := range r.rows {
		v := row.Get(report.Full)
		all = append(all, Entry{
			Dataset: r.experiment.Dataset(), Task: condition(row.Cell),
			Value: percent(v.Number), Date: r.latest.Format("2006-01-02"),
			Notes: r.notes(row, v),
		})
	}
	return all
}

// percent has so many digits that a trial of a hundred thousand makes a difference.
func percent(share float64) float64 { return math.Round(100*share*1000) / 1000 }

func (r *Results) notes(row report.GridRow, v report.Value) string {
	parts := []string{
		fmt.Sprintf("full success in %d of %d trials, 95 %% interval %.1f to %.1f", v.Count, v.N,
			100*v.Interval.Low, 100*v.Interval.High),
		fmt.Sprintf("%d of %d planned trials done", v.N, row.Int(report.Planned)),
	}
	settings := r.settings()
	for _, name := range []string{"effort", "thinking", "temperature", "revision", "turn_limit", "call_limit", "protocol"} {
		if settings[name] != "" {
			parts = append(parts, strings.ReplaceAll(name, "_", " ")+" "+settings[name])
		}
	}
	return strings.Join(append(parts, "Assay "+r.fact("program"), "rules "+r.fact("score_version")), "; ")
}

// WriteEntries writes evaluation results as YAML. Texts are quoted as JSON, which YAML contains.
func WriteEntries(w io.Writer, entries []Entry) error {
	for _, e := range entries {
		if _, err := fmt.Fprintf(w, "- dataset:\n    id: %s\n    task_id: %s\n  value: %v\n  date: %s\n  notes: %s\n",
			quoted(e.Dataset), quoted(e.Task), e.Value, quoted(e.Date), quoted(e.Notes)); err != nil {
			return err
		}
	}
	return nil
}

// WriteBenchmark writes the eval.yaml of a dataset, which names the tasks that results refer to.
func WriteBenchmark(w io.Writer, dataset string, tasks []string) error {
	_, err := fmt.Fprintf(w, "name: %s\ndescription: %s\nevaluation_framework: assay\ntasks:\n", quoted(dataset),
		quoted("Workflows of tools, with plans that may be flawed and tools that may fail."))
	for _, task := range tasks {
		if err == nil {
			_, err = fmt.Fprintf(w, "  - id: %s\n", quoted(task))
		}
	}
	return err
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a text has no error
	return string(unbroken(b))
}
