package lane

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	// Wake, if set, is called when [Pool.Admit] may succeed again after it
	// failed, and when the pool has closed. It must not block.
	Wake func()
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
	Cost        float64 // in dollars
	Took        time.Duration
}

// A Pool is a model's provider: it serves each request from the lane that can
// start it soonest. It is safe for concurrent use.
type Pool struct {
	model   string
	options Options

	mu    sync.Mutex
	q     *queue // guarded by mu
	timer *time.Timer
}

var _ assay.Provider = (*Pool)(nil)

// NewPool returns the pool of a model's lanes.
func NewPool(model string, lanes []Config, options Options) *Pool {
	if options.Request <= 0 {
		options.Request = DefaultRequest
	}
	if options.Queue <= 0 {
		options.Queue = DefaultQueue
	}
	return &Pool{model: model, options: options, q: newQueue(time.Now(), model, lanes)}
}

// Chat implements [assay.Provider]. It waits for a lane, sends the request,
// and repeats it after a fault that may pass: at most [MaxRequests] times, with
// exponential backoff and full jitter, without holding a slot, and never past
// the request's budget.
func (p *Pool) Chat(ctx context.Context, req assay.Request) (assay.Response, error) {
	var waits assay.Waits
	bytes := size(req)
	for {
		asked := time.Now()
		t, err := p.acquire(ctx, bytes, req.Lane, p.options.Queue-waits.Queued)
		waits.Queued += time.Since(asked)
		if err != nil {
			return assay.Response{Waits: waits}, err
		}
		resp, fault := p.send(ctx, t, bytes, req, &waits)
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
		if fault.Kind.ClosesLane() {
			continue // another lane takes over
		}
		if err := backOff(ctx, &waits); err != nil {
			resp.Waits = waits
			return resp, err
		}
	}
}

// size is the number of bytes of a request's conversation and functions.
func size(req assay.Request) int {
	n := 0
	for i := range req.Messages {
		m := &req.Messages[i]
		n += len(m.Content)
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for i := range req.Functions {
		n += len(req.Functions[i].Description) + len(req.Functions[i].Parameters)
	}
	return n
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
func (p *Pool) send(ctx context.Context, t ticket, bytes int, req assay.Request, waits *assay.Waits) (assay.Response, *assay.Fault) {
	limit, why := p.options.Request, "request limit"
	if left := req.Budget - waits.Working; req.Budget > 0 && left < limit {
		limit, why = left, "trial's working time"
	}
	resp, fault := exchange(ctx, t.lane, req, limit, why)
	now := time.Now()
	waits.Working += now.Sub(t.started)
	waits.Requests++
	p.change(func(now time.Time) { p.q.release(now, t, bytes, resp, fault) })
	if p.options.Observe != nil {
		p.options.Observe(Exchange{
			Model: p.model, Lane: t.lane.Name, Fault: fault, Usage: resp.Usage, Cost: resp.Cost, Took: now.Sub(t.started),
		})
	}
	return resp, fault
}

// exchange sends one request within its limit and checks who answered. Of the
// lane it reads only what never changes.
func exchange(ctx context.Context, l *lane, req assay.Request, limit time.Duration, why string) (assay.Response, *assay.Fault) {
	expired := &assay.Fault{Kind: assay.Timeout, Lane: l.Name, Detail: fmt.Sprintf("no answer within the %s of %v", why, limit)}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, expired)
	defer cancel()
	resp, err := l.Provider.Chat(bounded, req)
	resp.Lane = l.Name
	resp.Cost = l.Price.Of(resp.Usage)
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
	// Short at first, for most faults are single; a lane that is really down
	// pauses by itself, and its turns then wait for it.
	const base, most = 100 * time.Millisecond, 20 * time.Second
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

// change makes one change of the queue's state, and what follows from it.
func (p *Pool) change(f func(now time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.q.book(now)
	f(now)
	p.followLocked(now)
}

// followLocked starts who can start, sets the timer for who can later, and
// wakes who was turned away if there is room now.
func (p *Pool) followLocked(now time.Time) {
	next := p.q.dispatch(now)
	if p.q.turnedAway {
		room, at := p.q.room(now)
		if room || p.q.closed() != nil {
			p.q.turnedAway = false
			if p.options.Wake != nil {
				p.options.Wake()
			}
		} else if next.IsZero() {
			next = at
		}
	}
	if !next.IsZero() {
		p.wakeLocked(next.Sub(now))
	}
}

func (p *Pool) wakeLocked(d time.Duration) {
	if p.timer == nil {
		p.timer = time.AfterFunc(d, func() { p.change(func(time.Time) {}) })
		return
	}
	p.timer.Reset(d)
}

// An admission is the place that Admit reserved for a conversation.
type admission struct {
	pool *Pool
	once sync.Once
}

type admissionKey struct{}

// free gives the place back, once: when its first request has come, or when
// none will.
func (a *admission) free() { a.once.Do(func() { a.pool.q.reserved-- }) }

// Admit reserves a place for a new conversation if its first request could
// start now and nobody waits. The conversation has to ask with the context
// that Admit returns; done, which may be called at any time, says that it has
// ended. After a failure [Options.Wake] tells when to try again.
func (p *Pool) Admit(ctx context.Context) (inside context.Context, done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.q.book(now)
	if room, at := p.q.room(now); !room {
		if !at.IsZero() && p.q.peek() == nil {
			p.wakeLocked(at.Sub(now))
		}
		return ctx, nil, false
	}
	p.q.reserved++
	a := &admission{pool: p}
	return context.WithValue(ctx, admissionKey{}, a), func() { p.change(func(time.Time) { a.free() }) }, true
}

// acquire waits for a slot, at most for the given time.
func (p *Pool) acquire(ctx context.Context, bytes int, home string, most time.Duration) (ticket, error) {
	type answer struct {
		ticket ticket
		err    error
	}
	granted := make(chan answer, 1)
	w := &waiter{bytes: max(bytes, 1), lane: home, answer: func(t ticket, err error) { granted <- answer{t, err} }}
	p.change(func(now time.Time) {
		if a, ok := ctx.Value(admissionKey{}).(*admission); ok && a.pool == p {
			a.free()
		}
		p.q.enqueue(now, w)
	})
	select {
	case a := <-granted: // most often at once: no timer
		return a.ticket, a.err
	default:
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	var err error
	for err == nil {
		select {
		case a := <-granted:
			return a.ticket, a.err
		case <-ctx.Done():
			err = &assay.Fault{Kind: assay.Interrupted, Detail: "stopped while waiting for a lane", Err: context.Cause(ctx)}
		case <-timer.C:
			if p.paused() || len(granted) > 0 { // as long as the user likes; or just now
				timer.Reset(most)
				continue
			}
			err = &assay.Fault{Kind: assay.Timeout, Detail: fmt.Sprintf("waited %v for a lane of %s", most, p.model)}
		}
	}
	p.change(func(time.Time) {
		w.gone = true
		select {
		case a := <-granted:
			if a.err == nil {
				a.ticket.lane.giveBack(a.ticket)
			}
		default:
		}
	})
	return ticket{}, err
}

func (p *Pool) paused() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.paused()
}

// Drain interrupts the turns that wait for a limit or a pause, now and from
// now on. Turns in flight go on, and so do those that only wait for a slot.
func (p *Pool) Drain() { p.change(func(time.Time) { p.q.refusing = true }) }

// Exhausted says that no trial of the model waits to start any more: from now on
// slots that are free are not idle.
func (p *Pool) Exhausted() { p.change(func(time.Time) { p.q.demand = false }) }

// Width is how many requests the open lanes may have in flight together.
func (p *Pool) Width() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.width()
}

// Closed returns why the pool can serve nothing any more: the faults that
// closed its lanes, nil as long as one is open.
func (p *Pool) Closed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.closed()
}

// Ledgers returns the ledgers of all lanes.
func (p *Pool) Ledgers() []Ledger {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.ledgers()
}

// Busy is how long the model had a request in flight or waiting.
func (p *Pool) Busy() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.busy
}
