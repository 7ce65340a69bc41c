package lane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// MaxRequests is how many requests one turn may take, the first included.
const MaxRequests = 5

// Options hold for all lanes of a pool.
type Options struct {
	// Request bounds one HTTP exchange; 0 means [DefaultRequest].
	Request time.Duration
	// Queue bounds how long a turn may be without a slot, over all its
	// requests; 0 means [DefaultQueue].
	Queue time.Duration
	// Observe, if set, hears of each request when it has ended. It must not
	// block.
	Observe func(Exchange)
}

// Defaults of [Options].
const (
	DefaultRequest = 150 * time.Second
	DefaultQueue   = time.Hour
)

// An Exchange is one request that has ended.
type Exchange struct {
	Model, Lane string
	Fault       *assay.Fault // nil for success
	Usage       assay.Usage
	Took        time.Duration
}

// A Pool is a model's provider: it serves each request from the lane that can
// start it soonest. It is safe for concurrent use.
type Pool struct {
	model   string
	options Options

	mu      sync.Mutex
	lanes   []*lane
	waiting []*waiter // first come, first served
	timer   *time.Timer
	mean    float64 // of the tokens of replies
	replies int
	// draining is set by Drain.
	draining bool
	booked   time.Time // up to when the lanes' ledgers are kept
}

var _ assay.Provider = (*Pool)(nil)

// waiter is one request in the queue.
type waiter struct {
	tokens int
	// granted gets one ticket, or is closed after err was set.
	granted chan ticket
	err     error
}

func (w *waiter) refuse(err error) {
	w.err = err
	close(w.granted)
}

// NewPool returns the pool of a model's lanes.
func NewPool(model string, lanes []Config, options Options) *Pool {
	if options.Request <= 0 {
		options.Request = DefaultRequest
	}
	if options.Queue <= 0 {
		options.Queue = DefaultQueue
	}
	p := &Pool{model: model, options: options}
	for _, c := range lanes {
		p.lanes = append(p.lanes, newLane(c))
	}
	return p
}

// Chat implements [assay.Provider]. It waits for a lane, sends the request,
// and repeats it after a fault that may pass: at most [MaxRequests] times, with
// exponential backoff and full jitter, without holding a slot, and never past
// the request's budget.
func (p *Pool) Chat(ctx context.Context, req assay.Request) (assay.Response, error) {
	var waits assay.Waits
	for {
		asked := time.Now()
		t, err := p.acquire(ctx, p.estimate(req), p.options.Queue-waits.Queued)
		waits.Queued += time.Since(asked)
		if err != nil {
			return assay.Response{Waits: waits}, err
		}
		resp, fault := p.send(ctx, t, req, &waits)
		resp.Waits = waits
		if fault == nil {
			return resp, nil
		}
		if !p.worthRepeating(ctx, req, fault, waits) {
			return resp, fault
		}
		if waits.Retried == nil {
			waits.Retried = make(map[assay.FaultKind]int)
		}
		waits.Retried[fault.Kind]++
		if fault.Kind.ClosesLane() || fault.Kind == assay.RateLimited {
			continue // the lane itself waits; another may be free
		}
		if err := backOff(ctx, &waits); err != nil {
			resp.Waits = waits
			return resp, err
		}
	}
}

func (p *Pool) worthRepeating(ctx context.Context, req assay.Request, fault *assay.Fault, waits assay.Waits) bool {
	switch {
	case ctx.Err() != nil, waits.Requests >= MaxRequests, req.Budget > 0 && waits.Working >= req.Budget:
		return false
	case fault.Kind.ClosesLane():
		return p.Closed() == nil
	}
	return fault.Kind.Retryable()
}

// send makes one exchange on a lane and gives its slot back.
func (p *Pool) send(ctx context.Context, t ticket, req assay.Request, waits *assay.Waits) (assay.Response, *assay.Fault) {
	limit, why := p.options.Request, "request limit"
	if left := req.Budget - waits.Working; req.Budget > 0 && left < limit {
		limit, why = left, "trial's working time"
	}
	resp, fault := exchange(ctx, t.lane, req, limit, why)
	now := time.Now()
	waits.Working += now.Sub(t.started)
	waits.Requests++
	p.release(now, t, resp.Usage, fault)
	if p.options.Observe != nil {
		p.options.Observe(Exchange{Model: p.model, Lane: t.lane.Name, Fault: fault, Usage: resp.Usage, Took: now.Sub(t.started)})
	}
	return resp, fault
}

// exchange sends one request within its limit and checks who answered.
func exchange(ctx context.Context, l *lane, req assay.Request, limit time.Duration, why string) (assay.Response, *assay.Fault) {
	expired := &assay.Fault{Kind: assay.Timeout, Lane: l.Name, Detail: fmt.Sprintf("no answer within the %s of %v", why, limit)}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, expired)
	defer cancel()
	resp, err := l.Provider.Chat(bounded, req)
	resp.Lane = l.Name
	resp.Cost = (float64(resp.Usage.InputTokens)*l.Price.Input + float64(resp.Usage.OutputTokens)*l.Price.Output) / 1e6
	fault := assay.AsFault(err)
	switch {
	case fault == nil && !l.knows(resp.ServedModel):
		return resp, l.wrongModel(resp.ServedModel)
	case fault == nil:
		return resp, nil
	case ctx.Err() != nil:
		return resp, &assay.Fault{Kind: assay.Interrupted, Lane: l.Name, Detail: "the run was stopped", Err: context.Cause(ctx)}
	case context.Cause(bounded) == error(expired):
		return resp, expired
	}
	named := *fault
	named.Lane = l.Name
	return resp, &named
}

func (l *lane) wrongModel(served string) *assay.Fault {
	said := fmt.Sprintf("%q answered", served)
	if served == "" {
		said = "the response names no model"
	}
	return &assay.Fault{
		Kind: assay.Identity, Lane: l.Name,
		Detail: fmt.Sprintf("%s, ordered was %q; hint: if this is the model you want, add %q to serves in the providers file", said, l.Orders, served),
	}
}

// backOff waits between two requests of a turn, without a slot.
func backOff(ctx context.Context, waits *assay.Waits) error {
	const base, most = 500 * time.Millisecond, 20 * time.Second
	d := rand.N(min(most, base<<waits.Requests))
	start := time.Now()
	timer := time.NewTimer(d)
	defer timer.Stop()
	defer func() { waits.Queued += time.Since(start) }()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &assay.Fault{Kind: assay.Interrupted, Detail: "stopped while backing off", Err: context.Cause(ctx)}
	}
}

// estimate guesses the tokens of a request: four bytes of conversation a
// token, and the mean of the model's replies.
func (p *Pool) estimate(req assay.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += len(m.Content)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for _, f := range req.Functions {
		n += len(f.Description) + len(f.Parameters)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	reply := 256.0
	if p.replies > 0 {
		reply = p.mean
	}
	return n/4 + int(reply)
}

// acquire waits for a slot, at most for the given time.
func (p *Pool) acquire(ctx context.Context, tokens int, most time.Duration) (ticket, error) {
	w := &waiter{tokens: tokens, granted: make(chan ticket, 1)}
	p.mu.Lock()
	now := time.Now()
	p.bookLocked(now)
	p.waiting = append(p.waiting, w)
	p.dispatchLocked(now)
	p.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case t, ok := <-w.granted:
		if !ok {
			return ticket{}, w.err
		}
		return t, nil
	case <-ctx.Done():
		p.abandon(w)
		return ticket{}, &assay.Fault{Kind: assay.Interrupted, Detail: "stopped while waiting for a lane", Err: context.Cause(ctx)}
	case <-timer.C:
		p.abandon(w)
		return ticket{}, &assay.Fault{Kind: assay.Timeout, Detail: fmt.Sprintf("waited %v for a lane of %s", most, p.model)}
	}
}

// abandon takes a waiter out of the queue; a ticket that it just got goes back.
func (p *Pool) abandon(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.bookLocked(now)
	if i := slices.Index(p.waiting, w); i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	select {
	case t, ok := <-w.granted:
		if ok {
			t.lane.giveBack(t)
		}
	default:
	}
	p.dispatchLocked(now)
}

func (p *Pool) release(now time.Time, t ticket, usage assay.Usage, fault *assay.Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bookLocked(now)
	t.lane.release(now, t, usage, fault)
	if fault == nil {
		p.replies++
		p.mean += (float64(usage.OutputTokens) - p.mean) / float64(min(p.replies, 100))
	}
	p.dispatchLocked(now)
}

// dispatchLocked grants slots to the head of the queue as long as a lane can
// start it now, and else sets the timer for the earliest time that is known.
// A lane that is full is looked at again when one of its requests ends.
func (p *Pool) dispatchLocked(now time.Time) {
	for len(p.waiting) > 0 {
		if err := p.closedLocked(); err != nil {
			p.refuseLocked(err)
			return
		}
		best, at := p.soonestLocked(now, p.waiting[0].tokens)
		if best == nil {
			return
		}
		if at.After(now) && p.draining {
			p.refuseLocked(&assay.Fault{Kind: assay.Interrupted, Detail: "the run was stopped while this turn waited for a limit or a pause"})
			return
		}
		if at.After(now) {
			p.wakeLocked(at.Sub(now))
			return
		}
		w := p.waiting[0]
		p.waiting = slices.Delete(p.waiting, 0, 1)
		w.granted <- best.take(now, w.tokens)
	}
}

func (p *Pool) refuseLocked(err error) {
	for _, w := range p.waiting {
		w.refuse(err)
	}
	p.waiting = nil
}

// Drain interrupts the turns that wait for a limit or a pause, now and from
// now on. Turns in flight go on, and so do those that only wait for a slot.
func (p *Pool) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.bookLocked(now)
	p.draining = true
	p.dispatchLocked(now)
}

// soonestLocked returns the open lane that can start a request first; among
// equals the one with the smallest share of its width in use.
func (p *Pool) soonestLocked(now time.Time, tokens int) (best *lane, at time.Time) {
	for _, l := range p.lanes {
		if l.closed != nil {
			continue
		}
		t, _, full := l.start(now, tokens)
		if full {
			continue
		}
		if best == nil || t.Before(at) || t.Equal(at) && l.inFlight*best.width() < best.inFlight*l.width() {
			best, at = l, t
		}
	}
	return best, at
}

func (p *Pool) wakeLocked(d time.Duration) {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.timer = time.AfterFunc(d, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		now := time.Now()
		p.bookLocked(now)
		p.dispatchLocked(now)
	})
}

// Width is how many requests the open lanes may have in flight together.
func (p *Pool) Width() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, l := range p.lanes {
		if l.closed == nil {
			n += l.Limits.Concurrency
		}
	}
	return n
}

// Closed returns why the pool can serve nothing any more: the faults that
// closed its lanes, nil as long as one is open.
func (p *Pool) Closed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closedLocked()
}

func (p *Pool) closedLocked() error {
	var faults []error
	for _, l := range p.lanes {
		if l.closed == nil {
			return nil
		}
		faults = append(faults, l.closed)
	}
	first := assay.AsFault(errors.Join(faults...))
	if first == nil {
		return &assay.Fault{Kind: assay.NotFound, Detail: "model " + p.model + " has no lane"}
	}
	f := *first
	if len(faults) > 1 {
		f.Detail += fmt.Sprintf(" (and %d other lanes closed)", len(faults)-1)
	}
	return &f
}

// A Status is one lane at one moment.
type Status struct {
	Name     string
	InFlight int
	Width    int
	// Waits is what a next request would wait for: concurrency, rpm, tpm, the
	// reason of a pause, or closed; empty when it could start now.
	Waits string
	// Until is when it could start, zero where that is not known.
	Until time.Time
}

// Status returns the state of all lanes and how many requests wait.
func (p *Pool) Status() (lanes []Status, waiting int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, l := range p.lanes {
		s := Status{Name: l.Name, InFlight: l.inFlight, Width: l.Limits.Concurrency}
		at, reason, full := l.start(now, 0)
		switch {
		case l.closed != nil:
			s.Waits = "closed: " + l.closed.Error()
		case full:
			s.Waits = reason
		case at.After(now):
			s.Waits, s.Until = reason, at
		}
		lanes = append(lanes, s)
	}
	return lanes, len(p.waiting)
}
