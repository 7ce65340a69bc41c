package audit

import (
	"context"
	"errors"
	"strings"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/store"
)

// A Loss counts the trials of an experiment that would be pending again after a deletion.
type Loss struct {
	Experiment string `json:"experiment"`
	Trials     int    `json:"trials"`
	// Unknown is the reason why the trials cannot be counted.
	Unknown string `json:"unknown,omitempty"`
}

// Losses returns the experiments that lose outcomes in a deletion, without the experiment that the
// deletion names. An experiment can lose outcomes although it never tried the trials: a run skips
// the trials that another experiment has settled.
func Losses(
	ctx context.Context, db *store.DB, c store.Choice,
) ([]Loss, error) {
	all := []Loss{}
	lost, err := db.Losing(ctx, c)
	if err != nil || lost.Len() == 0 {
		return all, err
	}
	experiments, err := db.Experiments(ctx)
	if err != nil {
		return all, err
	}
	for _, e := range experiments {
		if e.Name == c.Experiment {
			continue
		}
		l := Loss{Experiment: e.Name}
		failed := countLost(ctx, db, e, lost, &l.Trials)
		if ctx.Err() != nil {
			return all, context.Cause(ctx)
		}
		if failed != nil {
			l.Unknown, _, _ = strings.Cut(failed.Error(), "\n")
		}
		if l.Trials > 0 || failed != nil {
			all = append(all, l)
		}
	}
	return all, nil
}

func countLost(
	ctx context.Context, db *store.DB, e store.Experiment, lost store.Set, trials *int,
) error {
	if e.Lost() {
		return errors.New("the text of the experiment is lost")
	}
	for t, err := range job.PlannedTrials(ctx, db, e) {
		if err != nil {
			return err
		}
		if lost.Has(t.ID) {
			*trials++
		}
	}
	return nil
}
