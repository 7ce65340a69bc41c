package assay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FaultKind classifies what went wrong that is not the model's doing.
type FaultKind string

// The kinds of fault.
const (
	RateLimited   FaultKind = "rate_limited"   // 429: too fast for this lane
	Overloaded    FaultKind = "overloaded"     // 503, 529: the endpoint sheds load
	Server        FaultKind = "server"         // other 5xx
	Network       FaultKind = "network"        // dial, reset, DNS, TLS, redirect
	Timeout       FaultKind = "timeout"        // a deadline of ours ran out
	Auth          FaultKind = "auth"           // 401, 403: the key is not accepted
	Quota         FaultKind = "quota"          // the key's money or daily quota is gone
	NotFound      FaultKind = "not_found"      // 404: no such deployment or model
	BadRequest    FaultKind = "bad_request"    // other 4xx: the endpoint refuses what we sent
	ContentFilter FaultKind = "content_filter" // the endpoint's filter refused
	Malformed     FaultKind = "malformed"      // an answer that is not a chat completion
	Identity      FaultKind = "identity"       // another model than the ordered one answered
	Harness       FaultKind = "harness"        // our own: a panic, a full disk
	Interrupted   FaultKind = "interrupted"    // the run was stopped
)

// FaultKinds lists every kind, for tables and validation.
var FaultKinds = []FaultKind{
	RateLimited, Overloaded, Server, Network, Timeout, Auth, Quota, NotFound,
	BadRequest, ContentFilter, Malformed, Identity, Harness, Interrupted,
}

// Retryable reports whether the same request may work a little later, so that
// another request for the same turn is worth its cost.
func (k FaultKind) Retryable() bool {
	switch k {
	case RateLimited, Overloaded, Server, Network, Timeout, Malformed:
		return true
	}
	return false
}

// ClosesLane reports whether the fault says that this credential or deployment
// cannot serve anything for the rest of the run.
func (k FaultKind) ClosesLane() bool {
	switch k {
	case Auth, Quota, NotFound:
		return true
	}
	return false
}

// A Fault is an error that is never a score: the trial it hit stays owed.
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
