package job_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/task/library"
)

// TestPowerKnowsSequences plans 120 tasks of six sequences of tools, or of 60. The report clusters
// the former by sequence, so the plan has to do the same.
func TestPowerKnowsSequences(t *testing.T) {
	t.Parallel()
	tools := library.Tools()
	for sequences, cluster := range map[int]string{6: report.BySequence, 60: report.ByTask} {
		dir := t.TempDir()
		path, text := filepath.Join(dir, "lib.db"), filepath.Join(dir, "e.yaml")
		err := library.Create(t.Context(), path, library.Meta{Name: "few"}, tools,
			func(yield func(assay.Task) bool) {
				for i := range 120 {
					s := i % sequences
					task := assay.Task{
						ID: assay.TaskID(fmt.Sprint("t", i)), Type: "basic_task",
						Difficulty:  "easy",
						Description: fmt.Sprint("Do ", i),
						Required:    []string{tools[s%30].Name, tools[(s+1+s/30)%30].Name},
					}
					if !yield(task) {
						return
					}
				}
			})
		if err != nil {
			t.Fatal(err)
		}
		spec := "models: [sim/listed, sim/expert]\nvariants: [optimal]\n" +
			"task_types: [basic_task]\ndifficulties: [easy]\ntasks_per_type: all\n" +
			"repeats: 2\nlibrary: " + path + "\n"
		if err := os.WriteFile(text, []byte(spec), 0o600); err != nil {
			t.Fatal(err)
		}
		p := powerOf(t, text)
		sizes := slices.Repeat([]int{1}, 120)
		if cluster == report.BySequence {
			sizes = slices.Repeat([]int{20}, 6)
		}
		want := job.Power{
			Part: p.Part, Tasks: 120, Sequences: sequences, Repeats: 2, Cluster: cluster,
			Detectable: stat.Detectable(sizes, 2, job.RepeatCorrelation, 0),
			Paired:     stat.Detectable(sizes, 2, job.RepeatCorrelation, job.RepeatCorrelation),
		}
		if p != want {
			t.Errorf("%d sequences: %+v, want %+v", sequences, p, want)
		}
	}
}

// powerOf returns the power of an experiment with one part.
func powerOf(t *testing.T, path string) job.Power {
	t.Helper()
	e, err := plan.Load(path)
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
	return out.Power[0]
}
