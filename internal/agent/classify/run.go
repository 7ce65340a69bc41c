package classify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
)

// closingFaults is the number of faults in a row that ends a run, if their kinds close a lane. The
// model does not respond any more, and further cases would only confirm that.
const closingFaults = 3

// A Summary counts the results of a run's cases and adds up their spend.
type Summary struct {
	Answered   int
	Unreadable int
	Faulted    int
	assay.Spend
}

// Run asks for opinions on cases, with up to workers requests at a time. It passes each answer to
// save as soon as it arrives. If progress is set, it is called after each case with the case's
// error, or nil if the answer was saved. Run makes one call of both at a time, in the order in which
// cases end, and reads cases one case ahead.
//
// A case that faults or has no readable opinion is counted, and the run goes on. Run ends early,
// with an error, if cases or save fail, if the model does not respond any more, or if ctx ends. It
// then cancels cases in flight and does not count them, except that it lets them finish if cases
// failed. Every answer that arrives is passed to save, so save must not depend on ctx. All
// goroutines have ended when Run returns.
func (c *Classifier) Run(ctx context.Context, cases iter.Seq2[Case, error], workers int,
	save func(Case, Answer) error, progress func(Summary, Case, error),
) (Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{
		ctx: ctx, cancel: cancel, save: save, progress: progress, settling: make(chan struct{}, 1),
	}
	var asking errgroup.Group
	asking.SetLimit(max(1, workers))
	var handing error
	for k, err := range cases {
		if handing = cmp.Or(err, context.Cause(ctx)); handing != nil {
			break
		}
		asking.Go(func() error {
			if ctx.Err() == nil {
				answer, err := c.Classify(ctx, k)
				r.settle(k, answer, err)
			}
			return nil
		})
	}
	handing = cmp.Or(handing, context.Cause(ctx)) // cases may have ended only because ctx did
	_ = asking.Wait()                             // run has the error
	return r.summary, cmp.Or(handing, r.err)
}

// run is the state of a run.
type run struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	save     func(Case, Answer) error
	progress func(Summary, Case, error)

	settling chan struct{} // has room for the one case that is being settled

	summary Summary
	closing int   // lane-closing faults in a row
	err     error // the first reason to end early
}

// settle saves and counts a case.
func (r *run) settle(k Case, answer Answer, err error) {
	r.settling <- struct{}{}
	defer func() { <-r.settling }()
	s := &r.summary
	s.Spend = s.Spend.Add(answer.Spend)
	switch {
	case err == nil:
		if failed := r.save(k, answer); failed != nil {
			r.end(failed)
			return
		}
		s.Answered++
		r.closing = 0
	case errors.Is(err, ErrUnreadable):
		s.Unreadable++
		r.closing = 0
	case r.ctx.Err() != nil:
		r.end(context.Cause(r.ctx))
		return
	default:
		s.Faulted++
		if assay.AsFault(err).Kind.ClosesLane() {
			r.closing++
		}
	}
	if r.progress != nil {
		r.progress(*s, k, err)
	}
	if r.closing >= closingFaults {
		r.end(fmt.Errorf("the model does not respond any more: %w", err))
	}
}

// end ends the run. Only the first reason is kept.
func (r *run) end(reason error) {
	if r.err == nil {
		r.err = reason
		r.cancel(reason)
	}
}
