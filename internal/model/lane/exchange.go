package lane

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// A try is one request of a turn, which waits for a lane and is then sent.
type try struct {
	waiter
	pool *Pool
	ctx  context.Context
	req  *assay.Request
	size int // of the conversation, in bytes
	slot heldSlot
}

const workingTime = ", the rest of the trial's working time"

// send sends a request that has a slot, pays for it, releases the slot and reports the request. It adds its
// time to waits.
func (p *Pool) send(r *try, waits *assay.Waits) (*assay.Response, *assay.Fault) {
	limit, why := p.options.Request, ""
	if r.req.Budget > 0 {
		if left := r.req.Budget - waits.Working; left < limit {
			limit, why = left, workingTime
		}
	}
	p.sent(&r.slot, r.slot.estimate)
	resp, fault := r.slot.lane.exchange(r, limit, why)
	if r.purse != nil {
		r.purse.Spend(resp) // before the slot is another's, which may have to be refused
	}
	p.landed(r, resp, fault)
	*waits = waits.Add(resp.Waits)
	return resp, fault
}

// landed releases the slot of a request and reports it.
func (p *Pool) landed(r *try, resp *assay.Response, fault *assay.Fault) {
	t := &r.slot
	took := time.Since(t.started)
	closed, by := false, cost{}
	p.change(func(now time.Time) {
		before := t.lane.closed
		by = p.q.release(now, *t, r.size, t.lane.counted(resp.Usage), resp.Quotas, fault)
		closed = t.lane.closed != before
	})
	if by != (cost{}) {
		p.sent(t, by)
	}
	if p.options.Observe != nil {
		p.options.Observe(Exchange{
			Model: cmp.Or(r.req.Model, p.model), Lane: t.lane.Name, Fault: fault,
			Spend: resp.Billed(), Lost: resp.Lost, Took: took, Closed: closed, User: r.req.User, Judge: r.req.Judge,
		})
	}
	resp.Waits = assay.Waits{Requests: 1}
	if isRefusal(resp.Usage, fault) {
		resp.Waits.Queued = took
	} else {
		resp.Waits.Working = took
	}
}

// sent reports what a request uses of its lane's limits.
func (p *Pool) sent(t *heldSlot, c cost) {
	if p.options.Sent != nil && t.lane.Limits.Windowed() {
		p.options.Sent(t.lane.Name, Spent{t.started, c.requests, c.input, c.output})
	}
}

// exchange sends one request with a time limit and checks which model answered.
// It runs without the pool's mutex, so it only reads fields of the lane that
// never change.
func (l *lane) exchange(
	r *try, limit time.Duration, why string,
) (*assay.Response, *assay.Fault) {
	bounded, end := context.WithCancelCause(r.ctx)
	defer end(nil)
	defer time.AfterFunc(limit, func() { end(l.hung(limit, why)) }).Stop()
	resp, err := l.Provider.Chat(bounded, r.req)
	fault := l.judge(r.ctx, bounded, resp, err)
	l.price(r, resp)
	return resp, fault
}

// price completes what the response to a request used and cost.
func (l *lane) price(r *try, resp *assay.Response) {
	resp.Cost = l.Price.Of(resp.Usage)
	l.dearest.learn(r.size, resp.Usage)
	spent, estimated := resp.Spent(r.req)
	resp.Usage.UnpricedTokens = l.Price.unpriced(spent, estimated)
	if estimated {
		resp.Estimate = l.Price.Of(spent)
	}
	if resp.Lost.Requests == 0 {
		return
	}
	lost := l.dearest.of(r.size, r.req.Sampling)
	resp.Lost.Tokens, resp.Lost.USD = lost.Total(), l.Price.dearest(lost)
	resp.Usage.UnpricedTokens += l.Price.unpriced(lost, true)
}

// hung returns the fault of a request that has reached its limit.
func (l *lane) hung(limit time.Duration, why string) *assay.Fault {
	return &assay.Fault{
		Kind: assay.Timeout, Lane: l.Name, Err: errHung,
		Detail: "no reply within " + seconds(limit) + why,
	}
}

// judge completes the response to a request, and returns its fault. The request had the context
// bounded, within the context of its turn.
func (l *lane) judge(
	ctx, bounded context.Context, resp *assay.Response, err error,
) *assay.Fault {
	resp.Lane = l.Name
	fault, cause := assay.AsFault(err), context.Cause(bounded)
	switch {
	case fault == nil:
		var ok bool
		if resp.Identity, ok = l.recognizes(resp.ServedModel); !ok {
			return l.wrongModel(resp.ServedModel)
		}
		return nil
	case ctx.Err() != nil:
		return &assay.Fault{
			Kind: assay.Interrupted, Lane: l.Name, Detail: "the run was stopped",
			Err: context.Cause(ctx),
		}
	}
	if expired, ok := cause.(*assay.Fault); ok && expired.Err == errHung {
		return expired
	}
	named := *fault
	named.Lane = l.Name
	return &named
}

func seconds(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

func (l *lane) wrongModel(served string) *assay.Fault {
	detail := fmt.Sprintf("model %q answered, but %q was requested; hint: if this is the model "+
		"you want, add %[1]q to serves in the providers file", served, l.Orders)
	if served == "" {
		detail = fmt.Sprintf("the response names no model, but %q was requested; hint: if the "+
			`endpoint never names its model, write serves: [""] in the providers file, `+
			"where \"\" means a response without a name", l.Orders)
	}
	return &assay.Fault{Kind: assay.Identity, Lane: l.Name, Detail: detail}
}
