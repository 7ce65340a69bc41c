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

// A laneBucket is what a learned limit is about.
type laneBucket struct {
	lane   string
	bucket assay.Bucket
}

// storeLearned stores the learned limits that have changed, including those that no longer hold.
// Each has the requests since it was stored last as evidence.
func (s *Session) storeLearned(ctx context.Context) error {
	stored, err := s.db.Learned(ctx)
	if err != nil {
		return err
	}
	known := make(map[laneBucket]int)
	for _, l := range stored {
		known[laneBucket{l.Lane, l.Bucket}] = l.Value
	}
	var changed []store.LaneLimit
	for _, l := range s.learned(true) {
		key := laneBucket{l.Lane, l.Bucket}
		if known[key] == l.Value {
			continue
		}
		if seen := s.evidence(l.Lane); l.Value > 0 {
			l.Evidence = seen
			l.Accepted -= s.stored[key].Accepted
			l.Refused -= s.stored[key].Refused
			s.stored[key] = seen
		}
		changed = append(changed, l)
	}
	if len(changed) == 0 {
		return nil
	}
	return s.db.Learn(ctx, s.id, changed)
}

// evidence returns what the run has seen of a lane.
func (s *Session) evidence(lane string) store.Evidence {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[lane]
}

// weigh counts a request as evidence of its lane's limits. The caller holds s.mu.
func (s *Session) weigh(x lane.Exchange) {
	e := s.seen[x.Lane]
	switch {
	case x.Fault == nil:
		e.Accepted++
	case x.Refused():
		e.Refused++
		e.Words = x.Fault.Detail
	}
	s.seen[x.Lane] = e
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
