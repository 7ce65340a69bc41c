package job

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// A Ceiling is the mean success that the best policy reaches at a reliability, and the number of
// calls that it makes on average.
type Ceiling struct {
	Reliability float64 `json:"reliability"`
	Best        float64 `json:"best_possible"`
	Calls       float64 `json:"expected_calls"`
	// Trials is the number of trials in the mean.
	Trials int `json:"trials"`
}

// ceilingSample is roughly the largest number of trials that a ceiling is computed from.
const ceilingSample = 5000

// Ceilings returns the ceiling at each reliability, the highest reliability first. It looks at
// the model with the most trials, because ceilings do not depend on the model.
func (j *Job) Ceilings(ctx context.Context) ([]Ceiling, error) {
	model := slices.MaxFunc(j.Experiment.Models, func(a, b string) int {
		return cmp.Compare(j.Plan.Planned(a), j.Plan.Planned(b))
	})
	planned := max(1, j.Plan.Planned(model))
	random := rand.New(rand.NewPCG(1, 1)) // the same sample each time
	sampled := func(int) bool { return random.IntN(planned) < ceilingSample }

	tasks := library.NewCache(j.Library)
	type value struct{ best, calls float64 }
	known := make(map[string]value)
	sums := make(map[float64]Ceiling)
	for trial := range j.Plan.Some(model, sampled) {
		task, err := tasks.Task(ctx, &trial)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprint(trial.Reliability, strings.Join(task.Required, " "))
		v, ok := known[key]
		if !ok {
			p := workflow.Solve(j.Library.Catalog(), workflow.ProblemOf(&trial, task.Required))
			v = value{p.Success(), p.Expected()}
			known[key] = v
		}
		c := sums[trial.Reliability]
		c.Reliability = trial.Reliability
		c.Best, c.Calls, c.Trials = c.Best+v.best, c.Calls+v.calls, c.Trials+1
		sums[trial.Reliability] = c
	}

	var all []Ceiling
	for _, r := range slices.Backward(slices.Sorted(maps.Keys(sums))) {
		c := sums[r]
		c.Best, c.Calls = c.Best/float64(c.Trials), c.Calls/float64(c.Trials)
		all = append(all, c)
	}
	return all, nil
}
