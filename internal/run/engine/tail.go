package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// grace is added to [Config.MaxSilence], so that a request reaches its own limit first.
const grace = time.Second

// late returns a channel that receives when the last attempts of the run have been without a
// reply for too long. It is nil if they have any time.
func (l *loop) late() <-chan time.Time {
	if l.cfg.MaxSilence <= 0 {
		return nil
	}
	var latest time.Time
	for _, q := range l.queues {
		if q.Latest != nil && q.Latest().After(latest) {
			latest = q.Latest()
		}
	}
	if latest.IsZero() {
		return nil // the models may still be starting
	}
	return time.After(max(grace, time.Until(latest.Add(l.cfg.MaxSilence+grace))))
}

// giveUp ends the last attempts of the run if no model has replied for too long and there is no
// hope. The attempts of a model that never replied go on, because its server may be starting.
func (l *loop) giveUp() {
	for _, q := range l.queues {
		if len(q.flying) > 0 && q.Hopeful() || time.Since(q.Latest()) < l.cfg.MaxSilence {
			return
		}
	}
	for _, q := range l.queues {
		if q.Latest().IsZero() {
			continue
		}
		for _, f := range q.flying {
			f.cancel(&assay.Fault{Kind: assay.Timeout, Detail: fmt.Sprintf(
				"no reply within %.0f s, when no other trial was left to run",
				l.cfg.MaxSilence.Seconds())})
		}
	}
}

// givenUp turns an interrupted attempt into a faulted one if giveUp has ended it.
func givenUp(ctx context.Context, a *assay.Attempt) bool {
	f, ok := context.Cause(ctx).(*assay.Fault)
	if ok {
		a.FaultKind, a.FaultDetail, a.Parked = f.Kind, f.Error(), true
	}
	return ok
}
