package store

import (
	"context"
	"iter"

	"github.com/assay-eval/assay"
)

// An Outcome is the verdict on a trial without its details.
type Outcome struct {
	Trial    assay.TrialID
	Level    assay.Level
	Callless bool // see [assay.Outcome.Callless]
}

// Outcomes streams the latest verdict on each settled trial in the order in which the trials
// were settled, as of the moment the loop begins. A million trials take as long as in
// [DB.Verdicts], because each is proved. An error comes with a zero outcome and ends the sequence.
func (db *DB) Outcomes(ctx context.Context) iter.Seq2[Outcome, error] {
	return stream(func(yield func(Outcome, error) bool) error {
		return db.walk(ctx, walk{}, func(r row) (bool, error) {
			a := &r.attempt
			return !a.Settles() || yield(Outcome{a.ID, a.Level, a.Callless()}, nil), nil
		})
	})
}
