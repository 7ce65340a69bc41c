package fleet

import (
	"context"
	"sync"

	"github.com/assay-eval/assay"
)

// A provider sends the requests of an attempt to the coordinator.
type provider struct {
	session *session
	held    held
	over    context.CancelCauseFunc // ends the attempt

	mu   sync.Mutex
	sent int          // number of the latest request
	open map[int]bool // requests without a reply
}

// Chat sends a request through the lanes of the run. It waits as long as the coordinator is out of
// reach.
func (p *provider) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	c := p.number(*req)
	defer p.close(c.N)
	for {
		var r chatReply
		err := p.session.insist(ctx, callChat, c, &r)
		switch {
		case err != nil:
			p.giveUp(ctx, c)
			return &assay.Response{}, err
		case r.Over:
			p.over(errOver)
			return &assay.Response{}, &assay.Fault{Kind: assay.Interrupted, Detail: errOver.Error()}
		case r.Fault != nil:
			return &r.Response, r.Fault
		case !r.Wait:
			return &r.Response, nil
		}
		c.Request, c.Again = assay.Request{}, true
	}
}

// number returns the message for a request.
func (p *provider) number(req assay.Request) *chat {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent++
	c := &chat{held: p.held, N: p.sent, Seen: p.sent, Request: req}
	for n := range p.open {
		c.Seen = min(c.Seen, n)
	}
	if p.open == nil {
		p.open = make(map[int]bool)
	}
	p.open[p.sent] = true
	return c
}

func (p *provider) close(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, n)
}

// giveUp informs the coordinator that the attempt does not wait for a reply any more. If the
// message is lost, the request ends with the attempt.
func (p *provider) giveUp(ctx context.Context, c *chat) {
	told := *c
	told.Request, told.GivenUp = assay.Request{}, true
	_ = p.session.call(context.WithoutCancel(ctx), beatLimit, callChat, &told, new(chatReply))
}
