// Package engine turns pending trials into settled ones. It is the only owner of
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
	// Pending yields the trials to run, in order. It is read one ahead of what is
	// started.
	Pending iter.Seq[assay.Trial]
	// Admit reserves a place for an episode whose first request could start
	// now, and says whether there was one. The episode runs with the context
	// that it returns, and done is called when it has ended.
	Admit func(ctx context.Context) (inside context.Context, done func(), ok bool)
	// Most says how many episodes may be in flight, whatever Admit says: they
	// take memory also while they wait for a disk.
	Most func() int
	// Closed says why no trial of the model can run any more; nil if one can.
	Closed func() error
	// Exhausted, if set, is called when no trial waits to start any more.
	Exhausted func()
}

// Config is what a run is made of.
type Config struct {
	Models []Model
	// Wake tells that Admit or Closed of some model may have a new answer. It
	// has room for one value, and losing a second one is harmless.
	Wake <-chan struct{}
	// Skip, if set, says why a trial is not to be run, "" for one that is. It
	// is asked when it is the trial's turn.
	Skip func(trial *assay.Trial) string
	// Attempt carries out one attempt. It returns soon after ctx ends, with a
	// fault of kind interrupted.
	Attempt func(ctx context.Context, trial *assay.Trial) (*assay.Attempt, *assay.Transcript)
	// Save makes an attempt durable before it returns. It is called from many
	// goroutines. An error stops the run.
	Save func(ctx context.Context, attempt *assay.Attempt, transcript *assay.Transcript) error
	// Event, if set, hears what happens, one call at a time. It must not block.
	Event func(Event)
	// Commands change the run from outside.
	Commands <-chan Command
}

// A Command takes trials out of a run or back into it.
type Command struct {
	// Cancel takes them out: those in flight are interrupted, and none of them
	// starts. Without it, trials that were parked or cancelled run again.
	Cancel bool
	Match  func(trial *assay.Trial) bool
	// Done gets the number of trials that were in flight, for a Cancel, or
	// that are back in the queue. It has room for it.
	Done chan<- int
}

// An Event is a change of a trial's state.
type Event struct {
	Kind  EventKind
	Model string
	// Attempt is set for Settled, Faulted and Parked.
	Attempt *assay.Attempt
	// Trial is set for Started, Dropped and Skipped.
	Trial *assay.Trial
	// Reason is set for Skipped.
	Reason string
	// WasParked is set for Requeued.
	WasParked bool
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
	Skipped                      // a trial is not run; it stays pending
	Requeued                     // a parked or cancelled trial is back in the queue
	ModelClosed                  // a model can serve nothing more; its trials stay pending
)

// A Summary counts what a run did.
type Summary struct {
	Settled, Faulted, Parked int
	// Skipped counts trials that were not run, by reason.
	Skipped map[string]int
	// Stopped says that the run was told to stop before its trials were done.
	Stopped bool
	// Closed holds, by model, why its remaining trials were not run.
	Closed map[string]error
}

// ErrStopped is the cause with which attempts are cancelled by a hard stop,
// and ErrCancelled that of a command.
var (
	ErrStopped   = errors.New("the run was stopped")
	ErrCancelled = errors.New("the trial was cancelled")
)

// cancelled is the reason for which cancelled trials are skipped.
const cancelled = "cancelled"

// Run works until no trial is left that can run. When stop is closed it
// starts nothing new, lets attempts in flight finish, and returns. When ctx
// ends it cancels them: what they had is dropped, and they stay pending.
//
// The error is that of a Save, a panic of an Attempt, or nil. All goroutines
// have ended when Run returns.
func Run(ctx context.Context, stop <-chan struct{}, cfg Config) (Summary, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &loop{
		cfg: cfg, ctx: ctx, cancel: cancel, stop: stop,
		ended:   make(chan ended),
		summary: Summary{Closed: make(map[string]error), Skipped: make(map[string]int)},
	}
	for _, m := range cfg.Models {
		next, done := iter.Pull(m.Pending)
		defer done()
		l.queues = append(l.queues, &queue{
			Model: m, read: next, attempts: make(map[assay.TrialID]int),
			flying: make(map[assay.TrialID]flight), removed: make(map[assay.TrialID]removal),
		})
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
	cancels []func(*assay.Trial) bool // commands that cancelled
	summary Summary
	err     error // the first
}

// queue is one model's trials.
type queue struct {
	Model
	read     func() (assay.Trial, bool)
	drained  bool          // read has no more
	again    []assay.Trial // faulted, at the end of the queue
	first    *assay.Trial  // whose turn it is, once it is known
	told     bool          // that it is exhausted
	attempts map[assay.TrialID]int
	flying   map[assay.TrialID]flight
	// removed are parked and cancelled trials, which a command can bring back.
	removed map[assay.TrialID]removal
}

type removal struct {
	trial  assay.Trial
	parked bool
}

// flight is an attempt that has not ended.
type flight struct {
	trial  *assay.Trial
	cancel context.CancelCauseFunc
}

type ended struct {
	queue   *queue
	trial   *assay.Trial
	attempt *assay.Attempt
	err     error
}

func (l *loop) run() {
	stop := l.stop
	for {
		idle := true
		for _, q := range l.queues {
			waits := l.fill(q)
			idle = idle && !waits && len(q.flying) == 0
		}
		if idle {
			return
		}
		over := l.ctx.Done()
		if l.ctx.Err() != nil {
			over = nil // only attempts that end are waited for
		}
		select {
		case e := <-l.ended:
			l.settle(e)
		case <-l.cfg.Wake:
		case c := <-l.cfg.Commands:
			c.Done <- l.obey(c)
		case <-stop:
			l.summary.Stopped, stop = true, nil
		case <-over:
		}
	}
}

// fill starts as many attempts as there is room for, and reports whether more
// wait for room.
func (l *loop) fill(q *queue) (waits bool) {
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
		if len(q.flying) >= max(1, q.Most()) {
			return true
		}
		ctx, done, ok := q.Admit(l.ctx)
		if !ok {
			return true
		}
		l.start(ctx, q, done)
	}
}

// start begins an attempt at the trial whose turn it is.
func (l *loop) start(ctx context.Context, q *queue, done func()) {
	trial := q.first
	q.first = nil
	ctx, cancel := context.WithCancelCause(ctx)
	q.flying[trial.ID] = flight{trial, cancel}
	l.event(Event{Kind: Started, Model: q.Name, Trial: trial})
	last := q.attempts[trial.ID]+1 >= MaxAttempts
	go func() {
		defer cancel(nil)
		e := ended{queue: q, trial: trial}
		l.attempt(ctx, &e, last)
		done()
		l.ended <- e
	}()
}

// advance finds out whose turn it is, and reports whether it is anybody's.
func (l *loop) advance(q *queue) bool {
	for q.first == nil {
		trial, ok := q.take()
		if !ok {
			if !q.told && q.Exhausted != nil {
				q.Exhausted()
			}
			q.told = true
			return false
		}
		if why := l.skips(&trial); why != "" {
			if why == cancelled {
				q.removed[trial.ID] = removal{trial: trial}
			}
			l.summary.Skipped[why]++
			l.event(Event{Kind: Skipped, Model: q.Name, Trial: &trial, Reason: why})
			continue
		}
		q.first = &trial
	}
	return true
}

func (l *loop) skips(trial *assay.Trial) string {
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

func (l *loop) close(q *queue, err error) {
	if _, known := l.summary.Closed[q.Name]; !known {
		l.summary.Closed[q.Name] = err
		l.event(Event{Kind: ModelClosed, Model: q.Name, Err: err})
	}
}

// take returns the next trial: fresh ones first, so that a trial that faulted
// goes to the end of the queue.
func (q *queue) take() (assay.Trial, bool) {
	if !q.drained {
		if trial, ok := q.read(); ok {
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

// obey carries a command out and returns how many trials it moved.
func (l *loop) obey(c Command) int {
	n := 0
	if c.Cancel {
		l.cancels = append(l.cancels, c.Match)
		for _, q := range l.queues {
			for _, f := range q.flying {
				if c.Match(f.trial) {
					f.cancel(ErrCancelled)
					n++
				}
			}
			if q.first != nil && c.Match(q.first) {
				q.again = append(q.again, *q.first) // to be skipped in its turn
				q.first = nil
			}
		}
		return n
	}
	for _, q := range l.queues {
		for id, r := range q.removed {
			if !c.Match(&r.trial) {
				continue
			}
			delete(q.removed, id)
			q.again = append(q.again, r.trial)
			n++
			if r.parked {
				l.summary.Parked--
			}
			l.event(Event{Kind: Requeued, Model: q.Name, Trial: &r.trial, WasParked: r.parked})
		}
	}
	l.uncancel(c.Match)
	return n
}

// uncancel takes trials out of what was cancelled, also those whose turn has
// not come yet.
func (l *loop) uncancel(match func(*assay.Trial) bool) {
	for i, was := range l.cancels {
		l.cancels[i] = func(t *assay.Trial) bool { return was(t) && !match(t) }
	}
}

// attempt runs in its own goroutine. Last says that a fault parks the trial.
// Ten thousand of them may wait for a reply at once, so large values are passed
// by pointer, here and below: they would be on every stack.
func (l *loop) attempt(ctx context.Context, e *ended, last bool) {
	started := time.Now().UTC()
	defer func() {
		if v := recover(); v != nil {
			e.err = fmt.Errorf("trial %s: panic: %v\n%s", e.trial.ID, v, debug.Stack())
			e.attempt = &assay.Attempt{Trial: *e.trial, StartedAt: started, FinishedAt: time.Now().UTC(), FaultKind: assay.Harness}
		}
	}()
	attempt, transcript := l.cfg.Attempt(ctx, e.trial)
	e.attempt = attempt
	if attempt.FaultKind == assay.Interrupted {
		return
	}
	attempt.Parked = last && !attempt.Settles()
	// What has finished is saved, also when the run is being stopped.
	e.err = l.cfg.Save(context.WithoutCancel(ctx), attempt, transcript)
}

func (l *loop) settle(e ended) {
	q := e.queue
	cause := context.Cause(l.ctx)
	delete(q.flying, e.trial.ID)
	if e.err != nil {
		if l.err == nil {
			l.err = e.err
			l.cancel(ErrStopped)
		}
		l.event(Event{Kind: Dropped, Model: q.Name, Trial: e.trial})
		return
	}
	a := e.attempt
	switch {
	case a.FaultKind == assay.Interrupted:
		if cause == nil {
			q.removed[e.trial.ID] = removal{trial: *e.trial}
		}
		l.event(Event{Kind: Dropped, Model: q.Name, Trial: e.trial})
	case a.Settles():
		delete(q.attempts, a.ID)
		l.summary.Settled++
		l.event(Event{Kind: Settled, Model: q.Name, Attempt: a})
	case a.Parked:
		delete(q.attempts, a.ID)
		q.removed[a.ID] = removal{a.Trial, true}
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
