package lane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

// The causes of requests that the pool ends itself.
var (
	errOvertaken = errors.New("another request for the turn was answered first")
	errYielded   = errors.New("another turn needed the place of this second request")
)

// A race is a turn that is being sent: one request, and perhaps second ones. The first reply wins,
// and the other requests are ended. A fault counts only if no other request is in flight.
type race struct {
	flight
	pool      *Pool
	ctx       context.Context
	req       *assay.Request
	size      int        // of the conversation, in bytes
	admission *admission // of a conversation that waits for the race, or nil
	original  heldSlot   // of the first request
	// ends is when the trial's working time is used up, or zero.
	ends    time.Time
	running sync.WaitGroup // second requests

	mu      sync.Mutex // guards the fields below
	over    bool
	end     context.CancelCauseFunc   // ends the first request
	endings []context.CancelCauseFunc // end second requests
	results []requestResult           // of second requests
	panic   any                       // of a second request
}

// A requestResult belongs to one request. It is first if its reply came first. It alone holds the
// response.
type requestResult struct {
	resp  *assay.Response
	fault *assay.Fault
	first bool
}

// send sends a request that has a slot and returns the first reply, or the fault of the request if
// there is no reply. When it returns, all requests of the turn have ended.
func (p *Pool) send(r *race, waits *assay.Waits) (*assay.Response, *assay.Fault) {
	limit, why := p.options.Request, ""
	if r.req.Budget > 0 {
		left := r.req.Budget - waits.Working
		r.ends = r.original.started.Add(left)
		if left < limit {
			limit, why = left, workingTime
		}
	}
	won := p.exchange(r.ctx, &r.original, r, limit, why)
	r.running.Wait()
	return r.finish(won, waits)
}

// finish returns the result of a race whose requests have all ended, and adds its time to waits.
func (r *race) finish(won requestResult, waits *assay.Waits) (*assay.Response, *assay.Fault) {
	won.resp.Waits = assay.Waits{Requests: 1}
	if len(r.results) > 0 || r.panic != nil {
		won = r.decide(won)
	}
	if isRefusal(won.resp.Usage, won.fault) {
		won.resp.Waits.Queued = time.Since(r.original.started)
	} else {
		won.resp.Waits.Working = time.Since(r.original.started)
	}
	*waits = waits.Add(won.resp.Waits)
	return won.resp, won.fault
}

const workingTime = ", the rest of the trial's working time"

// decide returns the result of a race with second requests that are all over. It adds the cost of
// the others.
func (r *race) decide(original requestResult) requestResult {
	if r.panic != nil {
		panic(r.panic)
	}
	all := append([]requestResult{original}, r.results...)
	won := 0
	for i := range all {
		if all[i].first {
			won = i
		}
	}
	sum := all[won]
	sum.resp.Waits = assay.Waits{Requests: len(all)}
	for i, x := range all {
		if i == won {
			continue
		}
		sum.resp.Usage = sum.resp.Usage.Add(x.resp.Usage)
		sum.resp.Cost = assay.RoundUSD(sum.resp.Cost + x.resp.Cost)
		sum.resp.Estimate = assay.RoundUSD(sum.resp.Estimate + x.resp.Estimate)
		sum.resp.Lost = sum.resp.Lost.Add(x.resp.Lost)
		if x.fault != nil && x.fault.Kind != assay.Interrupted {
			sum.resp.Waits = sum.resp.Waits.Add(assay.Waits{
				Retried: map[assay.FaultKind]int{x.fault.Kind: 1},
			})
		}
	}
	return sum
}

// launch sends a second request in a goroutine. The pool is locked.
func (r *race) launch(t heldSlot) {
	ctx, end := context.WithCancelCause(r.ctx)
	r.mu.Lock()
	r.endings = append(r.endings, end)
	r.mu.Unlock()
	r.running.Go(func() {
		defer end(nil)
		defer func() {
			if v := recover(); v != nil {
				r.mu.Lock()
				r.panic = fmt.Sprintf("%v\n%s", v, debug.Stack())
				r.mu.Unlock()
				r.stop(errOvertaken)
			}
		}()
		limit, why := r.pool.options.Request, ""
		if left := time.Until(r.ends); !r.ends.IsZero() && left < limit {
			limit, why = left, workingTime
		}
		x := r.pool.exchange(ctx, &t, r, limit, why)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.results = append(r.results, x)
	})
}

// yieldSeconds ends second requests. The pool is locked.
func (r *race) yieldSeconds() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, end := range r.endings {
		end(errYielded)
	}
}

// stop ends all requests.
func (r *race) stop(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = true; r.end != nil {
		r.end(cause)
	}
	for _, end := range r.endings {
		end(cause)
	}
}

// rest notes that the race's conversation waits for no request. The pool is locked.
func (r *race) rest() {
	if a := r.admission; a != nil {
		r.admission = nil
		a.rest()
	}
}

// begin remembers how the first request can be ended.
func (r *race) begin(end context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.end = end; r.over {
		end(errOvertaken)
	}
}

// exchange makes one exchange of a race, releases its slot and reports it. If it brings the first
// reply, it ends the other requests.
func (p *Pool) exchange(
	ctx context.Context, t *heldSlot, r *race, limit time.Duration, why string,
) requestResult {
	p.sent(t, t.estimate)
	resp, fault := t.lane.exchange(ctx, t, r, limit, why)
	return p.landed(t, r, resp, fault)
}

// landed releases the slot of a request of a race and reports it.
func (p *Pool) landed(
	t *heldSlot, r *race, resp *assay.Response, fault *assay.Fault,
) requestResult {
	x := requestResult{resp: resp, fault: fault}
	took := time.Since(t.started)
	ended := x.fault != nil && (x.fault.Err == errOvertaken || x.fault.Err == errYielded)
	closed, by := false, cost{}
	p.change(func(now time.Time) {
		before := t.lane.closed
		if ended && x.resp.Usage.Total() == 0 {
			p.q.abandon(now, *t)
		} else {
			counted := t.lane.counted(x.resp.Usage)
			by = p.q.release(now, *t, r.size, counted, x.resp.Quotas, x.fault)
		}
		closed = t.lane.closed != before
		if r.peers != nil {
			x.first = p.q.land(&r.flight, took, x.fault == nil)
		}
		if r.decided || r.out == 0 {
			r.rest()
		}
	})
	if x.first && r.extra > 0 {
		r.stop(errOvertaken)
	}
	if by != (cost{}) {
		p.sent(t, by)
	}
	if p.options.Observe != nil {
		p.options.Observe(Exchange{
			Model: cmp.Or(r.req.Model, p.model), Lane: t.lane.Name, Fault: x.fault,
			Usage: x.resp.Usage, Cost: x.resp.Cost, Took: took, Closed: closed,
			Second: t.second, Ended: ended, User: r.req.User,
		})
	}
	return x
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
	ctx context.Context, t *heldSlot, r *race, limit time.Duration, why string,
) (*assay.Response, *assay.Fault) {
	bounded, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer time.AfterFunc(limit, func() { end(l.hung(limit, why)) }).Stop()
	if !t.second {
		r.begin(end)
	}
	resp, err := l.Provider.Chat(bounded, r.req)
	fault := l.judge(ctx, bounded, resp, err)
	l.price(r, resp)
	return resp, fault
}

// price completes what the response to a request used and cost.
func (l *lane) price(r *race, resp *assay.Response) {
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
	case cause == errOvertaken, cause == errYielded:
		return &assay.Fault{
			Kind: assay.Interrupted, Lane: l.Name, Detail: cause.Error(), Err: cause,
		}
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
