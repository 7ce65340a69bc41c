package classify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/assay-eval/assay"
)

// closingFaults is the number of faults in a row that ends a run, if their kinds close a lane. The
// model does not respond any more, and further cases would only confirm that.
const closingFaults = 3

// A Summary counts the results of a run's cases and adds up their usage and cost.
type Summary struct {
	Answered   int
	Unreadable int
	Faulted    int
	Usage      assay.Usage
	Cost       float64
}

// Run asks for opinions on cases, with up to workers requests at a time. It passes each answer to
// save as soon as it arrives. If progress is set, it is called after each case with the case's
// error, or nil if the answer was saved. Run calls both from its own goroutine, in the order in
// which cases end. Another goroutine reads cases, one case ahead.
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
	r := &run{ctx: ctx, cancel: cancel, save: save, progress: progress}
	work := make(chan Case)         // closed when there are no more cases
	over := make(chan finishedCase) // closed when all workers have ended
	var handing error
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(work)
		handing = handOut(ctx, cases, work)
	})
	for range max(1, workers) {
		wg.Go(func() { c.work(ctx, work, over) })
	}
	go func() {
		wg.Wait()
		close(over)
	}()
	for e := range over {
		r.settle(e)
	}
	if handing != nil {
		return r.summary, handing
	}
	return r.summary, r.err
}

// handOut passes the cases to free workers until all are handed out or ctx ends.
func handOut(ctx context.Context, cases iter.Seq2[Case, error], work chan<- Case) error {
	for k, err := range cases {
		if err != nil {
			return err
		}
		select {
		case work <- k:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return context.Cause(ctx) // cases may have ended only because ctx did
}

// work asks for opinions until there are no cases left.
func (c *Classifier) work(ctx context.Context, cases <-chan Case, over chan<- finishedCase) {
	for k := range cases {
		answer, err := c.Classify(ctx, k)
		over <- finishedCase{k, answer, err}
	}
}

// finishedCase is a finished case.
type finishedCase struct {
	Case
	answer Answer
	err    error
}

// run is the state of a run. It belongs to the goroutine of Run.
type run struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	save     func(Case, Answer) error
	progress func(Summary, Case, error)
	summary  Summary
	closing  int   // lane-closing faults in a row
	err      error // the first reason to end early
}

// settle saves and counts a case.
func (r *run) settle(e finishedCase) {
	s := &r.summary
	s.Usage, s.Cost = s.Usage.Add(e.answer.Usage), s.Cost+e.answer.Cost
	switch {
	case e.err == nil:
		if err := r.save(e.Case, e.answer); err != nil {
			r.end(err)
			return
		}
		s.Answered++
		r.closing = 0
	case errors.Is(e.err, ErrUnreadable):
		s.Unreadable++
		r.closing = 0
	case r.ctx.Err() != nil:
		r.end(context.Cause(r.ctx))
		return
	default:
		s.Faulted++
		if assay.AsFault(e.err).Kind.ClosesLane() {
			r.closing++
		}
	}
	if r.progress != nil {
		r.progress(*s, e.Case, e.err)
	}
	if r.closing >= closingFaults {
		r.end(fmt.Errorf("the model does not respond any more: %w", e.err))
	}
}

// end ends the run. Only the first reason is kept.
func (r *run) end(reason error) {
	if r.err == nil {
		r.err = reason
		r.cancel(reason)
	}
}
