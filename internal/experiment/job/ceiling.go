package job

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// A Ceiling is the mean success that the best policy reaches at a reliability with a mix of faults,
// and the number of calls that it makes on average. Both are nil if they are not known of any trial.
type Ceiling struct {
	Reliability float64  `json:"reliability"`
	Faults      string   `json:"fault_mix,omitempty"`
	Best        *float64 `json:"best_possible"`
	Calls       *float64 `json:"expected_calls"`
	// Trials is the number of trials in the mean, and Unknown that of the others.
	Trials  int `json:"trials"`
	Unknown int `json:"unknown"`
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
	type sum struct {
		best, calls     float64
		trials, unknown int
	}
	solved := make(map[problem]*workflow.Policy)
	sums := make(map[chances]sum)
	for trial := range j.Plan.Some(model, sampled) {
		under := chances{trial.Reliability, trial.Faults}
		s := sums[under]
		ref := assay.TaskRef{ID: trial.Task, Digest: trial.TaskDigest}
		if of.open[ref] || !workflow.Exact(j.Library.Catalog(), &trial, of.problems[of.tasks[ref]].Required) {
			s.unknown++ // the best policy's chance
			sums[under] = s
			continue
		}
		at := problem{of.tasks[ref], under}
		best := solved[at]
		if best == nil {
			p := workflow.ProblemOf(&trial, of.problems[at.sequence].Required)
			best = workflow.Solve(j.Library.Catalog(), p)
			solved[at] = best
		}
		sums[under] = sum{s.best + best.Success(), s.calls + best.Expected(), s.trials + 1, s.unknown}
	}

	var all []Ceiling
	for under, s := range sums {
		c := Ceiling{Reliability: under.reliability, Faults: under.faults, Trials: s.trials, Unknown: s.unknown}
		if n := float64(s.trials); n > 0 {
			c.Best, c.Calls = new(s.best/n), new(s.calls/n)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Ceiling) int {
		return cmp.Or(cmp.Compare(b.Reliability, a.Reliability), cmp.Compare(a.Faults, b.Faults))
	})
	return all
}
