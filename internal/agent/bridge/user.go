package bridge

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/task/environment"
)

// userPath is where environments reach the models behind their simulated users.
const userPath = "/user/v1"

// UserURL returns the base URL of an endpoint that speaks Chat Completions, for environments with
// simulated users. The token of an attempt opens it.
func (b *Bridge) UserURL() string { return b.bases[""] + userPath }

// An attempter carries out attempts.
type attempter interface {
	Run(
		ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
	) (*assay.Attempt, *assay.Transcript)
}

// WithUser returns a runner of attempts in environments whose user is a model. The provider of an
// attempt also answers the requests of its user, and is told so by [assay.Request.User]. If it
// cannot, the attempt ends in that fault.
func (b *Bridge) WithUser(agents attempter) attempter { return &withUser{b, agents} }

type withUser struct {
	bridge *Bridge
	agents attempter
}

// Run implements attempter.
func (r *withUser) Run(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
) (*assay.Attempt, *assay.Transcript) {
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	u := &user{
		Line:     environment.Line{Token: "assay-user-" + rand.Text()},
		provider: provider, model: trial.UserModel, ctx: inner, end: cancel,
	}
	r.bridge.users.Store(u.Token, u)
	a, transcript := r.agents.Run(environment.WithUser(inner, &u.Line), provider, trial, task)
	r.bridge.users.Delete(u.Token)
	u.conclude(ctx, a)
	return a, transcript
}

// A user is the simulated user of one attempt.
type user struct {
	environment.Line
	provider assay.Provider
	model    string
	ctx      context.Context
	end      context.CancelCauseFunc // ends the attempt

	mu    sync.Mutex // guards the fields below
	lane  string
	use   assay.UserSpend
	fault *assay.Fault
}

// conclude adds the user's usage to an attempt. If the user's model failed, and not because the
// attempt was stopped, the attempt has ended in that fault, whatever the agent did.
func (u *user) conclude(ctx context.Context, a *assay.Attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a.UserSpend = u.use
	if u.fault == nil || ctx.Err() != nil {
		return
	}
	a.FaultKind, a.FaultDetail = u.fault.Kind, "the simulated user: "+u.fault.Error()
	a.Parked = u.fault.Hopeless
	a.Withdraw()
}

// ask sends a request for the user. Its failure ends the attempt, unless the environment can ask without
// a form.
func (u *user) ask(ctx context.Context, req assay.Request) (*assay.Response, error) {
	defer u.Ask()()
	u.mu.Lock()
	req.Model, req.User, req.Lane = u.model, true, u.lane
	u.mu.Unlock()
	resp, err := u.provider.Chat(ctx, &req)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.use.AddUser(resp)
	if err != nil && u.fault == nil && ctx.Err() == nil && !episode.WrongForm(err) {
		u.fault = assay.AsFault(err)
		u.end(u.fault)
	}
	u.lane = resp.Lane
	return resp, err
}

// serveUsers adds the route of the users' models.
func (b *Bridge) serveUsers(mux *http.ServeMux) {
	d := protocol.Dialects(gateway.ThinkingNone)[0]
	mux.HandleFunc("POST "+userPath+"/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		found, ok := b.users.Load(d.Key(r.Header))
		if !ok || behindDoor(r, "") {
			refuse(w, d, gateway.Refusal{
				Status: http.StatusUnauthorized, Message: refused,
				Kind: "invalid_request_error", Code: "invalid_api_key",
			})
			return
		}
		u := found.(*user)
		p := decode(w, r, d, func(body []byte) []byte { return body })
		if p == nil {
			return
		}
		ctx, cancel := context.WithCancel(u.ctx)
		defer cancel()
		defer context.AfterFunc(r.Context(), cancel)() // the environment gave up
		relay(w, d, p, func() (gateway.Reply, *gateway.Refusal) {
			resp, err := u.ask(ctx, p.Request)
			switch {
			case episode.WrongForm(err):
				return gateway.Reply{}, refusalOf(err)
			case err != nil:
				// Clients do not repeat a request that is wrong.
				return gateway.Reply{}, gateway.BadRequest("", "the attempt is over: %v", err)
			}
			return replyOf(resp, u.model), nil
		})
	})
}
