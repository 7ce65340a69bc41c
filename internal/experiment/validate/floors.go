package validate

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/model/sim"
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

// MostFloor is the share of solved tasks above which a difficulty does not tell models apart well.
const MostFloor = .25

// High reports whether too many tasks need no skill.
func (f *Floor) High() bool { return float64(len(f.Solved)) > MostFloor*float64(f.Tasks) }

// wins collects the tasks that policies without skill solve.
type wins struct {
	all    []Floor
	by     map[[2]string]int // by difficulty and policy
	played map[string]bool   // by policy and everything that it looks at
}

func (w *wins) at(task *assay.Task) *Floor {
	i := slices.IndexFunc(w.all, func(f Floor) bool { return f.Difficulty == task.Difficulty })
	if i < 0 {
		i = len(w.all)
		w.all = append(w.all, Floor{Difficulty: task.Difficulty})
	}
	return &w.all[i]
}

// merge adds the wins at other tasks.
func (w *wins) merge(o *wins) {
	for _, f := range o.all {
		mine := w.at(&assay.Task{Difficulty: f.Difficulty})
		mine.Tasks += f.Tasks
		mine.Solved = append(mine.Solved, f.Solved...)
	}
	for by, n := range o.by {
		w.by[by] += n
	}
}

// sort puts the solved tasks into an order.
func (w *wins) sort(number map[assay.TaskID]int) {
	for _, f := range w.all {
		slices.SortFunc(f.Solved, func(a, b string) int {
			return cmp.Compare(number[assay.TaskID(a)], number[assay.TaskID(b)])
		})
	}
}

// begin counts a task.
func (w *wins) begin(task *assay.Task) { w.at(task).Tasks++ }

// add counts a task as solved by a policy.
func (w *wins) add(task *assay.Task, policy string) {
	f := w.at(task)
	if n := len(f.Solved); n == 0 || f.Solved[n-1] != string(task.ID) {
		f.Solved = append(f.Solved, string(task.ID))
	}
	w.by[[2]string{task.Difficulty, policy}]++
}

// playFloors lets each policy that needs no plan play a task once.
func (v *validator) playFloors(ctx context.Context, task *assay.Task) {
	v.won.begin(task)
	for _, p := range floor.Policies(v.proof.World) {
		if p.Copies {
			continue
		}
		key := fmt.Sprintf("%s %s %q %s", p.Name, task.ID, task.Required, task.Inputs)
		if p.Name == sim.Expert { // the only one that reads the description
			key += task.Description
		}
		won, ok := v.won.played[key]
		if !ok {
			trial := v.trial(task, cellOf(p.Name, assay.Baseline, 1), assay.Listed, 0)
			a, _ := v.floors.Play(ctx, p, trial, task, 0)
			won = a.Level == assay.FullSuccess
			v.won.played[key] = won
		}
		if won {
			v.won.add(task, p.Name)
		}
	}
}

// floors returns the counts, in the order of the difficulties.
func (w *wins) floors() []Floor {
	for by, n := range w.by {
		i := slices.IndexFunc(w.all, func(f Floor) bool { return f.Difficulty == by[0] })
		if f := &w.all[i]; cmp.Or(cmp.Compare(n, f.Best), cmp.Compare(f.Policy, by[1])) > 0 {
			f.Policy, f.Best = by[1], n
		}
	}
	slices.SortStableFunc(w.all, func(a, b Floor) int {
		return slices.Index(Difficulties, a.Difficulty) - slices.Index(Difficulties, b.Difficulty)
	})
	return w.all
}
