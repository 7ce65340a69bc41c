package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// A ceiling is what the best policy reaches at a reliability, with one call a
// reply: the chance of full success and the calls that it is expected to make,
// in the mean of the planned trials.
type ceiling struct {
	Reliability float64 `json:"reliability"`
	Best        float64 `json:"best_possible"`
	Calls       float64 `json:"expected_calls"`
	// Trials are those that were looked at.
	Trials int `json:"trials"`
}

// mostCeilings is about how many trials are looked at where there are more.
const mostCeilings = 5000

// ceilings computes what is possible, from the trials of a model. Models do not
// differ in it, unless parts are for some of them.
func (j *job) ceilings(ctx context.Context) ([]ceiling, error) {
	model := slices.MaxFunc(j.experiment.Models, func(a, b string) int { return cmp.Compare(j.plan.Planned(a), j.plan.Planned(b)) })
	planned := max(1, j.plan.Planned(model))
	random := rand.New(rand.NewPCG(1, 1)) // the same sample each time
	tasks := newTaskCache(j.library)
	type value struct{ best, calls float64 }
	known := make(map[string]value)
	sums := make(map[float64]ceiling)
	for trial := range j.plan.Some(model, func(int) bool { return random.IntN(planned) < mostCeilings }) {
		task, err := tasks.task(ctx, &trial)
		if err != nil {
			return nil, err
		}
		key := fmt.Sprint(trial.Reliability, strings.Join(task.Required, " "))
		v, ok := known[key]
		if !ok {
			p := workflow.Solve(j.library.Catalog(), workflow.ProblemOf(&trial, task.Required))
			v = value{p.Success(), p.Expected()}
			known[key] = v
		}
		c := sums[trial.Reliability]
		c.Reliability = trial.Reliability
		c.Best, c.Calls, c.Trials = c.Best+v.best, c.Calls+v.calls, c.Trials+1
		sums[trial.Reliability] = c
	}
	var all []ceiling
	for _, r := range slices.Backward(slices.Sorted(maps.Keys(sums))) {
		c := sums[r]
		c.Best, c.Calls = c.Best/float64(c.Trials), c.Calls/float64(c.Trials)
		all = append(all, c)
	}
	return all, nil
}

func writeCeilings(p *process, ceilings []ceiling) {
	t := document.NewTextTable("reliability", "", "best possible", "calls expected")
	for _, c := range ceilings {
		t.Row(assay.FormatReliability(c.Reliability), "", fmt.Sprintf("%.1f %%", 100*c.Best), fmt.Sprintf("%.1f", c.Calls))
	}
	fmt.Fprintf(p.out, "%s\n\nThat is how often the best policy fully succeeds, with one call a reply.\n\n", t)
}
