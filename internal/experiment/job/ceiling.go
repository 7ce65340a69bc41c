package job

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// A Ceiling is the mean success that the best policy reaches at a reliability with a mix of faults,
// and the number of calls that it makes on average.
type Ceiling struct {
	Reliability float64 `json:"reliability"`
	Faults      string  `json:"fault_mix,omitempty"`
	Best        float64 `json:"best_possible"`
	Calls       float64 `json:"expected_calls"`
	// Trials is the number of trials in the mean.
	Trials int `json:"trials"`
}

// ceilingSample is roughly the largest number of trials that a ceiling is computed from.
const ceilingSample = 5000

// ceilings returns the ceiling at each reliability and mix, the highest reliability first. It looks
// at the model with the most trials, because ceilings do not depend on the model.
func (j *Job) ceilings(of sequences) []Ceiling {
	model := slices.MaxFunc(j.Experiment.Models, func(a, b string) int {
		return cmp.Compare(j.Plan.Planned(a), j.Plan.Planned(b))
	})
	planned := max(1, j.Plan.Planned(model))
	random := rand.New(rand.NewPCG(1, 1)) // the same sample each time
	sampled := func(int) bool { return random.IntN(planned) < ceilingSample }

	type chances struct {
		reliability float64
		faults      string
	}
	type problem struct {
		sequence string
		chances
	}
	solved := make(map[problem]*workflow.Policy)
	sums := make(map[chances]Ceiling)
	for trial := range j.Plan.Some(model, sampled) {
		ref := assay.TaskRef{ID: trial.Task, Digest: trial.TaskDigest}
		if of.open[ref] || !workflow.Exact(j.Library.Catalog(), &trial, of.problems[of.tasks[ref]].Required) {
			continue // the best policy's chance is unknown
		}
		at := problem{of.tasks[ref], chances{trial.Reliability, trial.Faults}}
		best := solved[at]
		if best == nil {
			p := workflow.ProblemOf(&trial, of.problems[at.sequence].Required)
			best = workflow.Solve(j.Library.Catalog(), p)
			solved[at] = best
		}
		c := sums[at.chances]
		c.Reliability, c.Faults = trial.Reliability, trial.Faults
		c.Best, c.Calls, c.Trials = c.Best+best.Success(), c.Calls+best.Expected(), c.Trials+1
		sums[at.chances] = c
	}

	all := slices.SortedFunc(maps.Values(sums), func(a, b Ceiling) int {
		return cmp.Or(cmp.Compare(b.Reliability, a.Reliability), cmp.Compare(a.Faults, b.Faults))
	})
	for i := range all {
		c := &all[i]
		c.Best, c.Calls = c.Best/float64(c.Trials), c.Calls/float64(c.Trials)
	}
	return all
}
