package reading

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// A coverage counts the trials that were meant to be on a side, and the trials without an outcome.
type coverage struct {
	planned, pending int
	at               map[assay.TaskID]int // pending
}

func (c coverage) count(s *report.Side) { s.Planned, s.Pending = c.planned, c.pending }

// A side is the attempts of one side of a comparison, and the trials that were planned for it; both
// count if they satisfy conditions. It remembers the trials that the attempts settle, because each
// reading of a store proves its attempts.
type side struct {
	attempts iter.Seq2[assay.Attempt, error]
	trials   iter.Seq2[assay.Trial, error] // may name a trial several times
	where    export.Where
	done     map[assay.TrialID]bool
}

func newSide(attempts iter.Seq2[assay.Attempt, error], trials iter.Seq2[assay.Trial, error]) *side {
	return &side{attempts: attempts, trials: trials, done: make(map[assay.TrialID]bool)}
}

// triedSide returns the side of all trials that were tried. Interrupted attempts are no tries.
func triedSide(attempts iter.Seq2[assay.Attempt, error]) *side {
	tries := Filter(attempts, func(a *assay.Attempt) bool { return a.FaultKind != assay.Interrupted })
	return newSide(tries, tried(tries))
}

// sideIn returns the side that a name stands for in a store, with conditions.
func sideIn(
	ctx context.Context, db *store.DB, name string, where export.Where, plan Planner,
) (*side, error) {
	s, err := sideOf(ctx, db, name, plan)
	if err == nil {
		s.where = where
	}
	return s, err
}

// all yields the attempts.
func (s *side) all() iter.Seq2[assay.Attempt, error] {
	return Filter(s.attempts, func(a *assay.Attempt) bool {
		has := s.where.Has(a)
		if has && a.Settles() {
			s.done[a.ID] = true
		}
		return has
	})
}

// compare compares two sides.
func compare(nameA, nameB, cluster string, a, b *side) (*report.Comparison, error) {
	c, err := report.Compare(nameA, nameB, cluster, a.all(), b.all())
	switch {
	case errors.Is(err, report.ErrNothingInCommon):
		return nil, nothingInCommon(err, c, a, b)
	case err != nil:
		return nil, err
	case c.Shared == c.A.Trials && c.Shared == c.B.Trials:
		return nil, fmt.Errorf("%w: the %d trials of %s\nhint: `assay status` lists models, "+
			"experiments and runs; run --revision NAME files results under another name",
			ErrOneSide, c.Shared, c.A.Name)
	}
	return c, nil
}

// nothingInCommon adds the reason to the error that two sides have no trials to compare.
func nothingInCommon(err error, c *report.Comparison, a, b *side) error {
	for i, s := range []*side{a, b} {
		if []report.Side{c.A, c.B}[i].Trials > 0 {
			continue
		}
		if why, failed := s.where.Explain(s.attempts); failed == nil && why != "" {
			return fmt.Errorf("%w: %s", err, why)
		}
	}
	return fmt.Errorf("%w: %s has %d settled trials, %s has %d\nhint: %s",
		err, c.A.Name, c.A.Trials, c.B.Name, c.B.Trials, c.Apart())
}

// coverage counts the planned trials that satisfy the conditions, after all attempts were read.
func (s *side) coverage() (c coverage, err error) {
	planned := make(map[assay.TrialID]bool)
	c.at = make(map[assay.TaskID]int)
	for t, err := range s.trials {
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

// countKnown counts the coverage of a side. It is unknown if an experiment cannot be planned again.
func (s *side) countKnown(of *report.Side) {
	if c, err := s.coverage(); err == nil {
		c.count(of)
	}
}

// tried yields the trial of each attempt. An exported file has no plan, so a trial is missing from
// it if all of its attempts ended in faults.
func tried(attempts iter.Seq2[assay.Attempt, error]) iter.Seq2[assay.Trial, error] {
	return func(yield func(assay.Trial, error) bool) {
		for a, err := range attempts {
			if !yield(a.Trial, err) {
				return
			}
		}
	}
}
