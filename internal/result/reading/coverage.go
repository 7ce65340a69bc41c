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

// A side is the attempts of one side of a comparison that satisfy conditions. It remembers the
// trials that they settle, because each reading of a store proves its attempts.
type side struct {
	attempts iter.Seq2[assay.Attempt, error]
	where    export.Where
	done     map[assay.TrialID]bool
}

func newSide(attempts iter.Seq2[assay.Attempt, error], where export.Where) *side {
	return &side{attempts, where, make(map[assay.TrialID]bool)}
}

// all yields the attempts.
func (s *side) all() iter.Seq2[assay.Attempt, error] {
	return selection.Filter(s.attempts, func(a *assay.Attempt) bool {
		has := s.where.Has(a)
		if has && a.Settles() {
			s.done[a.ID] = true
		}
		return has
	})
}

// coverage counts the trials that satisfy the conditions, after all attempts were read. A trial may
// be named several times.
func (s *side) coverage(trials iter.Seq2[assay.Trial, error]) (c coverage, err error) {
	planned := make(map[assay.TrialID]bool)
	c.at = make(map[assay.TaskID]int)
	for t, err := range trials {
		if err != nil {
			return coverage{}, err
		}
		if planned[t.ID] || !s.where.HasTrial(&t) {
			continue
		}
		planned[t.ID] = true
		c.planned++
		if !s.done[t.ID] {
			c.pending++
			c.at[t.Task]++
		}
	}
	return c, nil
}

// coverageIn is coverage of the trials that a store plans for a name. If an experiment cannot be
// planned again, they are unknown.
func (s *side) coverageIn(ctx context.Context, db *store.DB, name string) coverage {
	c, _ := s.coverage(selection.Planned(ctx, db, name, job.PlannedTrials))
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
