package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
)

// A Floor counts the tasks of a difficulty that policies without skill solve on tools that never
// fail. Such a task does not discriminate between models.
type Floor struct {
	Difficulty string `json:"difficulty"`
	Tasks      int    `json:"tasks"`
	// Solved names the tasks that any policy solves.
	Solved []string `json:"not_discriminating"`
	// Policy solves most, and Best is how many. It is empty if none solves any.
	Policy string `json:"policy"`
	Best   int    `json:"best"`
}

// MaxFloor is the share of solved tasks above which a difficulty does not tell models apart well.
const MaxFloor = .25

// High reports whether too many tasks need no skill.
func (f *Floor) High() bool { return float64(len(f.Solved)) > MaxFloor*float64(f.Tasks) }

// playFloors lets each policy that needs no plan play a task once.
func (v *taskPlayer) playFloors(ctx context.Context) {
	v.tried = true
	for _, p := range floor.Policies(v.world) {
		if p.Copies {
			continue
		}
		key := fmt.Sprintf("%s %q %s", p.Name, v.task.Required, v.task.Inputs)
		if p.Reads {
			key += v.task.Description
		}
		level, ok := v.known[key]
		if !ok {
			trial := v.trial(cellOf(p.Name, assay.Baseline, 1), assay.Listed, 0)
			a, _ := v.floors.Play(ctx, p, trial, v.task, 0)
			level = a.Level
			v.known[key] = level
		}
		if level == assay.FullSuccess {
			v.solvedBy = append(v.solvedBy, p.Name)
		}
	}
}

// floorsOf returns the floors of results, in the order of the difficulties.
func floorsOf(results []result) (all []Floor) {
	solved := make(map[[2]string]int) // by difficulty and policy
	for i := range results {
		r := &results[i]
		if !r.tried {
			continue
		}
		at := slices.IndexFunc(all, func(f Floor) bool { return f.Difficulty == r.difficulty })
		if at < 0 {
			at = len(all)
			all = append(all, Floor{Difficulty: r.difficulty})
		}
		f := &all[at]
		f.Tasks++
		if len(r.solvedBy) > 0 {
			f.Solved = append(f.Solved, string(r.id))
		}
		for _, policy := range r.solvedBy {
			key := [2]string{r.difficulty, policy}
			solved[key]++
			if cmp.Or(cmp.Compare(solved[key], f.Best), cmp.Compare(f.Policy, policy)) > 0 {
				f.Policy, f.Best = policy, solved[key]
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Floor) int {
		return slices.Index(Difficulties, a.Difficulty) - slices.Index(Difficulties, b.Difficulty)
	})
	return all
}
