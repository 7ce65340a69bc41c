package lane

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// A turn is the state of [Pool.Chat] during a request. It is not on the stack, and the functions
// that wait for a reply have small frames, because a hundred thousand of them may wait at once.
type turn struct {
	pool   *Pool
	ctx    context.Context
	req    *assay.Request // never changed
	tell   func(sent bool)
	purse  Purse
	bytes  int
	origin string
	// home is the lane to prefer, and avoid that on which the turn has hung.
	home, avoid string
	holds       []hold

	waits assay.Waits
	paid  bill
	hangs int
	tries int // requests that were not refused
	// stayed is how long the turn has waited for lanes, as the queue limit counts.
	stayed time.Duration
	saved  bool // counts in pool.rescues
}

// A bill is the usage and cost of the requests of a turn.
type bill struct {
	usage          assay.Usage
	cost, estimate float64
	lost           assay.Lost
}

// add adds a response.
func (b *bill) add(r *assay.Response) {
	b.usage, b.lost = b.usage.Add(r.Usage), b.lost.Add(r.Lost)
	b.cost = assay.RoundUSD(b.cost + r.Cost)
	b.estimate = assay.RoundUSD(b.estimate + r.Estimate)
}

// on writes the bill on a response.
func (b *bill) on(r *assay.Response) *assay.Response {
	r.Usage, r.Cost, r.Estimate, r.Lost = b.usage, b.cost, b.estimate, b.lost
	return r
}

func (t *turn) end() { t.pool.rescue(&t.saved, false) }

// acquire waits for a lane. It returns a request that has a slot.
func (t *turn) acquire() (*try, error) {
	p := t.pool
	t.tell(false)
	asked := time.Now()
	r := &try{pool: p, ctx: t.ctx, req: t.req, size: t.bytes}
	r.waiter = waiter{
		bytes: max(t.bytes, 1), lane: t.home, avoid: t.avoid, origin: t.origin, holds: t.holds, purse: t.purse,
	}
	var err error
	r.slot, err = p.acquire(r, p.options.Queue-t.stayed)
	t.waits.Queued += time.Since(asked)
	t.stayed += r.stayed
	if err == nil {
		t.tell(true)
	}
	return r, err
}

// unsent returns the response of a turn that got no lane.
func (t *turn) unsent() *assay.Response {
	return t.paid.on(&assay.Response{Waits: t.waits})
}

// arrived completes the response to a request. It returns the turn's error, unless the request is to
// be sent again, for which it has then waited.
func (t *turn) arrived(r *try, resp *assay.Response, fault *assay.Fault) (again bool, err error) {
	t.paid.add(resp)
	t.paid.on(resp).Waits = t.waits
	if fault == nil {
		return false, nil
	}
	if err := r.spent(); err != nil {
		return false, err
	}
	if errors.Is(fault, errHung) {
		t.home, t.avoid = "", r.slot.lane.Name
		t.pool.rescue(&t.saved, t.hangs == 0 && t.pool.lanes() > 1)
		if t.hangs++; t.hangs == maxHangs {
			last := *fault // the lane's status shows the fault, if it has closed the lane
			last.Detail, last.Hopeless = fault.Detail+", three times", true
			return false, &last
		}
	}
	refused := isRefusal(resp.Usage, fault)
	if refused {
		t.hold(r.slot.lane.Name, fault)
	} else {
		t.tries++
	}
	if !t.canRetry(fault) {
		return false, fault
	}
	if t.waits.Retried == nil {
		t.waits.Retried = make(map[assay.FaultKind]int)
	}
	t.waits.Retried[fault.Kind]++
	if fault.Kind.ClosesLane() || refused {
		return true, nil // on any lane, when it may
	}
	if err := backOff(t.ctx, t.tries, &t.waits); err != nil {
		resp.Waits = t.waits
		return false, err
	}
	return true, nil
}

// size returns the number of bytes of a request's conversation, functions and form.
func size(req *assay.Request) int {
	n := len(req.Form.Schema)
	for i := range req.Messages {
		m := &req.Messages[i]
		n += len(m.Content)
		if m.State != nil {
			n += len(m.State.Data)
		}
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	for i := range req.Functions {
		n += len(req.Functions[i].Description) + len(req.Functions[i].Parameters)
	}
	return n
}

// origin returns the origin of the latest state in a conversation, or "".
func origin(req *assay.Request) string {
	for _, m := range slices.Backward(req.Messages) {
		if m.State != nil {
			return m.State.Origin
		}
	}
	return ""
}

// canRetry reports whether a turn may be tried again after a fault.
func (t *turn) canRetry(fault *assay.Fault) bool {
	overBudget := t.req.Budget > 0 && t.waits.Working >= t.req.Budget
	switch {
	case t.ctx.Err() != nil, t.tries >= MaxRequests, overBudget:
		return false
	case fault.Kind.ClosesLane():
		return t.pool.Closed() == nil
	}
	return fault.Kind.Retryable()
}
