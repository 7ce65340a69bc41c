package assay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FaultKind classifies what went wrong that is not the model's doing.
type FaultKind string

// The kinds of fault; [FaultTable] says more of each.
const (
	RateLimited   FaultKind = "rate_limited"
	Overloaded    FaultKind = "overloaded"
	Server        FaultKind = "server"
	Network       FaultKind = "network"
	Timeout       FaultKind = "timeout"
	Auth          FaultKind = "auth"
	Quota         FaultKind = "quota"
	NotFound      FaultKind = "not_found"
	BadRequest    FaultKind = "bad_request"
	ContentFilter FaultKind = "content_filter"
	Malformed     FaultKind = "malformed"
	Identity      FaultKind = "identity"
	Harness       FaultKind = "harness"
	Interrupted   FaultKind = "interrupted"
)

// A FaultRule is a row of the table of faults: what a kind tells of, and what
// it leads to.
type FaultRule struct {
	Kind FaultKind
	When string
	// Retry says that the same request may work a little later.
	Retry bool
	// ClosesLane says that this credential or deployment cannot serve anything
	// for the rest of the run.
	ClosesLane bool
	// Does says the rest in words.
	Does string
}

// FaultTable holds a rule for each kind.
var FaultTable = []FaultRule{
	{RateLimited, "429, or another status that says so", true, false, "the lane waits as long as the endpoint asks, if that is not chance, and learns; the same turn again, on any lane"},
	{Overloaded, "503, 529", true, false, "backoff without a slot, the same turn again; with Retry-After as rate_limited"},
	{Server, "other 5xx, 409", true, false, "backoff without a slot, the same turn again"},
	{Network, "connection, DNS, TLS, redirect, a body cut off", true, false, "backoff without a slot, the same turn again"},
	{Timeout, "a deadline ran out, 408", true, false, "backoff without a slot, the same turn again"},
	{Auth, "401, 403", false, true, "the lane is closed for the run; the same turn on another lane"},
	{Quota, "no money left, 402, a wait of more than 15 minutes", false, true, "the lane is closed for the run; the same turn on another lane"},
	{NotFound, "404: no such deployment or model", false, true, "the lane is closed for the run; the same turn on another lane"},
	{BadRequest, "other 4xx: the endpoint refuses what was sent", false, false, "the attempt ends; five in a row close a lane that never worked, fifty one that did"},
	{ContentFilter, "the endpoint's filter refused", false, false, "the attempt ends"},
	{Malformed, "an answer that is no chat completion, or empty", true, false, "backoff without a slot, the same turn again"},
	{Identity, "another model than the ordered one answered", false, false, "the attempt ends; five in a row close a lane that never worked, fifty one that did"},
	{Harness, "our own mistake", false, false, "the attempt ends; a panic or a failed write ends the run"},
	{Interrupted, "the run was stopped, the trial cancelled, a budget spent", false, false, "nothing is stored, the trial stays pending"},
}

// FaultKinds lists every kind, for tables and validation.
var FaultKinds = func() []FaultKind {
	kinds := make([]FaultKind, len(FaultTable))
	for i, r := range FaultTable {
		kinds[i] = r.Kind
	}
	return kinds
}()

// rule is the table's row; an unknown kind leads to nothing.
func (k FaultKind) rule() FaultRule {
	for _, r := range FaultTable {
		if r.Kind == k {
			return r
		}
	}
	return FaultRule{Kind: k}
}

// Retryable reports whether the same request may work a little later, so that
// another request for the same turn is worth its cost.
func (k FaultKind) Retryable() bool { return k.rule().Retry }

// ClosesLane reports whether the fault says that this credential or deployment
// cannot serve anything for the rest of the run.
func (k FaultKind) ClosesLane() bool { return k.rule().ClosesLane }

// A Fault is an error that is never a score: the trial it hit stays pending.
type Fault struct {
	Kind FaultKind
	// Lane is where it happened, empty where no lane was involved.
	Lane string
	// Status is the HTTP status, 0 where there was none.
	Status int
	// RetryAfter is how long the endpoint asks to wait; 0 when it says nothing.
	RetryAfter time.Duration
	// Bucket is the limit that a rate_limited fault says was hit; empty if it
	// does not say. Limit is that limit as stated by the endpoint; 0 if not.
	Bucket Bucket
	Limit  int
	// Detail is for people. It holds no secret.
	Detail string
	// Err is the cause, if any.
	Err error
}

func (f *Fault) Error() string {
	s := string(f.Kind)
	if f.Lane != "" {
		s = f.Lane + ": " + s
	}
	if f.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

func (f *Fault) Unwrap() error { return f.Err }

// AsFault returns the fault in err's chain. An error without one is a fault of
// kind timeout or interrupted when a context ended, else of kind harness: an
// unclassified error is our own bug, never a score. A nil err gives nil.
func AsFault(err error) *Fault {
	if err == nil {
		return nil
	}
	var f *Fault
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{Kind: Timeout, Detail: err.Error(), Err: err}
	case errors.Is(err, context.Canceled):
		return &Fault{Kind: Interrupted, Detail: err.Error(), Err: err}
	}
	return &Fault{Kind: Harness, Detail: err.Error(), Err: err}
}
