// Package check tries every lane of a job with the first two turns of a trial, and every agent with
// two whole attempts, before a run spends money on all of them.
//
// It finds out whether the key is accepted, which model answers, whether calls of tools arrive as
// calls, whether the state of a reply is accepted back, and which usage and limits the endpoint
// reports. Requests, limits and protocols are the same as in a run. The lanes of a simulated user
// are tried with one request without tools. It does not store or print.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
)

// DefaultTimeout is how long a lane may take.
const DefaultTimeout = time.Minute

const (
	turns = 2
	// replyTokens bounds a reply, in addition to the tokens that the model may think.
	replyTokens = 4096
)

// A Result describes one lane.
type Result struct {
	Model string `json:"model"`
	Lane  string `json:"lane"`
	// User is true if the model does not act: it speaks as the user of an environment, or judges.
	User bool `json:"user,omitempty"`
	// Fault is why the lane does not work. It is nil if the lane does.
	Fault *Fault `json:"fault,omitempty"`
	// Turns counts the replies.
	Turns  int    `json:"turns"`
	Served string `json:"served_model,omitempty"`
	// Calls describes the calls of tools in the first reply, and State the state that came with it.
	Calls Calls `json:"tool_calls"`
	State State `json:"state"`
	// Usage is the sum over all replies.
	Usage   assay.Usage  `json:"usage"`
	CostUSD float64      `json:"cost_usd"`
	Took    float64      `json:"took_s"`
	Limits  lane.Limits  `json:"limits_told"`
	Changes []string     `json:"changes"`
	Notes   []string     `json:"notes"`
	lane    *lane.Config // as the providers file describes it
}

// A Fault is a fault of a lane, as it is printed.
type Fault struct {
	Kind   assay.FaultKind `json:"kind"`
	Status int             `json:"status,omitempty"`
	Detail string          `json:"detail"`
}

// Calls is the form in which calls of tools arrive.
type Calls string

// The ways in which calls arrive.
const (
	Unknown  Calls = ""
	Parsed   Calls = "parsed"
	Invalid  Calls = "invalid"   // a call without a name, or whose arguments are not a JSON object
	AsText   Calls = "as text"   // in the text of the reply, although the request listed functions
	NotAsked Calls = "none made" // the model replied with text
)

// State is the fate of the state of a reply, such as signed thinking.
type State string

// The fates of a state.
const (
	NoState  State = ""
	Accepted State = "accepted"
	Refused  State = "refused"
	Untried  State = "untried" // no second request could be sent
)

// Run checks all lanes at the same time, each within its limits and a time limit, which is
// [DefaultTimeout] if it is 0. The results are in the order of the experiment's models and of their
// lanes.
func Run(
	ctx context.Context, j *job.Job, pools *job.Pools, timeout time.Duration,
) ([]Result, error) {
	c := newChecker(j, timeout)
	var wg sync.WaitGroup
	var results []*Result
	for _, model := range j.Experiment.Asked() {
		user := !slices.Contains(j.Experiment.Models, model)
		talk := c.hello
		if !user {
			trial, task, err := c.first(ctx, model)
			if err != nil {
				return nil, err
			}
			talk = func(ctx context.Context, p *probe) *assay.Attempt {
				attempt, _ := c.runner.Run(ctx, p, &trial, &task)
				return attempt
			}
		}
		for _, config := range pools.Configs[model] {
			r := &Result{Model: model, Lane: config.Name, User: user, lane: &config}
			results = append(results, r)
			wg.Go(func() { c.check(ctx, r, talk) })
		}
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	all := make([]Result, len(results))
	for i, r := range results {
		all[i] = *r
	}
	return all, nil
}

// A checker checks the lanes of a job.
type checker struct {
	*job.Job
	runner  *episode.Runner
	timeout time.Duration // of a lane or an agent
}

func newChecker(j *job.Job, timeout time.Duration) *checker {
	return &checker{
		Job: j, runner: episode.NewRunner(j.Library.Catalog(), 0),
		timeout: cmp.Or(max(0, timeout), DefaultTimeout),
	}
}

// first returns the first trial of a model and its task.
func (c *checker) first(ctx context.Context, model string) (assay.Trial, assay.Task, error) {
	for trial := range c.Plan.Some(model, func(place int) bool { return place == 0 }) {
		task, err := c.Library.TaskOf(ctx, &trial)
		most := replyTokens
		if n := trial.Sampling.Thinking; n != nil {
			most += *n
		}
		if n := trial.Sampling.MaxTokens; n == nil || *n > most {
			trial.Sampling.MaxTokens = &most
		}
		return trial, task, err
	}
	return assay.Trial{}, assay.Task{}, fmt.Errorf("no trial of model %s is planned", model)
}

// hello sends one message without tools.
func (c *checker) hello(ctx context.Context, p *probe) *assay.Attempt {
	most := replyTokens
	resp, _ := p.Chat(ctx, &assay.Request{ // the probe keeps the error
		Model: p.model, User: true, Sampling: assay.Sampling{MaxTokens: &most},
		Messages: []assay.Message{{Role: assay.User, Content: "Say hello."}},
	})
	attempt := &assay.Attempt{}
	attempt.Add(resp)
	return attempt
}

// check sends the requests of a conversation on one lane.
func (c *checker) check(
	ctx context.Context, r *Result, talk func(context.Context, *probe) *assay.Attempt,
) {
	expired := fmt.Errorf("no reply within %v", c.timeout)
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, expired)
	defer cancel()
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	p := &probe{model: r.Model}
	p.pool = lane.NewPool(r.Model, []lane.Config{*r.lane}, lane.Options{
		Request: c.timeout,
		Observe: func(x lane.Exchange) {
			if x.Fault == nil || x.Fault.Kind == assay.Interrupted {
				return
			}
			p.fault = x.Fault
			if !mayPass(x.Fault) {
				stop() // so that the pool does not try again
			}
		},
	})
	started := time.Now()
	attempt := talk(ctx, p)
	r.Took = time.Since(started).Seconds()
	r.Turns, r.CostUSD = len(p.replies), attempt.CostUSD
	r.Usage, r.Served = attempt.Usage(), attempt.ServedModel

	fault := p.ended
	switch {
	case fault != nil && fault.Kind == assay.Interrupted && p.fault != nil:
		fault = p.fault
	case fault != nil && context.Cause(ctx) == expired:
		fault = &assay.Fault{Kind: assay.Timeout, Detail: expired.Error()}
	case fault == nil && len(p.replies) == 0:
		fault = &assay.Fault{Kind: attempt.FaultKind, Detail: attempt.FaultDetail}
	}
	r.learn(p, fault)
	r.advise(c.Experiment.Protocol, fault, attempt)
	if lanes, _ := p.pool.Status(); lanes[0].Found != "" {
		r.Notes = append(r.Notes, lanes[0].Found)
	}
}

// mayPass reports whether a fault may have passed when the same request is sent again a little
// later.
func mayPass(f *assay.Fault) bool { return f.Kind.Retryable() && f.Kind != assay.Timeout }

// A probe lets the first turns of an episode pass and remembers the replies.
type probe struct {
	model   string
	pool    *lane.Pool
	replies []assay.Response
	fault   *assay.Fault // of the latest exchange that failed
	ended   *assay.Fault // of the turn that failed
}

var errEnough = errors.New("the check is complete")

func (p *probe) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if len(p.replies) == turns {
		return &assay.Response{}, &assay.Fault{Kind: assay.Interrupted, Err: errEnough}
	}
	p.fault = nil
	resp, err := p.pool.Chat(ctx, req)
	if p.ended = assay.AsFault(err); err == nil {
		p.replies = append(p.replies, *resp)
	}
	return resp, err
}

// learn fills in the findings from the replies.
func (r *Result) learn(p *probe, fault *assay.Fault) {
	if fault != nil {
		r.Fault = &Fault{fault.Kind, fault.Status, fault.Detail}
	}
	for _, reply := range p.replies {
		for _, q := range reply.Quotas {
			if n := r.Limits.Of(q.Bucket); n != nil && q.Limit > 0 {
				*n = q.Limit
			}
		}
	}
	if len(p.replies) == 0 || r.User {
		return
	}
	first := p.replies[0].Message
	r.Calls = callsOf(first)
	switch {
	case first.State == nil:
	case len(p.replies) > 1:
		r.State = Accepted
	case fault != nil && fault.Kind == assay.BadRequest:
		r.State = Refused
	default:
		r.State = Untried
	}
}

// callsOf describes the calls in a reply.
func callsOf(m assay.Message) Calls {
	switch {
	case slices.ContainsFunc(m.Calls, func(c assay.ToolCall) bool { return !isCall(c) }):
		return Invalid
	case len(m.Calls) > 0:
		return Parsed
	case callText.MatchString(m.Content):
		return AsText
	}
	return NotAsked
}
