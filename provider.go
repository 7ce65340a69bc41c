package assay

import (
	"context"
	"time"
)

// A Provider answers conversations. Implementations are safe for concurrent
// use.
type Provider interface {
	// Chat returns the model's next message. It has two outcomes:
	//
	//  1. a Response with a message from the assistant, and nil;
	//  2. an error that is a *Fault (see [AsFault]) and a Response of which
	//     only ServedModel, Usage, Waits and Quotas may be set.
	//
	// Chat returns soon after ctx ends, with a Fault that says why. It does
	// not keep req and does not change it.
	Chat(ctx context.Context, req Request) (Response, error)
}

// A Request asks for one turn.
type Request struct {
	// Model is the name that results are filed under; an adapter maps it to
	// what its endpoint calls it.
	Model     string
	Messages  []Message
	Functions []Function
	Sampling  Sampling
	// Lane is where the conversation's last turn was served, empty at its
	// start: going on there may find its prompt cached.
	Lane string
	// Budget is the working time that the turn may take, over all its
	// requests; time in a queue does not count. Zero means no limit.
	Budget time.Duration
}

// Sampling holds the settings of generation that an experiment chose. A nil
// field is not sent, and the endpoint's own default holds.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty" yaml:"temperature"`
	TopP        *float64 `json:"top_p,omitempty" yaml:"top_p"`
	MaxTokens   *int     `json:"max_tokens,omitempty" yaml:"max_tokens"`
}

// A Response is one turn of a model.
type Response struct {
	Message Message
	// ServedModel is the model that the endpoint says has answered.
	ServedModel string
	// Lane names the lane that served the turn: provider/key/deployment.
	Lane  string
	Usage Usage
	// Cost is in dollars, by the prices that the user stated; 0 without.
	Cost  float64
	Waits Waits
	// Quotas is what the endpoint said about its limits.
	Quotas []QuotaState
}

// Bucket names what a limit of an endpoint counts.
type Bucket string

// The buckets of a lane. What counts requests or tokens and is not of a day
// holds over a minute.
const (
	Concurrency    Bucket = "concurrency" // requests in flight
	RequestsPerDay Bucket = "rpd"
	Requests       Bucket = "rpm"
	Tokens         Bucket = "tpm"  // of prompts and replies together
	InputTokens    Bucket = "itpm" // of prompts
	OutputTokens   Bucket = "otpm" // of replies
)

// A QuotaState is what a response tells about one of the endpoint's limits.
type QuotaState struct {
	Bucket Bucket
	// Limit is the whole of it, and Remaining what was left of it when the
	// endpoint answered; -1 where it does not say.
	Limit, Remaining int
	// Reset is the time until all of it is there again; 0 if not said.
	Reset time.Duration
}

// Waits tells where the time of a turn went and what it took.
type Waits struct {
	// Queued is time without a slot: waiting for a lane or backing off.
	Queued time.Duration
	// Working is time inside requests, failed ones included.
	Working time.Duration
	// Requests counts HTTP exchanges; Retried counts by fault kind those
	// that were repeated.
	Requests int
	Retried  map[FaultKind]int
}

// Add returns the sum of both.
func (w Waits) Add(v Waits) Waits {
	sum := Waits{
		Queued:   w.Queued + v.Queued,
		Working:  w.Working + v.Working,
		Requests: w.Requests + v.Requests,
	}
	for _, m := range []map[FaultKind]int{w.Retried, v.Retried} {
		for k, n := range m {
			if sum.Retried == nil {
				sum.Retried = make(map[FaultKind]int)
			}
			sum.Retried[k] += n
		}
	}
	return sum
}
