package assay

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// FaultKind classifies problems that are not the model's doing.
type FaultKind string

// The kinds of fault. [FaultTable] describes each of them.
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
	ToolServer    FaultKind = "tool_server"
	AgentEnded    FaultKind = "agent"
	Harness       FaultKind = "harness"
	Interrupted   FaultKind = "interrupted"
)

// A FaultRule is a row of [FaultTable]: when a kind of fault occurs, and its consequences.
type FaultRule struct {
	Kind FaultKind
	// When lists the causes, in words.
	When string
	// Retry is true if the same request may work a little later.
	Retry bool
	// ClosesLane is true if the key or deployment cannot serve anything for the rest of the run.
	ClosesLane bool
	// Then describes the consequences for the lane and the trial, in words.
	Then string
}

// FaultTable holds a rule for each kind. docs/files.md shows the same table to users.
var FaultTable = []FaultRule{
	{
		RateLimited, "429, or another status that means it", true, false,
		"the same turn again, after the wait that the endpoint announces, as often as necessary",
	},
	{
		Overloaded, "503, 529, 498, or an end of the reply for lack of resources", true, false,
		"like rate_limited",
	},
	{
		Server, "other 5xx, 409, 423, 425, 499, or a reply that the endpoint broke off", true, false,
		"the same turn again after a pause",
	},
	{
		Network, "connection, DNS, TLS, proxy, redirect, truncated body", true, false,
		"the same turn again after a pause",
	},
	{
		Timeout, "a deadline passed, 408, or an attempt ended by time while the machine was suspended",
		true, false,
		"the same turn again after a pause; without a reply within the request limit, three times, " +
			"and then the trial is parked",
	},
	{
		Auth, "401, 403", false, true,
		"the lane is probed, and closed if the refusal repeats; the same turn again on any lane",
	},
	{
		Quota, "no credit left, 402", false, true,
		"like auth",
	},
	{
		NotFound, "404: no such deployment or model", false, true,
		"like auth",
	},
	{
		BadRequest, "other 4xx: the endpoint rejects the request, or it is larger than a limit", false, false,
		"the attempt ends; the lane is closed after five in a row, or fifty if it has ever worked",
	},
	{ContentFilter, "the endpoint's content filter refused, or cut the reply off", false, false, "the attempt ends"},
	{
		Malformed, "the answer is not a reply, or an empty one that cost no tokens, or it ended for an " +
			"unknown reason", true, false,
		"the same turn again after a pause",
	},
	{
		Identity, "a model other than the one ordered answered", false, false,
		"like bad_request",
	},
	{
		ToolServer, "a server or script of the user's tools broke, died, hung, sent too much, " +
			"changed its tools, gave no verdict, or broke its protocol",
		false, false,
		"the attempt ends",
	},
	{
		AgentEnded, "a foreign agent ended before its first action", false, false,
		"the attempt ends; after five in a row, the agent is given up for the run",
	},
	{
		Harness, "a bug in Assay, or an attempt with which eight workers were lost", false, false,
		"the attempt ends; a panic ends the run after the attempts in flight, a failed write at once",
	},
	{
		Interrupted, "the run stopped, the trial was cancelled, a budget is spent, or no lane of a model is left " +
			"that an attempt with replies needs", false, false,
		"the trial stays pending; with replies, an attempt of a bare model goes on later; what another has cost is stored",
	},
}

// FaultKinds lists every kind, for tables and validation.
var FaultKinds = func() []FaultKind {
	kinds := make([]FaultKind, len(FaultTable))
	for i, r := range FaultTable {
		kinds[i] = r.Kind
	}
	return kinds
}()

// rule returns the row of the table. An unknown kind gets a rule without consequences.
func (k FaultKind) rule() FaultRule {
	for _, r := range FaultTable {
		if r.Kind == k {
			return r
		}
	}
	return FaultRule{Kind: k}
}

// Retryable reports whether the same request may work a little later, so that another request
// for the same turn is worth its cost.
func (k FaultKind) Retryable() bool { return k.rule().Retry }

// ClosesLane reports whether the fault means that this key or deployment cannot serve anything
// for the rest of the run.
func (k FaultKind) ClosesLane() bool { return k.rule().ClosesLane }

// A Fault is an error that is never scored. The trial that it hit stays pending.
type Fault struct {
	Kind FaultKind
	// Lane is where it happened. It is empty if no lane was involved.
	Lane string
	// Status is the HTTP status, or 0 if there was no response.
	Status int
	// RetryAfter is how long the endpoint asks us to wait, or 0 if it does not ask.
	RetryAfter time.Duration
	// Hopeless is true if another attempt in the same run would probably end the same way, after
	// a long time.
	Hopeless bool
	// TooLong is true if the request was longer than the model's context.
	TooLong bool
	// Form is true if the endpoint refused the form that the request wants for the reply.
	Form bool
	// Bucket is the limit that a rate_limited fault names, and Limit its size. They are empty
	// and 0 if the endpoint does not state them.
	Bucket Bucket
	Limit  int
	// Detail explains the fault to people. It never contains a secret.
	Detail string
	// Err is the underlying error, if any. It stays on the machine where it happened.
	Err error `json:"-"`
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

// AsFault returns the fault in err's chain, or nil if err is nil. An error without a fault becomes
// one: of kind timeout or interrupted if it comes from a context, and otherwise of kind harness,
// because an unclassified error is a bug in Assay, never a score.
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
