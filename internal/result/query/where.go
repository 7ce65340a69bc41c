package query

import (
	"context"
	"iter"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/store"
)

// CheckWhere returns an error if a condition names a value that its field has nowhere: in no trial
// that an experiment of the store plans, and in no attempt of the store or among others. Trials that
// can no longer be planned do not count.
func CheckWhere(
	ctx context.Context, db *store.DB, where export.Where, others ...iter.Seq2[assay.Attempt, error],
) error {
	if len(where.Conditions()) == 0 {
		return nil
	}
	experiments, err := db.Experiments(ctx)
	if err != nil {
		return err
	}
	trials := func(yield func(assay.Trial, error) bool) {
		for _, e := range slices.Backward(experiments) { // the latest is probably meant
			for t, err := range job.PlannedTrials(ctx, db, e) {
				if err != nil {
					break
				}
				if !yield(t, nil) {
					return
				}
			}
		}
	}
	attempts := func(yield func(assay.Attempt, error) bool) {
		for _, all := range append(others, db.Attempts(ctx, store.Filter{All: true})) {
			for a, err := range all {
				if !yield(a, err) {
					return
				}
			}
		}
	}
	return where.Check(trials, attempts)
}
