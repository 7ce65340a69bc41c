package engine

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/assay-eval/assay"
)

// MaxAttempts is the number of attempts that a run makes at a trial before it
// parks the trial. The next run tries again.
const MaxAttempts = 3

// A Model is one model's part of a run. Models do not wait for each other.
type Model struct {
	Name string
	// Pending yields the trials to run, in order. The engine reads at most one
	// trial more than it has started.
	Pending iter.Seq[assay.Trial]
	// Admit reserves a place for an episode whose first request could start now. It returns false
	// if it cannot. The episode runs with the returned context, and done is called when it has
	// ended.
	Admit func(ctx context.Context) (inside context.Context, done func(), ok bool)
	// Most returns the maximum number of episodes in flight, even if Admit
	// would allow more. Episodes take memory even while they wait for a disk. While it is 0, the
	// model waits for Wake or for the end of an episode.
	Most func() int
	// Closed returns the reason if no trial of the model can run any more, and
	// nil otherwise.
	Closed func() error
	// Latest, if set, returns when the model replied last, or the zero time if it never did.
	// Hopeful reports whether a request may succeed although the model is silent, because it
	// waits for a limit or tries another lane. Both serve [Config.MaxSilence].
	Latest  func() time.Time
	Hopeful func() bool
	// Exhausted, if set, is called when the model has no more trials to start.
	Exhausted func()
}

// Config configures a run.
type Config struct {
	Models []Model
	// Wake receives a value when Admit or Closed of some model may have a new
	// answer. Its buffer holds one value; a second one can be lost without
	// harm.
	Wake <-chan struct{}
	// Skip, if set, returns the reason why a trial should not run, or "" if it
	// should. It is called whenever the trial could start.
	Skip func(trial *assay.Trial) string
	// Waits, if set, reports whether a trial should wait until an attempt in flight has ended. It must
	// not if none is.
	Waits func(trial *assay.Trial) bool
	// Attempt carries out one attempt. When ctx ends, it returns soon, with a
	// fault of kind interrupted.
	Attempt func(ctx context.Context, trial *assay.Trial) (*assay.Attempt, *assay.Transcript)
	// Save makes an attempt durable before it returns. It is called by many
	// goroutines. An error stops the run.
	Save func(ctx context.Context, attempt *assay.Attempt, transcript *assay.Transcript) error
	// Event, if set, is called for every event, one call at a time. It must not
	// block.
	Event func(Event)
	// MaxSilence is how long the last attempts of a run may go on without a reply, which is the
	// time limit of a request. Then their trials are parked. Zero means no limit.
	MaxSilence time.Duration
	// Commands change the run from outside.
	Commands <-chan Command
}

// A Command removes trials from a run or brings them back.
type Command struct {
	// Cancel interrupts the matching trials in flight and keeps the others from
	// starting. If it is false, matching trials that were parked or cancelled
	// run again.
	Cancel bool
	Match  func(trial *assay.Trial) bool
	// Done receives the number of trials that a Cancel interrupted, or that are
	// back in the queue. It needs a buffer for one value.
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
	// Err is set for ModelClosed, and for Dropped if the error ends the run.
	Err error
}

// EventKind is the kind of an Event.
type EventKind int

// The kinds of events.
const (
	Started     EventKind = iota // an attempt starts
	Settled                      // an outcome is stored
	Faulted                      // a fault is stored; the trial stays in the queue
	Parked                       // a fault is stored; the run gives up on the trial
	Dropped                      // an attempt was interrupted and counts for nothing but its cost
	Skipped                      // a trial does not run; it stays pending
	Requeued                     // a parked or cancelled trial is back in the queue
	ModelClosed                  // a model cannot serve any more; its trials stay pending
)

// A Summary counts the results of a run.
type Summary struct {
	Settled, Faulted, Parked int
	// Cancelled counts the trials that a command cancelled, before they began or in flight.
	Cancelled int
	// Skipped counts the trials that did not run, by reason.
	Skipped map[string]int
	// Stopped is true if the run was stopped before all trials were done.
	Stopped bool
	// Closed maps each closed model to the reason why its remaining trials did
	// not run.
	Closed map[string]error
}

// Causes of cancelled attempts: ErrStopped after a hard stop of the run,
// ErrCancelled after a command.
var (
	ErrStopped   = errors.New("the run was stopped")
	ErrCancelled = errors.New("the trial was cancelled")
)
