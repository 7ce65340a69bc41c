package query_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// TestDesignReadsEachTrialsTask has two tasks of each ID, which differ in whether a flaw hurts and
// whether an agent survives the faults.
func TestDesignReadsEachTrialsTask(t *testing.T) {
	t.Parallel()
	tools := library.Tools()
	tasks := func(yield func(assay.Task) bool) {
		for i := range 4 {
			for d, difficulty := range []string{"easy", "hard"} {
				task := assay.Task{
					ID: assay.TaskID(fmt.Sprint("t", i)), Type: "basic_task", Difficulty: difficulty,
					Description: fmt.Sprint("Do ", i), Required: []string{tools[i].Name},
				}
				for n := range d * 8 {
					task.Required = append(task.Required, tools[i+n+1].Name)
				}
				if !yield(task) {
					return
				}
			}
		}
	}
	dir := t.TempDir()
	lib, file := filepath.Join(dir, "lib.db"), filepath.Join(dir, "e.yaml")
	if err := library.Create(t.Context(), lib, library.Meta{Name: "two"}, tools, tasks); err != nil {
		t.Fatal(err)
	}
	text := "models: [sim/listed, sim/expert]\ntask_types: [basic_task]\ntasks_per_type: all\n" +
		"variants: [optimal, flawed_missing_step, flawed_redundant_operations]\n" +
		"difficulties: [easy, hard]\nreliabilities: [1, 0.3]\nlibrary: " + lib + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := plan.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()

	type answers struct{ hurts, survives bool }
	type pair struct {
		id          assay.TaskID
		variant     string
		reliability float64
	}
	seen := make(map[pair]answers)
	differ := make(map[string]bool)
	d := query.Design(t.Context(), j)
	for trial := range j.Trials() {
		task, err := j.Library.Task(t.Context(), trial.Task, trial.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		want := answers{
			hurts: workflow.Hurts(j.Library.Catalog(), &trial, &task),
			survives: trial.Reliability == 1 ||
				workflow.Survivable(j.Library.Catalog(), &trial, &task),
		}
		if got := (answers{d.Hurts(&trial), d.Survivable(&trial)}); got != want {
			t.Errorf("%+v: %+v, want %+v", trial, got, want)
		}
		key := pair{trial.Task, trial.Variant, trial.Reliability}
		if other, ok := seen[key]; ok {
			differ["hurts"] = differ["hurts"] || other.hurts != want.hurts
			differ["survives"] = differ["survives"] || other.survives != want.survives
		}
		seen[key] = want
	}
	if !differ["hurts"] || !differ["survives"] {
		t.Errorf("no two tasks of an ID differ (%v), so the test is too weak", differ)
	}
}
