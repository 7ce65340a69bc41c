// Package engine runs pending trials until they are settled. It alone starts
// episode goroutines. It decides which trials run now, retries trials that
// faulted, parks those that keep failing, and stops cleanly.
//
// It does not know the store, the providers or the plan; its [Config] gives it
// functions instead. Config.Attempt carries out one attempt, wherever that is. An
// attempt counts only after its Save has returned.
package engine

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// cancelled is the Skipped reason of cancelled trials.
const cancelled = "cancelled"

// Run runs trials until no trial is left that can run. When stop is closed, it starts no attempts,
// waits for attempts in flight and returns. When ctx ends, it cancels attempts in flight. Their
// results are dropped and their trials stay pending; an attempt that has cost money is saved for
// the sake of its cost.
//
// Run returns the error of a failed Save or of a panic in an Attempt. A failed Save cancels attempts
// in flight, because they cannot be saved. After a panic they go on as after a stop. All its
// goroutines have ended when it returns.
func Run(ctx context.Context, stop <-chan struct{}, cfg Config) (Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &loop{
		cfg: cfg, ctx: ctx, cancel: cancel, stop: stop,
		ended:   make(chan ended),
		next:    make(chan func()),
		summary: Summary{Closed: make(map[string]error), Skipped: make(map[string]int)},
	}
	for _, m := range cfg.Models {
		next, done := iter.Pull(m.Pending)
		defer done()
		l.queues = append(l.queues, &trialQueue{
			Model: m, read: next, attempts: make(map[assay.TrialID]int),
			flying: make(map[assay.TrialID]*ongoing), removed: make(map[assay.TrialID]removal),
		})
	}
	l.run()
	for _, q := range l.queues {
		all, unbegun := q.cancelled()
		l.summary.Cancelled += all
		if unbegun > 0 {
			l.summary.Skipped[cancelled] += unbegun
		}
	}
	close(l.next)
	l.hands.Wait()
	return l.summary, l.err
}

// loop is the state of a run. Only the goroutine of Run accesses it; attempts
// just send to ended.
type loop struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    <-chan struct{}
	ended   chan ended
	next    chan func()    // attempts for idle hands
	hands   sync.WaitGroup // the goroutines of attempts
	queues  []*trialQueue
	cancels []func(*assay.Trial) bool // matches of cancel commands
	summary Summary
	err     error // the first error
}

// trialQueue holds one model's trials.
type trialQueue struct {
	Model
	read      func() (assay.Trial, bool)
	drained   bool         // read has returned its last trial
	again     []retry      // faulted, cancelled and requeued trials
	settled   int          // attempts that have settled their trial
	next      *assay.Trial // the next trial to start, or nil if not known yet
	exhausted bool         // Exhausted was called
	attempts  map[assay.TrialID]int
	flying    map[assay.TrialID]*ongoing
	// removed holds parked and cancelled trials, which a command can bring
	// back.
	removed map[assay.TrialID]removal
}

// retry is a trial to try again as soon as enough others have settled, which shows
// that the model's lanes work.
type retry struct {
	trial assay.Trial
	after int // number of settled attempts
}

type removal struct {
	trial  assay.Trial
	parked bool
	began  bool // it was interrupted in flight
	cut    bool // by a budget, or because a model cannot be asked any more, and not by a command
}

// cancelled returns how many trials were cancelled, and still are, and how many of them did not start.
func (q *trialQueue) cancelled() (all, unbegun int) {
	for _, r := range q.removed {
		switch {
		case r.parked || r.cut:
		case r.began:
			all++
		default:
			all++
			unbegun++
		}
	}
	return all, unbegun
}

// ongoing is an attempt in progress.
type ongoing struct {
	trial  *assay.Trial
	cancel context.CancelCauseFunc
	// cancelled and requeued are the commands that it has not ended for yet.
	cancelled, requeued bool
}

type ended struct {
	queue   *trialQueue
	trial   *assay.Trial
	attempt *assay.Attempt
	done    func() // gives the place back
	err     error
	unsaved bool // err is of Save
}

func (l *loop) run() {
	stop := l.stop
	for {
		idle, last := true, true
		for _, q := range l.queues {
			waits := l.fill(q)
			last = last && !waits
			idle = idle && !waits && len(q.flying) == 0
		}
		if idle {
			return
		}
		var late <-chan time.Time
		if last {
			late = l.late()
		}
		over := l.ctx.Done()
		if l.ctx.Err() != nil {
			over = nil // wait only for attempts to end
		}
		select {
		case e := <-l.ended:
			l.settle(e)
		case <-l.cfg.Wake:
		case <-late:
			l.giveUp()
		case c := <-l.cfg.Commands:
			c.Done <- l.obey(c)
		case <-stop:
			l.summary.Stopped, stop = true, nil
		case <-over:
		}
	}
}

// fill starts as many attempts as there is room for. It returns true if more
// trials wait for room, and not just for the end of an attempt.
func (l *loop) fill(q *trialQueue) (waits bool) {
	for {
		if l.summary.Stopped || l.err != nil || l.ctx.Err() != nil {
			return false
		}
		select {
		case <-l.stop:
			l.summary.Stopped = true
			return false
		default:
		}
		if !l.advance(q) {
			return false
		}
		if err := q.Closed(); err != nil {
			l.close(q, err)
			return false
		}
		if l.cfg.Waits != nil && l.cfg.Waits(q.next) {
			return false
		}
		if len(q.flying) >= q.Most() {
			return true
		}
		ctx, done, ok := q.Admit(l.ctx)
		if !ok {
			return true
		}
		l.start(ctx, q, done)
	}
}

// start starts an attempt at the queue's next trial.
func (l *loop) start(ctx context.Context, q *trialQueue, done func()) {
	trial := q.next
	q.next = nil
	ctx, cancel := context.WithCancelCause(ctx)
	q.flying[trial.ID] = &ongoing{trial: trial, cancel: cancel}
	l.event(Event{Kind: Started, Model: q.Name, Trial: trial})
	last := q.attempts[trial.ID]+1 >= MaxAttempts
	l.hand(func() {
		defer cancel(nil)
		e := ended{queue: q, trial: trial, done: done}
		l.attempt(ctx, &e, last)
		l.ended <- e
	})
}

// hand gives an attempt to a goroutine that has finished one, or to a new one. A new goroutine
// would grow its stack again.
func (l *loop) hand(attempt func()) {
	select {
	case l.next <- attempt:
	default:
		l.hands.Go(func() {
			for do := attempt; do != nil; do = <-l.next {
				do()
			}
		})
	}
}

// advance picks the next trial that should run. It returns false if no trial should.
func (l *loop) advance(q *trialQueue) bool {
	for {
		if q.next == nil {
			trial, ok := q.take()
			if !ok {
				if !q.exhausted && q.Exhausted != nil {
					q.Exhausted()
				}
				q.exhausted = true
				return false
			}
			q.next = &trial
		}
		why := l.skipReason(q.next)
		if why == "" {
			return true
		}
		if why == cancelled {
			q.removed[q.next.ID] = removal{trial: *q.next}
		} else {
			l.summary.Skipped[why]++
		}
		l.event(Event{Kind: Skipped, Model: q.Name, Trial: q.next, Reason: why})
		q.next = nil
	}
}

func (l *loop) skipReason(trial *assay.Trial) string {
	for _, match := range l.cancels {
		if match(trial) {
			return cancelled
		}
	}
	if l.cfg.Skip == nil {
		return ""
	}
	return l.cfg.Skip(trial)
}

func (l *loop) close(q *trialQueue, err error) {
	if _, known := l.summary.Closed[q.Name]; !known {
		l.summary.Closed[q.Name] = err
		l.event(Event{Kind: ModelClosed, Model: q.Name, Err: err})
	}
}

// take returns the next trial. A trial that faulted is tried again while others run,
// so that it does not hold up the end of the run.
func (q *trialQueue) take() (assay.Trial, bool) {
	ready := func(r retry) bool { return q.settled >= r.after }
	i := slices.IndexFunc(q.again, ready)
	if i < 0 && !q.drained {
		if trial, ok := q.read(); ok {
			return trial, true
		}
		q.drained = true
	}
	if len(q.again) == 0 {
		return assay.Trial{}, false
	}
	i = max(i, 0)
	trial := q.again[i].trial
	q.again = slices.Delete(q.again, i, i+1)
	return trial, true
}

// obey carries out a command and returns the number of trials that it affected.
func (l *loop) obey(c Command) int {
	if c.Cancel {
		return l.cancelTrials(c.Match)
	}
	return l.requeue(c.Match)
}

// cancelTrials interrupts matching trials in flight and returns their number.
// Matching trials that have not started will be skipped; see advance.
func (l *loop) cancelTrials(match func(*assay.Trial) bool) (n int) {
	l.cancels = append(l.cancels, match)
	for _, q := range l.queues {
		for _, f := range q.flying {
			if match(f.trial) {
				f.cancelled, f.requeued = true, false
				f.cancel(ErrCancelled)
				n++
			}
		}
	}
	return n
}

// requeue puts matching trials that were parked or cancelled back into their
// queues and returns their number.
func (l *loop) requeue(match func(*assay.Trial) bool) (n int) {
	for _, q := range l.queues {
		for id, r := range q.removed {
			if !match(&r.trial) {
				continue
			}
			delete(q.removed, id)
			q.again = append(q.again, retry{trial: r.trial})
			n++
			if r.parked {
				l.summary.Parked--
			}
			l.event(Event{Kind: Requeued, Model: q.Name, Trial: &r.trial, WasParked: r.parked})
		}
	}

	// Those that are still ending follow when they have ended.
	for _, q := range l.queues {
		for _, f := range q.flying {
			if f.cancelled && !f.requeued && match(f.trial) {
				f.requeued = true
				n++
			}
		}
	}

	// Trials that were cancelled but not reached yet are no longer skipped.
	for i, was := range l.cancels {
		l.cancels[i] = func(t *assay.Trial) bool { return was(t) && !match(t) }
	}
	return n
}

// attempt carries out an attempt in its own goroutine. If last is true, a fault
// parks the trial. Ten thousand attempts may wait for replies at once, so large
// values are passed by pointer to keep the stacks small.
func (l *loop) attempt(ctx context.Context, e *ended, last bool) {
	started := time.Now().UTC()
	defer func() {
		if v := recover(); v != nil {
			e.err = fmt.Errorf("trial %s: panic: %v\n%s", e.trial.ID, v, debug.Stack())
			e.attempt = &assay.Attempt{
				Trial: *e.trial, FaultKind: assay.Harness,
				StartedAt: started, FinishedAt: time.Now().UTC(),
			}
		}
	}()
	attempt, transcript := l.cfg.Attempt(ctx, e.trial)
	e.attempt = attempt
	interrupted := attempt.FaultKind == assay.Interrupted && !givenUp(ctx, attempt)
	if interrupted && !attempt.Paid() {
		return
	}
	attempt.Parked = (last || attempt.Parked) && !attempt.Settles() && !interrupted
	// A finished attempt is saved even if the run is being stopped.
	e.err = l.cfg.Save(context.WithoutCancel(ctx), attempt, transcript)
	e.unsaved = e.err != nil
}

func (l *loop) settle(e ended) {
	e.done()
	q := e.queue
	cause := context.Cause(l.ctx)
	flight := q.flying[e.trial.ID]
	delete(q.flying, e.trial.ID)
	if e.err != nil {
		if l.err == nil {
			l.err = e.err
		}
		if e.unsaved {
			l.cancel(ErrStopped)
		}
		l.event(Event{Kind: Dropped, Model: q.Name, Trial: e.trial, Err: e.err})
		return
	}
	a := e.attempt
	switch {
	case a.FaultKind == assay.Interrupted:
		l.event(Event{Kind: Dropped, Model: q.Name, Trial: e.trial})
		switch {
		case cause != nil:
		case flight.requeued:
			q.again = append(q.again, retry{trial: *e.trial})
			l.event(Event{Kind: Requeued, Model: q.Name, Trial: e.trial})
		default:
			q.removed[e.trial.ID] = removal{trial: *e.trial, began: true, cut: !flight.cancelled}
		}
	case a.Settles():
		delete(q.attempts, a.ID)
		q.settled++
		l.summary.Settled++
		l.event(Event{Kind: Settled, Model: q.Name, Attempt: a})
	case a.Parked:
		delete(q.attempts, a.ID)
		q.removed[a.ID] = removal{trial: a.Trial, parked: true}
		l.summary.Faulted++
		l.summary.Parked++
		l.event(Event{Kind: Parked, Model: q.Name, Attempt: a})
	default:
		q.attempts[a.ID]++
		q.again = append(q.again, retry{a.Trial, q.settled + 2*len(q.flying) + 1})
		l.summary.Faulted++
		l.event(Event{Kind: Faulted, Model: q.Name, Attempt: a})
	}
}

func (l *loop) event(e Event) {
	if l.cfg.Event != nil {
		l.cfg.Event(e)
	}
}
