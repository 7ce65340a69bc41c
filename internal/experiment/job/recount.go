package job

import (
	"context"
	"encoding/hex"
	"iter"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/store"
)

// A Recount is a tally of the attempts in a store, whichever experiment made them.
type Recount struct {
	*Tally
	trials []iter.Seq[assay.Trial] // of each model
	keep   func(*assay.Trial) bool
	cells  []assay.Cell
	// asked has the sampling of each cell's trials.
	asked []assay.Sampling
	tasks []assay.TaskID
	// known has a place for each planned trial, once there is an attempt. It may hold millions.
	known map[[16]byte]place
}

// A place is a planned trial.
type place struct {
	cell, task, at int32 // at counts the trials of the model
	kept           bool
	settled, full  bool
}

// A Planned is a planned trial of a [Recount].
type Planned struct {
	assay.Cell
	Task assay.TaskID
	// At is its place among the trials of its model.
	At int
	// Kept is true if the trial counts, Done if it has an outcome, and Full if that is a full success.
	Kept, Done, Full bool
}

// Rules returns a stopper with the experiment's stop rules and no budgets.
func (j *Job) Rules() *Stopper { return NewStopper(plan.Budgets{}, j.Experiment.Stop) }

// NewRecount returns a recount without attempts. If keep is not nil, the trials that it returns
// false for matter to stop rules only.
func (j *Job) NewRecount(rules *Stopper, keep func(*assay.Trial) bool) *Recount {
	var trials []iter.Seq[assay.Trial]
	for _, m := range j.Experiment.Models {
		trials = append(trials, j.Plan.Trials(m))
	}
	if keep != nil {
		return RecountOf(rules, keep, trials...)
	}
	return &Recount{Tally: NewTally(rules, j.planned), trials: trials, keep: everyTrial}
}

func everyTrial(*assay.Trial) bool { return true }

// planned yields the planned cells with their numbers of trials.
func (j *Job) planned(yield func(assay.Cell, int) bool) {
	for _, m := range j.Experiment.Models {
		for c, n := range j.Plan.Cells(m) {
			if !yield(c, n) {
				return
			}
		}
	}
}

// RecountOf returns a recount of trials without attempts, given those of each model.
func RecountOf(
	rules *Stopper, keep func(*assay.Trial) bool, trials ...iter.Seq[assay.Trial],
) *Recount {
	r := &Recount{trials: trials, keep: keep}
	r.index()
	r.Tally = NewTally(rules, func(yield func(assay.Cell, int) bool) {
		for _, p := range r.known {
			if p.kept && !yield(r.cells[p.cell], 1) {
				return
			}
		}
	})
	return r
}

// Recount counts the attempts in a store.
func (j *Job) Recount(
	ctx context.Context, db *store.DB, rules *Stopper, keep func(*assay.Trial) bool,
) (*Recount, error) {
	r := j.NewRecount(rules, keep)
	for a, err := range db.Verdicts(ctx, store.Filter{All: true}) {
		if err != nil {
			return nil, err
		}
		r.Add(&a)
	}
	return r, nil
}

// Reset forgets all attempts.
func (r *Recount) Reset() {
	r.Tally = r.empty()
	for key, p := range r.known {
		p.settled, p.full = false, false
		r.known[key] = p
	}
}

// index finds the places of all planned trials. Models are searched in parallel because a million
// trial IDs take a second to compute.
func (r *Recount) index() {
	r.known = make(map[[16]byte]place)
	cells, tasks := make(map[assay.Cell]int32), make(map[assay.TaskID]int32)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, trials := range r.trials {
		wg.Go(func() {
			var at int32
			for t := range trials {
				key, kept := trialKey(t.ID), r.keep(&t)
				mu.Lock()
				cell := number(cells, &r.cells, t.Cell)
				if int(cell) == len(r.asked) {
					r.asked = append(r.asked, t.Sampling)
				}
				r.known[key] = place{cell: cell, task: number(tasks, &r.tasks, t.Task), at: at, kept: kept}
				mu.Unlock()
				at++
			}
		})
	}
	wg.Wait()
}

// number returns the place of x among all, which it joins if it is new.
func number[T comparable](known map[T]int32, all *[]T, x T) int32 {
	n, ok := known[x]
	if !ok {
		n = int32(len(*all))
		known[x] = n
		*all = append(*all, x)
	}
	return n
}

// trialKey shortens a trial's ID to 16 bytes. IDs that are not hexadecimal keep their first 16 bytes.
func trialKey(id assay.TrialID) (k [16]byte) {
	if n, err := hex.Decode(k[:], []byte(id[:min(len(id), 32)])); err != nil || n < len(k) {
		copy(k[:], id)
	}
	return k
}

// Add counts an attempt, in the order in which attempts were saved. It returns false if its trial is
// not planned. The attempt may lack its trial.
func (r *Recount) Add(a *assay.Attempt) bool {
	if r.known == nil {
		r.index()
	}
	key := trialKey(a.ID)
	p, ok := r.known[key]
	if !ok {
		return false
	}
	counted, first := *a, !p.settled
	counted.Cell, counted.Sampling = r.cells[p.cell], r.asked[p.cell]
	if a.Settles() && !a.OnlyCosts() && first {
		p.settled, p.full = true, a.Level == assay.FullSuccess
		r.known[key] = p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case p.kept:
		r.countLocked(&counted, first)
	case p.settled && first:
		r.rules.Outcome(counted.Cell, a.Level, a.Callless())
	}
	return p.kept
}

// Stands reports whether a trial is planned, and whether it is to run.
func (r *Recount) Stands(id assay.TrialID) (planned, pending bool) {
	if r.known == nil {
		r.index()
	}
	p, planned := r.known[trialKey(id)]
	return planned, planned && p.kept && !p.settled
}

// Each calls visit with every planned trial, in no order, unless no attempt was counted.
func (r *Recount) Each(visit func(Planned)) {
	for _, p := range r.known {
		visit(Planned{
			Cell: r.cells[p.cell], Task: r.tasks[p.task], At: int(p.at),
			Kept: p.kept, Done: p.settled, Full: p.full,
		})
	}
}
