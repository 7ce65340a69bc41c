package reading

import (
	"context"
	"iter"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/selection"
	"github.com/assay-eval/assay/internal/store"
)

// A coverage counts the trials that were meant to be on a side, and those without an outcome.
type coverage struct {
	planned, pending int
	at               map[assay.TaskID]int // pending
}

func (c coverage) count(s *report.Side) { s.Planned, s.Pending = c.planned, c.pending }

// coverageOf counts the trials that satisfy the conditions. A trial may be named several times.
func coverageOf(
	trials iter.Seq2[assay.Trial, error], attempts iter.Seq2[assay.Attempt, error],
	where export.Where,
) (c coverage, err error) {
	pending := make(map[assay.TrialID]assay.TaskID)
	for t, err := range trials {
		if err != nil {
			return c, err
		}
		if where.HasTrial(&t) {
			pending[t.ID] = t.Task
		}
	}
	c.planned = len(pending)
	for a, err := range attempts {
		if err != nil {
			return c, err
		}
		if a.Settles() && where.Has(&a) {
			delete(pending, a.ID) // a trial of merged stores may have several outcomes
		}
	}
	c.pending, c.at = len(pending), make(map[assay.TaskID]int)
	for _, task := range pending {
		c.at[task]++
	}
	return c, nil
}

// coverageIn counts the trials that a store plans for a name. If an experiment cannot be planned
// again, they are unknown.
func coverageIn(
	ctx context.Context, db *store.DB, name string,
	attempts iter.Seq2[assay.Attempt, error], where export.Where,
) coverage {
	c, err := coverageOf(selection.Planned(ctx, db, name, job.PlannedTrials), attempts, where)
	if err != nil {
		return coverage{}
	}
	return c
}

// Tried yields the trial of each attempt. An exported file has no plan, so a trial is missing from
// it if all of its attempts ended in faults.
func Tried(attempts iter.Seq2[assay.Attempt, error]) iter.Seq2[assay.Trial, error] {
	return func(yield func(assay.Trial, error) bool) {
		for a, err := range attempts {
			if !yield(a.Trial, err) {
				return
			}
		}
	}
}
