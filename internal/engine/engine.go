// Package engine turns owed trials into settled ones. It is the only owner of
// episode goroutines: it decides which trials run now, repeats faulted ones,
// parks those that keep failing, and stops cleanly.
//
// It knows no store, no provider and no plan: it is given functions. An
// attempt counts only after its Save has returned.
package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/assay-eval/assay"
)

// MaxAttempts is how many attempts at one trial a run makes before it parks
// the trial. The next run takes it up again.
const MaxAttempts = 3

// A Model is one model's share of the work. Models do not wait for each other.
type Model struct {
	Name string
	// Owed yields the trials to run, in order. It is read as far as there is
	// room, never ahead.
	Owed iter.Seq[assay.Trial]
	// Width says how many episodes may be in flight now.
	Width func() int
	// Closed says why no trial of the model can run any more; nil if one can.
	Closed func() error
}

// Config is what a run is made of.
type Config struct {
	Models []Model
	// Attempt carries out one attempt. It returns soon after ctx ends, with a
	// fault of kind interrupted.
	Attempt func(ctx context.Context, trial assay.Trial) (assay.Attempt, *assay.Transcript)
	// Save makes an attempt durable before it returns. It is called from many
	// goroutines. An error stops the run.
	Save func(ctx context.Context, attempt *assay.Attempt, transcript *assay.Transcript) error
	// Event, if set, hears what happens, one call at a time. It must not block.
	Event func(Event)
}

// An Event is a change of a trial's state.
type Event struct {
	Kind  EventKind
	Model string
	// Attempt is set for Settled, Faulted and Parked.
	Attempt *assay.Attempt
	// Err is set for ModelClosed.
	Err error
}

// EventKind says what happened.
type EventKind int

// The events.
const (
	Started     EventKind = iota // an attempt begins
	Settled                      // an outcome is stored
	Faulted                      // a fault is stored; the trial stays in the queue
	Parked                       // a fault is stored; the run gives the trial up
	Dropped                      // an attempt was interrupted and is not stored
	ModelClosed                  // a model can serve nothing more; its trials stay owed
)

// A Summary counts what a run did.
type Summary struct {
	Settled, Faulted, Parked int
	// Stopped says that the run was told to stop before its trials were done.
	Stopped bool
	// Closed holds, by model, why its remaining trials were not run.
	Closed map[string]error
}

// ErrStopped is the cause with which attempts are cancelled by a hard stop.
var ErrStopped = errors.New("the run was stopped")

// Run works until no trial is left that can run. When stop is closed it
// starts nothing new, lets attempts in flight finish, and returns. When ctx
// ends it cancels them: what they had is dropped, and they stay owed.
//
// The error is that of a Save, a panic of an Attempt, or nil. All goroutines
// have ended when Run returns.
func Run(ctx context.Context, stop <-chan struct{}, cfg Config) (Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &loop{
		cfg: cfg, ctx: ctx, cancel: cancel, stop: stop,
		ended:   make(chan ended),
		summary: Summary{Closed: make(map[string]error)},
	}
	for _, m := range cfg.Models {
		next, done := iter.Pull(m.Owed)
		defer done()
		l.queues = append(l.queues, &queue{Model: m, next: next, attempts: make(map[assay.TrialID]int)})
	}
	l.run()
	return l.summary, l.err
}

// loop is the state of a run. It belongs to the goroutine of Run; attempts
// only send to ended.
type loop struct {
	cfg     Config
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stop    <-chan struct{}
	ended   chan ended
	queues  []*queue
	summary Summary
	err     error // the first
}

// queue is one model's trials.
type queue struct {
	Model
	next     func() (assay.Trial, bool)
	drained  bool          // next has no more
	again    []assay.Trial // faulted, at the end of the queue
	attempts map[assay.TrialID]int
	inFlight int
}

type ended struct {
	queue   *queue
	attempt assay.Attempt
	err     error
}

func (l *loop) run() {
	stop := l.stop
	for {
		inFlight := 0
		for _, q := range l.queues {
			l.fill(q)
			inFlight += q.inFlight
		}
		if inFlight == 0 {
			return
		}
		select {
		case e := <-l.ended:
			l.settle(e)
		case <-stop:
			l.summary.Stopped, stop = true, nil
		}
	}
}

// fill starts as many attempts as there is room for.
func (l *loop) fill(q *queue) {
	for q.inFlight < max(1, q.Width()) {
		if l.summary.Stopped || l.err != nil || l.ctx.Err() != nil {
			return
		}
		select {
		case <-l.stop:
			l.summary.Stopped = true
			return
		default:
		}
		if err := q.Closed(); err != nil {
			l.close(q, err)
			return
		}
		trial, ok := q.take()
		if !ok {
			return
		}
		q.inFlight++
		l.event(Event{Kind: Started, Model: q.Name})
		last := q.attempts[trial.ID]+1 >= MaxAttempts
		go func() { l.ended <- l.attempt(q, trial, last) }()
	}
}

func (l *loop) close(q *queue, err error) {
	if _, known := l.summary.Closed[q.Name]; known {
		return
	}
	if trial, ok := q.take(); ok { // only a model that still owes is worth a word
		q.again = append(q.again, trial)
		l.summary.Closed[q.Name] = err
		l.event(Event{Kind: ModelClosed, Model: q.Name, Err: err})
	}
}

// take returns the next trial: fresh ones first, so that a trial that faulted
// goes to the end of the queue.
func (q *queue) take() (assay.Trial, bool) {
	if !q.drained {
		if trial, ok := q.next(); ok {
			return trial, true
		}
		q.drained = true
	}
	if len(q.again) == 0 {
		return assay.Trial{}, false
	}
	trial := q.again[0]
	q.again = q.again[1:]
	return trial, true
}

// attempt runs in its own goroutine. Last says that a fault parks the trial.
func (l *loop) attempt(q *queue, trial assay.Trial, last bool) (e ended) {
	e.queue = q
	started := time.Now().UTC()
	defer func() {
		if v := recover(); v != nil {
			e.err = fmt.Errorf("trial %s: panic: %v\n%s", trial.ID, v, debug.Stack())
			e.attempt = assay.Attempt{Trial: trial, StartedAt: started, FinishedAt: time.Now().UTC(), FaultKind: assay.Harness}
		}
	}()
	attempt, transcript := l.cfg.Attempt(l.ctx, trial)
	e.attempt = attempt
	if attempt.FaultKind == assay.Interrupted {
		return e
	}
	e.attempt.Parked = last && !attempt.Settles()
	// What has finished is saved, also when the run is being stopped.
	e.err = l.cfg.Save(context.WithoutCancel(l.ctx), &e.attempt, transcript)
	return e
}

func (l *loop) settle(e ended) {
	q := e.queue
	q.inFlight--
	if e.err != nil {
		if l.err == nil {
			l.err = e.err
			l.cancel(ErrStopped)
		}
		l.event(Event{Kind: Dropped, Model: q.Name})
		return
	}
	a := &e.attempt
	switch {
	case a.FaultKind == assay.Interrupted:
		l.event(Event{Kind: Dropped, Model: q.Name})
	case a.Settles():
		delete(q.attempts, a.ID)
		l.summary.Settled++
		l.event(Event{Kind: Settled, Model: q.Name, Attempt: a})
	case a.Parked:
		delete(q.attempts, a.ID)
		l.summary.Faulted++
		l.summary.Parked++
		l.event(Event{Kind: Parked, Model: q.Name, Attempt: a})
	default:
		q.attempts[a.ID]++
		q.again = append(q.again, a.Trial)
		l.summary.Faulted++
		l.event(Event{Kind: Faulted, Model: q.Name, Attempt: a})
	}
}

func (l *loop) event(e Event) {
	if l.cfg.Event != nil {
		l.cfg.Event(e)
	}
}
