package job_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/task/library"
)

// TestPowerKnowsSequences plans 120 tasks of six sequences of tools, or of 60. The report clusters
// the former by sequence, so the plan has to do the same.
func TestPowerKnowsSequences(t *testing.T) {
	t.Parallel()
	tools := library.Tools()
	for sequences, cluster := range map[int]string{6: stat.BySequence, 90: stat.ByTask} {
		tasks := func(yield func(assay.Task) bool) {
			for i := range 120 {
				s := i % sequences
				task := assay.Task{
					ID: assay.TaskID(fmt.Sprint("t", i)), Type: "basic_task", Difficulty: "easy",
					Description: fmt.Sprint("Do ", i),
					Required:    []string{tools[s%30].Name, tools[(s+1+s/30)%30].Name},
				}
				if !yield(task) {
					return
				}
			}
		}
		p := estimateOf(t, tasks, "difficulties: [easy]\n").Power[0]
		sizes := slices.Repeat([]int{1}, 120)
		if cluster == stat.BySequence {
			sizes = slices.Repeat([]int{20}, 6)
		}
		want := job.Power{
			Part: p.Part, Tasks: 120, Sequences: sequences, Repeats: 2, Cluster: cluster,
			Detectable: stat.Detectable(sizes, 2, job.RepeatCorrelation, 0),
			Paired:     stat.Detectable(sizes, 2, job.RepeatCorrelation, job.RepeatCorrelation),

			Power:       stat.PowerOf(sizes, 2, job.RepeatCorrelation, 0),
			PairedPower: stat.PowerOf(sizes, 2, job.RepeatCorrelation, job.RepeatCorrelation),
		}
		if p != want {
			t.Errorf("%d sequences: %+v, want %+v", sequences, p, want)
		}
	}
}
