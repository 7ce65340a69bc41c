package session

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/store"
)

// storeLearnedEvery is how often learned limits are stored.
const storeLearnedEvery = 30 * time.Second

// keepLearned stores learned limits regularly until ctx ends, so that a run that is killed does
// not lose them.
func (s *Session) keepLearned(ctx context.Context) {
	every(ctx, storeLearnedEvery, func() {
		if err := s.storeLearned(ctx); err != nil && ctx.Err() == nil {
			s.note("cannot store learned limits: " + err.Error())
		}
	})
}

// learned returns the limits that lanes have learned, in the order of the models. If all is
// set, it includes buckets without a learned limit, with the value 0.
func (s *Session) learned(all bool) []store.LaneLimit {
	var limits []store.LaneLimit
	now := time.Now().UTC()
	for _, model := range s.pools.Apart(s.Experiment.Models) {
		lanes, _ := s.pools.ByModel[model].Status()
		for _, l := range lanes {
			for _, b := range lane.Buckets {
				limit := store.LaneLimit{Lane: l.Name, Bucket: b, Value: *l.Learned.Of(b), At: now}
				if limit.Value > 0 || all {
					limits = append(limits, limit)
				}
			}
		}
	}
	return limits
}

// storeLearned stores the learned limits that have changed, including those that no longer hold.
func (s *Session) storeLearned(ctx context.Context) error {
	type key struct {
		lane   string
		bucket assay.Bucket
	}
	stored, err := s.db.Learned(ctx)
	if err != nil {
		return err
	}
	known := make(map[key]int)
	for _, l := range stored {
		known[key{l.Lane, l.Bucket}] = l.Value
	}
	var changed []store.LaneLimit
	for _, l := range s.learned(true) {
		if known[key{l.Lane, l.Bucket}] != l.Value {
			changed = append(changed, l)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	return s.db.Learn(ctx, s.id, changed)
}

// LimitText describes a limit in words, such as "3 requests at once".
func LimitText(b assay.Bucket, n int) string {
	unit := map[assay.Bucket]string{
		assay.Concurrency:       "requests at once",
		assay.RequestsPerSecond: "requests a second",
		assay.Requests:          "requests a minute",
		assay.RequestsPerDay:    "requests a day",
		assay.Tokens:            "tokens a minute",
		assay.InputTokens:       "input tokens a minute",
		assay.OutputTokens:      "output tokens a minute",
		assay.Burst:             "requests in a burst",
	}[b]
	return fmt.Sprintf("%d %s", n, unit)
}
