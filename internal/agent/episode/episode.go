// Package episode carries out one attempt at a trial: the prompt, the turns, the tool calls, their
// limits, and the verdict at the end.
//
// It does not start goroutines, store results or wait for rate limits; its provider does that. A
// fault of the provider ends the episode and is never scored. The turn loop is the agent: its model
// is any [assay.Provider], and there is no registry of agents.
package episode

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// MaxCallsPerReply is the number of calls in one reply that are carried out. Further calls are
// refused, because every call needs an answer.
const MaxCallsPerReply = 64

// A Runner carries out episodes with the tools of one library. It is immutable and safe for
// concurrent use.
type Runner struct {
	catalog   *assay.Catalog
	search    *world.Search
	judge     *score.Judge
	functions map[toolbox][]assay.Function
	openings  *openings
	offers    *offers
	budget    time.Duration
}

// A toolbox determines which functions a model gets.
type toolbox struct{ world, tools string }

// NewRunner returns a runner. budget is the working time of an episode: the time of all its
// requests together, without queues. 0 means no limit.
func NewRunner(catalog *assay.Catalog, budget time.Duration) *Runner {
	r := &Runner{
		catalog:   catalog,
		search:    world.NewSearch(catalog),
		judge:     score.New(catalog),
		functions: make(map[toolbox][]assay.Function),
		openings:  newOpenings(),
		offers:    newOffers(),
		budget:    budget,
	}
	for _, w := range world.Names {
		for _, tools := range []string{assay.Discover, assay.Listed} {
			r.functions[toolbox{w, tools}] = Functions(w, tools, catalog)
		}
	}
	return r
}

// Run carries out one attempt. The attempt ends in an outcome or a fault, and the transcript goes
// as far as the episode got. The caller fills in experiment, run, number and program.
func (r *Runner) Run(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task,
) (*assay.Attempt, *assay.Transcript) {
	e := r.newEpisode(trial, task)
	e.provider = provider
	err := e.begin(ctx)
	if err == nil {
		err = e.collect(e.turns(ctx))
	}
	if err == nil && trial.AsksConfidence {
		err = e.askConfidence(ctx)
	}
	e.conclude(err)
	return &e.attempt, &e.transcript
}

func (r *Runner) newEpisode(trial *assay.Trial, task *assay.Task) *episode {
	e := &episode{Runner: r, trial: trial, task: task, offer: r.offers.of(r.catalog, trial, task)}
	e.attempt = assay.Attempt{Trial: *trial, Templates: TemplatesHash, StartedAt: time.Now().UTC()}
	return e
}

// collect ends the world, and completes the transcript with the records of the world and the rules.
// It returns the fault that ended the episode, or the fault of the world's end.
func (e *episode) collect(fault error) error {
	e.transcript.Calls, e.transcript.Loops = e.world.Calls(), e.progress.loops
	for i, w := range e.worded {
		e.transcript.Calls[i].Written, e.transcript.Calls[i].Shown = w.written, w.shown
	}
	if w, ok := e.world.(spec.Ender); ok {
		var err error
		e.transcript.State, err = w.End()
		fault = cmp.Or(fault, err)
	}
	return fault
}

// episode is the state of one attempt. It belongs to the goroutine of Run.
type episode struct {
	*Runner
	provider assay.Provider
	trial    *assay.Trial
	task     *assay.Task
	offer    *offer // nil for the tools' own interface
	world    world.World
	progress *progress
	// overdrawn is true if the latest reply called a tool although it began without calls left.
	overdrawn bool
	// later has the parts of the plan for the next messages of the user.
	later []*workflow.Plan
	// broken is the fault of a tool that cannot carry out calls.
	broken *assay.Fault
	// worded has the calls as the model wrote them and their results as it was shown them, by the
	// number of the call, if another interface is offered.
	worded     map[int]wording
	transcript assay.Transcript
	attempt    assay.Attempt
	waits      assay.Waits
	// tokens and usd are the part of the limits that the episode has used. They differ from the
	// attempt's usage and cost if the endpoint does not report usage.
	tokens int
	usd    float64
}

// begin sets up the world and writes the opening messages.
func (e *episode) begin(ctx context.Context) error {
	rules, err := rulesOf(e.trial)
	if err != nil {
		return err
	}
	o, err := e.opening(e.trial, e.task)
	if err != nil {
		return err
	}
	e.world, e.progress = world.Begin(ctx, e.catalog, e.trial, e.task), newProgress(rules)
	e.transcript.Plan, e.transcript.Messages, e.later = o.plan, o.messages, o.later
	return nil
}

// turns runs the episode to its end. Each turn appends to the conversation, so every request
// differs from the ones before.
func (e *episode) turns(ctx context.Context) error {
	if d, ok := e.world.(spec.Dialogue); ok && d.Begun() != nil {
		return d.Begun()
	}
	for turn := 1; turn <= e.trial.Setting.Turns; turn++ {
		if ended := e.spent(); ended != "" {
			e.transcript.Ended = ended
			return nil
		}
		reply, err := e.ask(ctx)
		if err != nil {
			return err
		}
		ended := e.answer(ctx, turn, reply)
		if e.broken != nil {
			return e.broken
		}
		if ended != "" {
			e.transcript.Ended = ended
			return nil
		}
	}
	e.transcript.Ended = assay.TurnLimit
	return nil
}

// spent reports whether the episode has used up its tokens or its money. It returns "" if not.
// Limits are checked between turns because the size of a reply is only known once it has arrived.
func (e *episode) spent() assay.Ended {
	switch {
	case e.trial.Tokens > 0 && e.tokens >= e.trial.Tokens:
		return assay.TokenLimit
	case e.trial.USD > 0 && e.usd >= e.trial.USD:
		return assay.CostLimit
	}
	return ""
}

// ask gets one reply and appends it. It fails if ctx has ended.
func (e *episode) ask(ctx context.Context) (*assay.Message, error) {
	if ctx.Err() != nil {
		return nil, Stopped(ctx)
	}
	left := e.budget - e.waits.Working
	if e.budget > 0 && left <= 0 {
		return nil, e.outOfTime()
	}
	req := e.request(left)
	resp, err := e.provider.Chat(ctx, req)
	e.account(req, resp)
	if err != nil {
		return nil, err
	}
	return e.hear(resp), nil
}

func (e *episode) outOfTime() *assay.Fault {
	detail := "the trial's working time of " + e.budget.String() + " is used up"
	return &assay.Fault{Kind: assay.Timeout, Detail: detail}
}

// request returns the request for the next turn, within the working time left. Under the protocol
// tags a model gets no functions.
func (e *episode) request(left time.Duration) *assay.Request {
	req := &assay.Request{
		Model: e.trial.Model, Messages: e.transcript.Messages, Sampling: e.trial.Sampling,
		Lane: e.attempt.Lane, Budget: max(0, left), Seed: e.trial.ModelSeed(),
	}
	if e.trial.Protocol != assay.Tags {
		req.Functions = e.permitted()
	}
	return req
}

// permitted returns the functions without tools that the task may not use.
func (e *episode) permitted() []assay.Function {
	functions := e.functions[toolbox{e.trial.World, e.trial.Tools}]
	if e.offer != nil && e.trial.Tools == assay.Listed {
		functions = e.offer.functions()
	}
	_, changing := e.world.(spec.Dialogue)
	if len(e.task.Tools) == 0 && !changing || e.trial.Tools != assay.Listed {
		return functions
	}
	return slices.DeleteFunc(slices.Clone(functions), func(f assay.Function) bool {
		return !e.mayUse(f.Name)
	})
}

// hear appends a reply to the transcript and returns it.
func (e *episode) hear(resp *assay.Response) *assay.Message {
	reply := resp.Message
	reply.Role = assay.Assistant
	e.say(reply)
	e.transcript.Turns = append(e.transcript.Turns, assay.TurnRecord{
		Lane: resp.Lane, ServedModel: resp.ServedModel, Identity: resp.Identity,
		Usage:  resp.Usage,
		Finish: resp.Finish, Deviations: resp.Deviations, Reported: resp.Reported,
		QueuedMS: resp.Waits.Queued.Milliseconds(), WorkingMS: resp.Waits.Working.Milliseconds(),
		Requests: resp.Waits.Requests,
	})
	return &reply
}

// Stopped returns the fault of an episode whose context has ended. The context's error determines
// the kind, and its cause the detail.
func Stopped(ctx context.Context) *assay.Fault {
	f := assay.AsFault(ctx.Err())
	f.Err = context.Cause(ctx)
	f.Detail = f.Err.Error()
	return f
}

func (e *episode) account(req *assay.Request, resp *assay.Response) {
	spent, _ := resp.Spent(req)
	e.tokens += spent.Total()
	e.usd = assay.RoundUSD(e.usd + resp.Cost + resp.Estimate)
	e.waits = e.waits.Add(resp.Waits)
	e.attempt.Add(resp)
}

// answer carries out a reply's actions, or points out that there are no actions. It returns how the
// episode ended, or "" if it goes on.
func (e *episode) answer(ctx context.Context, turn int, reply *assay.Message) assay.Ended {
	actions := e.actions(reply)
	if d, ok := e.world.(spec.Dialogue); ok && len(actions) == 0 {
		return e.converse(ctx, d, reply.Content)
	}
	if e.world.Ends(reply.Content, len(actions) > 0) {
		return assay.Finished
	}
	rec := &e.transcript.Turns[len(e.transcript.Turns)-1]
	left := e.trial.Setting.Turns - turn
	e.progress.begin(turn)
	if len(actions) == 0 {
		rec.Assisted = true
		e.say(e.nudge(e.world.Claims(reply.Content, false), left))
	} else {
		e.reply(actions, e.carryOut(turn, actions, rec), left)
	}
	e.progress.end(len(actions), rec)
	if ended, stop := e.world.Stop(); stop {
		return ended
	}
	if e.overdrawn {
		return assay.CallLimit
	}
	if e.progress.stops() {
		return assay.Loop
	}
	return ""
}

// conclude fills in the attempt's outcome or fault.
func (e *episode) conclude(err error) {
	a := &e.attempt
	a.FinishedAt = time.Now().UTC()
	a.Requests, a.Retried = e.waits.Requests, e.waits.Retried
	a.QueuedMS, a.WorkingMS = e.waits.Queued.Milliseconds(), e.waits.Working.Milliseconds()
	e.transcript.Answer = e.offer.answer(e.transcript.Messages)
	o := e.judge.Outcome(e.trial, e.task, &e.transcript)
	if err == nil && o.Undecided != "" {
		err = &assay.Fault{Kind: assay.ToolServer, Detail: o.Undecided, Hopeless: true}
	}
	if f := assay.AsFault(err); f != nil {
		a.FaultKind, a.FaultDetail, a.Parked = f.Kind, f.Error(), f.Hopeless
		if f.Lane != "" {
			a.Lane = f.Lane
		}
		o.Withdraw()
	}
	a.Outcome = o
}
