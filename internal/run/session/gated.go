package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// errAttemptOver ends the requests that an attempt has left behind.
var errAttemptOver = errors.New("the attempt is over")

// gated is the provider of one attempt. It asks the budgets before each request, and knows what the
// attempt has cost: also of requests whose replies came too late for the attempt's record, or that
// belong to a worker that was lost.
type gated struct {
	session *Session
	trial   *assay.Trial
	ctx     context.Context
	end     context.CancelCauseFunc

	mu     sync.Mutex // guards the fields below
	asking sync.WaitGroup
	over   bool
	began  bool          // in the journal
	bill   assay.Attempt // only its tokens and dollars
}

func newGate(ctx context.Context, s *Session, trial *assay.Trial) *gated {
	g := &gated{session: s, trial: trial}
	g.ctx, g.end = context.WithCancelCause(ctx)
	return g
}

// Chat implements [assay.Provider].
func (g *gated) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	paid := g.mayCost(req)
	if err := g.begin(paid); err != nil {
		return new(assay.Response), err
	}
	defer g.asking.Done()
	if paid {
		tokens := lane.MostTokens(req)
		g.session.journal.write(entry{ID: g.trial.ID, Asked: tokens})
		defer g.session.journal.write(entry{ID: g.trial.ID, Asked: -tokens})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })()
	ctx = lane.OnSpent(ctx, func(r *assay.Response) *assay.Fault { return g.spend(req, r) })
	if req.User {
		resp, err := g.session.pools.ByModel[req.Model].Chat(ctx, req)
		g.answered(req, resp)
		return resp, err
	}
	g.session.starters.acted(g.trial.Model)
	began := time.Now()
	pool := g.session.pools.ByModel[g.trial.Model]
	resp, err := pool.Chat(lane.OnProgress(ctx, g.progress), req)
	g.session.flights.does(g.trial.ID, Acting)
	g.session.chat(g.trial.ID, began, resp, err)
	g.answered(req, resp)
	return resp, err
}

// mayCost reports whether a request may cost money.
func (g *gated) mayCost(req *assay.Request) bool {
	model := g.trial.Model
	if req.User {
		model = req.Model
	}
	return slices.ContainsFunc(g.session.pools.Configs[model], func(c lane.Config) bool {
		return !c.Price.Free()
	})
}

// begin permits a request, which has to be Done. The first one that may cost money opens the attempt
// in the journal.
func (g *gated) begin(paid bool) error {
	if f := g.session.stopper.Allow(g.trial.Cell); f != nil {
		return f
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over {
		return &assay.Fault{
			Kind: assay.Interrupted, Detail: errAttemptOver.Error(), Err: errAttemptOver,
		}
	}
	g.asking.Add(1)
	if paid && !g.began {
		g.began = true
		g.session.journal.write(entry{Trial: g.trial, At: time.Now().UTC()})
	}
	return nil
}

// close ends the requests that are left and returns the attempt's bill.
func (g *gated) close() *assay.Attempt {
	g.mu.Lock()
	g.over = true
	g.mu.Unlock()
	g.end(errAttemptOver)
	g.asking.Wait()
	return &g.bill
}

// progress shows whether a request was sent or is waiting.
func (g *gated) progress(sent bool) {
	doing := Queued
	if sent {
		doing = Asking
	}
	g.session.flights.does(g.trial.ID, doing)
}

// spend counts a request against the budgets. It returns a fault if one of them is spent.
func (g *gated) spend(req *assay.Request, resp *assay.Response) *assay.Fault {
	spent, _ := resp.Spent(req)
	g.session.stopper.Spend(g.trial.Cell, spent, resp.Cost+resp.Estimate, resp.Lost)
	if resp.Cost > 0 || resp.Usage.UnpricedTokens > 0 {
		g.session.journal.write(entry{
			ID: g.trial.ID, Spent: &resp.Usage, Cost: resp.Cost, User: req.User,
		})
	}
	return g.session.stopper.Allow(g.trial.Cell)
}

// answered adds a turn to the bill.
func (g *gated) answered(req *assay.Request, resp *assay.Response) {
	g.mu.Lock()
	if req.User {
		g.bill.AddUser(resp)
	} else {
		g.bill.Add(resp)
	}
	g.mu.Unlock()
	s := g.session
	_, estimated := resp.Spent(req)
	if estimated && s.limitsSpending() && !s.knows(resp.Lane+" usage") {
		s.note(resp.Lane + " does not report how many tokens replies use, so limits on " +
			"tokens and dollars count estimates")
	}
}
