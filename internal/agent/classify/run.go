package classify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/assay-eval/assay"
)

// closingFaults in a row, of kinds that close a lane, end a run: the model
// serves nothing more, and each further case would only say so again.
const closingFaults = 3

// A Summary counts what became of the cases of a run, and what all of them took.
type Summary struct {
	Answered   int
	Unreadable int
	Faulted    int
	Usage      assay.Usage
	Cost       float64
}

// Run asks for opinions on cases, at most workers of them at a time. Each answer
// is given to save as soon as it is there. Progress, if set, hears of each case
// with its error, nil for one that was saved. Both are called by the goroutine of
// Run, in the order in which cases end; cases is read by another one, a case
// ahead of what is asked.
//
// A case that faults or has no readable opinion is counted, and the run goes on.
// It ends early, with an error, after an error of cases or of save, when the
// model serves nothing more, and when ctx ends: cases in flight are then cut off
// and not counted, but for an error of cases, which lets them finish. Every
// answer that came is given to save, so save is not to depend on ctx. All
// goroutines have ended when Run returns.
func (c *Classifier) Run(ctx context.Context, cases iter.Seq2[Case, error], workers int,
	save func(Case, Answer) error, progress func(Summary, Case, error),
) (Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{ctx: ctx, cancel: cancel, save: save, progress: progress}
	work := make(chan Case)  // closed when no case is left to hand out
	over := make(chan ended) // closed when all workers have ended
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

// handOut gives the cases to whoever is free, until there are no more or ctx
// ends.
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

// work asks for opinions until no case is left.
func (c *Classifier) work(ctx context.Context, cases <-chan Case, over chan<- ended) {
	for k := range cases {
		answer, err := c.Classify(ctx, k)
		over <- ended{k, answer, err}
	}
}

// ended is a case that is over.
type ended struct {
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
	closing  int   // faults in a row that close a lane
	err      error // why the run ends early, the first reason
}

// settle saves and counts a case.
func (r *run) settle(e ended) {
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
		r.end(fmt.Errorf("the model serves nothing more: %w", e.err))
	}
}

// end ends the run for the first reason that it is given.
func (r *run) end(reason error) {
	if r.err == nil {
		r.err = reason
		r.cancel(reason)
	}
}
