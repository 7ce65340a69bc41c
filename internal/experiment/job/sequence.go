package job

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// sequences are the sequences of required tools of the planned tasks. An ID can have other required
// tools at another difficulty, so tasks are distinguished by their digests, too.
type sequences struct {
	tasks    map[assay.TaskRef]string
	problems map[string]workflow.Problem
	// open are the tasks whose plan is unknown, so they have no problem.
	open map[assay.TaskRef]bool
}

// sequences reads each planned task once. It takes no sample, because a sample would miss the few
// tasks that cannot be solved, and because the report chooses its clusters by the numbers of all
// tasks and sequences. A task is read in 40 µs, so 100,000 tasks take four seconds.
func (j *Job) sequences(ctx context.Context) (s sequences, err error) {
	s = sequences{
		make(map[assay.TaskRef]string), make(map[string]workflow.Problem),
		make(map[assay.TaskRef]bool),
	}
	for _, model := range j.Experiment.Models {
		trial := assay.Trial{Setting: j.Experiment.Setting(model)}
		for cell, tasks := range j.Plan.Tasks(model) {
			for _, ref := range tasks {
				if _, known := s.tasks[ref]; known {
					continue
				}
				task, err := j.Library.Task(ctx, ref.ID, cell.Difficulty)
				if err != nil {
					return s, err
				}
				planned, known := workflow.Planned(trial.World, &task)
				if !known {
					s.tasks[ref], s.open[ref] = strings.Join(task.Required, " "), true
					continue
				}
				key := strings.Join(planned, " ")
				s.tasks[ref] = key
				trial.Reliability = 1
				s.problems[key] = workflow.ProblemOf(&trial, planned)
			}
		}
	}
	return s, nil
}

// sizes returns the number of the given tasks in each sequence, the largest first.
func (s sequences) sizes(tasks []assay.TaskRef) []int {
	counts := make(map[string]int)
	for _, ref := range tasks {
		counts[s.tasks[ref]]++
	}
	sizes := slices.Sorted(maps.Values(counts))
	slices.Reverse(sizes)
	return sizes
}
