package lane

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/assay-eval/assay"
)

// MaxRequests is the largest number of requests per turn, including the first. It does not count
// requests that were refused because the endpoint was busy.
const MaxRequests = 5

// maxHangs is how many requests of a turn may reach the request limit. A task that
// makes a model think forever does so each time.
const maxHangs = 3

// errHung is the error of a request that reached the request limit.
var errHung = errors.New("no reply")

// Options apply to all lanes of a pool.
type Options struct {
	// Request bounds one HTTP exchange; 0 means [DefaultRequest].
	Request time.Duration
	// Queue bounds the total time that a turn may wait for lanes; 0 means [DefaultQueue]. It does
	// not count while all lanes are paused, are down, refuse requests or have used up a limit per
	// day, nor a wait that an endpoint has announced to the turn.
	Queue time.Duration
	// Observe, if not nil, is called after each request. It must not block.
	Observe func(Exchange)
	// Sent, if not nil, is called before each request on a lane with limits for a span of time, with
	// what it is expected to use, and after it with the difference to what it did use. Both are as
	// of the time when it was sent. It is for [Config.Spent] of a later run.
	Sent func(lane string, used Spent)
	// Wake, if not nil, is called when [Pool.Admit] may succeed again after a
	// failure, and when the pool has closed. It must not block.
	Wake func()
}

// The defaults of [Options].
const (
	DefaultRequest = 150 * time.Second
	DefaultQueue   = time.Hour
)

// Exchange describes one finished request.
type Exchange struct {
	Model, Lane string
	Fault       *assay.Fault // nil for success
	assay.Spend
	// Lost is what a reply that could not be read may have cost. Budgets count it, too.
	Lost assay.Lost
	Took time.Duration
	// Closed is true if this request closed the lane.
	Closed bool
	// User is true if the request was made for a simulated user, and Judge if it asked for a verdict.
	User, Judge bool
}

// Pool is the provider of one model. It sends each request to the lane that can
// start it soonest. It is safe for concurrent use.
type Pool struct {
	model   string
	options Options

	mu    sync.Mutex
	q     *queue // guarded by mu
	timer *time.Timer

	rescues atomic.Int32
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
	return &Pool{
		model: model, options: options, q: newQueue(time.Now(), model, lanes),
	}
}

// Chat implements [assay.Provider]. It waits for a lane, sends the request, and
// retries it after a temporary fault, up to [MaxRequests] requests in all and
// within the request's budget. It backs off exponentially with full jitter, and
// holds no slot meanwhile. A request that is refused because the endpoint is busy
// waits for its turn on a lane again, as often as necessary.
func (p *Pool) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	t := &turn{
		pool: p, ctx: ctx, req: req, bytes: size(req), home: req.Lane, origin: origin(req),
		tell: progressOf(ctx), purse: purseOf(ctx),
	}
	defer t.end()
	for {
		r, err := t.acquire()
		if err != nil {
			return t.unsent(), err
		}
		resp, fault := p.send(r, &t.waits)
		if again, err := t.arrived(r, resp, fault); !again {
			return resp, err
		}
	}
}

// rescue counts the turns that hung on one lane and are tried once more on another.
func (p *Pool) rescue(is *bool, now bool) {
	switch {
	case now && !*is:
		p.rescues.Add(1)
	case *is && !now:
		p.rescues.Add(-1)
	}
	*is = now
}

// Hopeful reports whether a turn may succeed although the endpoint is silent,
// because it waits for a limit, or hung on one lane and is tried on another.
func (p *Pool) Hopeful() bool {
	_, waiting := p.Status()
	return waiting.Requests > 0 || p.rescues.Load() > 0
}

// lanes returns the number of open lanes.
func (p *Pool) lanes() (n int) {
	states, _ := p.Status()
	for _, s := range states {
		if s.Closed == nil {
			n++
		}
	}
	return n
}

// change changes the queue's state with f and then starts requests that can start.
func (p *Pool) change(f func(now time.Time)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.q.book(now)
	f(now)
	p.advanceLocked(now)
}

// advanceLocked starts waiting requests that can start, sets the timer for those
// that can start later, and calls Wake if a rejected conversation now has room.
func (p *Pool) advanceLocked(now time.Time) {
	next := p.q.dispatch(now)
	if p.q.turnedAway {
		room, at := p.q.room(now)
		if room || p.q.closed() != nil {
			p.q.turnedAway = false
			if p.options.Wake != nil {
				p.options.Wake()
			}
		} else {
			next = earliest(next, at)
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

// admission is the place that Admit reserved for a conversation.
type admission struct {
	pool  *Pool
	freed bool
}

type admissionKey struct{}

// free returns the place when the conversation sends its first request, or ends without one. Only
// the first call has an effect. The pool is locked.
func (a *admission) free(asks float64) {
	if !a.freed {
		a.freed = true
		a.pool.q.reserved--
		a.pool.q.asks.add(asks)
	}
}

// Admit reserves a place for a new conversation if its first request could start
// now and no request is waiting. The conversation must call Chat with the
// returned context, and call done when it ends. done may be called at any time.
// If ok is false, [Options.Wake] is called when it is worth calling Admit again.
func (p *Pool) Admit(ctx context.Context) (inside context.Context, done func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.q.book(now)
	if room, at := p.q.room(now); !room {
		if next := earliest(p.q.dispatch(now), at); !next.IsZero() {
			p.wakeLocked(next.Sub(now))
		}
		return ctx, nil, false
	}
	p.q.reserved++
	a := &admission{pool: p}
	done = func() { p.change(func(time.Time) { a.free(0) }) }
	return context.WithValue(ctx, admissionKey{}, a), done, true
}

// acquire waits for a slot, but not longer than limit, as the queue limit counts.
func (p *Pool) acquire(r *try, limit time.Duration) (heldSlot, error) {
	type answer struct {
		ticket heldSlot
		err    error
	}
	granted := make(chan answer, 1)
	r.answer = func(t heldSlot, err error) {
		r.stayed = p.q.stayed(&r.waiter)
		granted <- answer{t, err}
	}
	p.change(func(now time.Time) {
		if a, ok := r.ctx.Value(admissionKey{}).(*admission); ok && a.pool == p {
			a.free(1)
		}
		p.q.enqueue(now, &r.waiter)
	})
	select {
	case a := <-granted: // the usual case, without a timer
		return a.ticket, a.err
	default:
	}

	timer := time.NewTimer(p.remains(r, limit))
	defer timer.Stop()
	var err error
	for err == nil {
		select {
		case a := <-granted:
			return a.ticket, a.err
		case <-r.ctx.Done():
			err = &assay.Fault{
				Kind: assay.Interrupted, Detail: "stopped while waiting for a lane",
				Err: context.Cause(r.ctx),
			}
		case <-timer.C:
			if again := p.remains(r, limit); again > 0 {
				timer.Reset(again)
				continue
			}
			err = &assay.Fault{
				Kind:   assay.Timeout,
				Detail: fmt.Sprintf("waited %v for a lane of %s", p.options.Queue, p.model),
			}
		}
	}

	p.change(func(now time.Time) {
		r.gone = true
		select {
		case a := <-granted:
			if a.err == nil {
				a.ticket.lane.cancel(now, a.ticket)
			}
		default:
		}
	})
	return heldSlot{}, err
}

// remains returns when to look again whether a waiting turn has used up its limit, or 0 if it has.
func (p *Pool) remains(r *try, limit time.Duration) (again time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.q.book(now)
	left := limit - p.q.stayed(&r.waiter)
	switch {
	case r.gone: // it has just been answered
		return p.options.Queue
	case left <= 0:
		return 0
	case p.q.heldUntil(now, r.cost).After(now):
		// Nobody knows when that ends.
		return max(left, p.options.Queue/60, time.Second)
	}
	return max(left, r.announced.Sub(now))
}

// Drain interrupts all turns that are waiting for a limit or a pause, now and
// later. Turns in flight continue, and so do turns that only wait for a slot.
func (p *Pool) Drain() { p.change(func(time.Time) { p.q.refusing = true }) }

// Exhausted informs the pool that no more trials of the model are waiting to start. Free slots do
// not count as idle from then on.
func (p *Pool) Exhausted() { p.change(func(time.Time) { p.q.demand = false }) }

// Width returns how many requests the open lanes together may have in flight.
func (p *Pool) Width() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.q.width()
}

// Closed returns the faults that closed the pool's lanes, or nil if at least one
// lane is open.
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
