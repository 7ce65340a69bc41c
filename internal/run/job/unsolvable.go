package job

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// Unsolvable counts the planned tasks that no policy can fully solve in the experiment's setting,
// however reliable the tools are.
type Unsolvable struct {
	Tasks   int    `json:"tasks"`
	Of      int    `json:"of"`
	Example string `json:"example,omitempty"`
}

// mostTasks is the largest number of tasks that are looked at.
const mostTasks = 5000

// Unsolvable looks at the tasks of the model with the most trials.
func (j *Job) Unsolvable(ctx context.Context) (u Unsolvable, err error) {
	model := slices.MaxFunc(j.Experiment.Models, func(a, b string) int {
		return cmp.Compare(j.Plan.Planned(a), j.Plan.Planned(b))
	})
	type worded struct {
		id         assay.TaskID
		difficulty string
	}
	seen := make(map[worded]bool)
	solvable := make(map[string]bool) // by required tools
	tasks := library.NewCache(j.Library)
	for trial := range j.Plan.Trials(model) {
		at := worded{trial.Task, trial.Difficulty}
		if seen[at] {
			continue
		}
		if len(seen) == mostTasks {
			break
		}
		seen[at] = true
		task, err := tasks.Task(ctx, &trial)
		if err != nil {
			return u, err
		}
		key := strings.Join(task.Required, " ")
		if _, known := solvable[key]; !known {
			trial.Reliability = 1
			problem := workflow.ProblemOf(&trial, task.Required)
			solvable[key] = workflow.Solve(j.Library.Catalog(), problem).Success() > 0
		}
		if u.Of++; !solvable[key] {
			u.Tasks++
			u.Example = cmp.Or(u.Example, string(task.ID))
		}
	}
	return u, nil
}
