package job

import (
	"context"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// sequences are the sequences of required tools of the planned tasks.
type sequences struct {
	tasks    map[assay.TaskID]string
	problems map[string]workflow.Problem
}

// sequences reads each planned task once.
func (j *Job) sequences(ctx context.Context) (s sequences, err error) {
	s = sequences{make(map[assay.TaskID]string), make(map[string]workflow.Problem)}
	for _, model := range j.Experiment.Models {
		trial := assay.Trial{Setting: j.Experiment.Setting(model)}
		for cell, tasks := range j.Plan.Tasks(model) {
			for _, ref := range tasks {
				if _, known := s.tasks[ref.ID]; known {
					continue
				}
				task, err := j.Library.Task(ctx, ref.ID, cell.Difficulty)
				if err != nil {
					return s, err
				}
				key := strings.Join(task.Required, " ")
				s.tasks[ref.ID] = key
				trial.Reliability = 1
				s.problems[key] = workflow.ProblemOf(&trial, task.Required)
			}
		}
	}
	return s, nil
}

// sizes returns the number of the given tasks in each sequence.
func (s sequences) sizes(tasks []assay.TaskRef) (sizes []int) {
	places := make(map[string]int)
	for _, ref := range tasks {
		at, ok := places[s.tasks[ref.ID]]
		if !ok {
			at = len(sizes)
			places[s.tasks[ref.ID]] = at
			sizes = append(sizes, 0)
		}
		sizes[at]++
	}
	return sizes
}
