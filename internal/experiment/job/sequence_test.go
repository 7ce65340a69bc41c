package job_test

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/task/library"
)

// TestOneIDAtTwoDifficulties plans 20 IDs. At easy they require one of two tools, and at hard more
// tools than an episode has calls. An ID at both difficulties is two tasks, as in the report, so
// three sequences are too few for them.
func TestOneIDAtTwoDifficulties(t *testing.T) {
	t.Parallel()
	tools := library.Tools()
	var hard []string
	for range plan.DefaultCalls + 1 {
		hard = append(hard, tools[2].Name)
	}
	tasks := func(yield func(assay.Task) bool) {
		for i := range 20 {
			task := assay.Task{
				ID: assay.TaskID(fmt.Sprintf("t%02d", i)), Type: "basic_task", Difficulty: "easy",
				Description: fmt.Sprint("Do ", i), Required: []string{tools[i%2].Name},
			}
			if !yield(task) {
				return
			}
			if task.Difficulty, task.Required = "hard", hard; !yield(task) {
				return
			}
		}
	}
	out := estimateOf(t, tasks, "difficulties: [easy, hard]\nreliabilities: [1, 0.5]\n")

	if want := (job.Unsolvable{Tasks: 20, Of: 40, Example: "t00"}); out.Unsolvable != want {
		t.Errorf("unsolvable: %+v, want %+v", out.Unsolvable, want)
	}
	half := func(easy float64) float64 { return easy / 2 } // the other half is never solved
	want := []job.Ceiling{
		{Reliability: 1, Best: new(half(1)), Trials: 80},
		{Reliability: .5, Best: new(half(1 - 1/1024.)), Trials: 80},
	}
	if diff := cmp.Diff(want, out.Ceilings, cmpopts.EquateApprox(0, 1e-9),
		cmpopts.IgnoreFields(job.Ceiling{}, "Calls")); diff != "" {
		t.Errorf("ceilings (-want +got):\n%s", diff)
	}
	p := out.Power[0]
	if p.Tasks != 20 || p.Sequences != 1 || p.Cluster != stat.BySequence {
		t.Errorf("power: %+v, want the row of 20 tasks and one sequence, by sequence", p)
	}
}

// estimateOf returns the estimate of an experiment with two repeats of all tasks of a library.
func estimateOf(t *testing.T, tasks iter.Seq[assay.Task], more string) job.Estimate {
	t.Helper()
	dir := t.TempDir()
	path, file := filepath.Join(dir, "lib.db"), filepath.Join(dir, "e.yaml")
	meta := library.Meta{Name: "few"}
	if err := library.Create(t.Context(), path, meta, library.Tools(), tasks); err != nil {
		t.Fatal(err)
	}
	text := "models: [sim/listed, sim/expert]\nvariants: [optimal]\ntask_types: [basic_task]\n" +
		"tasks_per_type: all\nrepeats: 2\nlibrary: " + path + "\n" + more
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
	out, err := j.Estimate(t.Context(), nil, os.LookupEnv, time.Millisecond)
	if err != nil || len(out.Power) != 1 {
		t.Fatal(out.Power, err)
	}
	return out
}
