package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/store"
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
	asks   question      // of the agent

	// kept is true if replies are in the journal before the attempt goes on.
	kept bool
}

func newGate(ctx context.Context, s *Session, trial *assay.Trial) *gated {
	g := &gated{session: s, trial: trial}
	g.ctx, g.end = context.WithCancelCause(ctx)
	if g.kept = s.keeps(trial.Model); g.kept {
		var replies int
		replies, g.bill = s.journal.Rewind(trial.ID)
		g.began = replies >= 0
		s.resumed.attempt(replies)
	}
	return g
}

// Rewind lets another worker begin the attempt again, with the replies so far.
func (g *gated) Rewind() { g.session.journal.Rewind(g.trial.ID) }

// Chat implements [assay.Provider].
func (g *gated) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	var to uint64
	if g.kept {
		to = g.identify(req)
		if resp := g.replay(req, to); resp != nil {
			return resp, nil
		}
	}
	most := 0
	if g.mayCost(req) {
		most = lane.MostTokens(req)
	}
	if err := g.begin(most > 0); err != nil {
		return new(assay.Response), err
	}
	defer g.asking.Done()
	if most > 0 {
		g.session.journal.Write(store.JournalEntry{ID: g.trial.ID, Asked: most})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.ctx, func() { cancel(context.Cause(g.ctx)) })()
	paid := &purse{gated: g, req: req}
	began := time.Now()
	resp, err := g.ask(lane.PaidBy(ctx, paid), req)
	e := paid.entry()
	e.Asked = -most
	switch {
	case g.kept && err == nil:
		e.Reply = &store.JournalReply{To: to, Began: began, Ended: time.Now(), Response: *resp}
		g.session.journal.Keep(e)
	case most > 0 || e.Spent != nil:
		g.session.journal.Write(e)
	}
	g.answered(req, resp)
	return resp, err
}

// A purse pays for the requests of a turn from the budgets. It has the part of the turn's cost that is not
// in the journal yet: if the reply is kept, both are one entry.
type purse struct {
	*gated
	req *assay.Request

	mu   sync.Mutex // guards the fields below
	used assay.Usage
	cost float64
}

// Allow implements [lane.Purse].
func (p *purse) Allow() *assay.Fault { return p.session.stopper.Allow(p.trial.Cell) }

// Spend implements [lane.Purse].
func (p *purse) Spend(r *assay.Response) {
	spent, _ := r.Spent(p.req)
	p.session.stopper.Spend(p.trial, spent, r.Cost+r.Estimate, r.Lost)
	switch {
	case p.kept && r.Message.Role != "":
		p.mu.Lock()
		defer p.mu.Unlock()
		p.used, p.cost = p.used.Add(r.Usage), assay.RoundUSD(p.cost+r.Cost)
	case r.Cost > 0 || r.Usage.UnpricedTokens > 0 || p.kept && r.Usage != (assay.Usage{}):
		p.session.journal.Write(store.JournalEntry{
			ID: p.trial.ID, Spent: &r.Usage, Cost: r.Cost, User: p.req.User, Judge: p.req.Judge,
		})
	}
}

func (p *purse) entry() store.JournalEntry {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := store.JournalEntry{ID: p.trial.ID, User: p.req.User, Judge: p.req.Judge}
	if p.used != (assay.Usage{}) {
		e.Spent, e.Cost = &p.used, p.cost
	}
	return e
}

// ask sends a request through the lanes of its model.
func (g *gated) ask(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if req.Judge {
		g.session.flights.does(g.trial.ID, Judging)
	}
	if req.Aside() {
		return g.session.pools.ByModel[req.Model].Chat(ctx, req)
	}
	g.session.starters.acted(g.trial.Model)
	began := time.Now()
	pool := g.session.pools.ByModel[g.trial.Model]
	resp, err := pool.Chat(lane.OnProgress(ctx, g.progress), req)
	g.session.flights.does(g.trial.ID, Acting)
	g.session.chat(g.trial.ID, assay.Span{Began: began, Ended: time.Now()}, *req, resp, err)
	return resp, err
}

func (g *gated) identify(req *assay.Request) uint64 {
	if req.Aside() { // its conversation may be any
		return new(question).next(req)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asks.next(req)
}

// replay returns the reply to a request that was asked before the run was killed, or a worker lost.
func (g *gated) replay(req *assay.Request, to uint64) *assay.Response {
	s := g.session
	r, lost := s.journal.Replay(g.trial.ID, req.Aside(), to)
	if lost > 0 {
		s.resumed.differs(lost)
		s.note("an attempt went on differently than before its run was killed or its worker was lost, " +
			"because a prompt or a tool has changed; from that turn on, its model is asked again")
	}
	if r == nil {
		return nil
	}
	if !req.Aside() {
		s.flights.does(g.trial.ID, Asking)
		s.flights.does(g.trial.ID, Acting)
		s.chat(g.trial.ID, assay.Span{Began: r.Began, Ended: r.Ended}, *req, &r.Response, nil)
	}
	return &r.Response
}

// mayCost reports whether a request may cost money.
func (g *gated) mayCost(req *assay.Request) bool {
	if req.Aside() {
		return g.session.mayCost(req.Model)
	}
	return g.session.mayCost(g.trial.Model)
}

func (s *Session) mayCost(model string) bool {
	return slices.ContainsFunc(s.pools.Configs[model], func(c lane.Config) bool { return !c.Price.Free() })
}

// begin permits a request, which has to be Done. The first one that may cost money, or whose reply is
// kept, opens the attempt in the journal.
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
	if (paid || g.kept) && !g.began {
		g.began = true
		s := g.session
		s.journal.Write(store.JournalEntry{Trial: g.trial, Round: s.options.Retry[g.trial.ID], At: time.Now().UTC()})
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

// answered adds a turn to the bill.
func (g *gated) answered(req *assay.Request, resp *assay.Response) {
	g.mu.Lock()
	switch {
	case req.User:
		g.bill.AddUser(resp)
	case req.Judge:
		g.bill.AddJudge(resp)
	default:
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
