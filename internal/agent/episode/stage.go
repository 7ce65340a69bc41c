package episode

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A Stage is an attempt whose turns are taken by a foreign agent. It has the tools, the limits and
// the records of an episode, but the agent decides when to ask its model and when to call a tool.
// It is safe for concurrent use.
type Stage struct {
	ctx  context.Context // the attempt's
	over chan struct{}

	mu sync.Mutex // guards the fields below
	e  *episode
	// ended or fault is set once the attempt is over by its limits or by a fault.
	ended assay.Ended
	fault error
	// concluded is true once recording has ended.
	concluded bool
	// asking counts the requests in flight, and abandoned is true if the agent gave up waiting for
	// the latest one.
	asking    int
	abandoned bool
	// answers counts the agent's answers to the user.
	answers int
	// tooLong counts the requests that were longer than the model's context, and formless those whose
	// endpoint does not give replies the form that they want.
	tooLong, formless int
	// told is the turn of the latest call without calls left, from 1, or 0.
	told int
	// actions counts actions of the latest turn, and before records the ones before the first turn.
	actions int
	before  assay.TurnRecord
	// seen holds the messages in the transcript, and states holds the states that endpoints want
	// back, by the calls that they came with.
	seen   map[uint64]bool
	states map[string]*assay.State
	asked  askedFor
	// waiting has the calls that have arrived and were not executed yet, in order of arrival.
	waiting []*arrival
	// changed has the calls that the model asked for, by the number of the call that its framework
	// made of it, and refused has the calls that were not carried out.
	changed map[int]string
	refused []assay.RefusedCall
	// rates are those of the planted faults of the model, requests counts the requests that could meet
	// one, and planted are the faults that were met.
	rates    assay.ModelFaultRates
	requests int
	planted  []assay.ModelFaultRecord
}

// ErrOver answers requests after the end of an attempt.
var ErrOver = &assay.Fault{Kind: assay.Interrupted, Detail: "the attempt is over"}

var messageSeed = maphash.MakeSeed()

// Stage begins an attempt. It fails like [GivenPlan]. The context is the attempt's.
func (r *Runner) Stage(
	ctx context.Context, trial *assay.Trial, task *assay.Task,
) (*Stage, error) {
	e := r.newEpisode(trial, task)
	s := &Stage{
		ctx: ctx, e: e, over: make(chan struct{}),
		seen: make(map[uint64]bool), states: make(map[string]*assay.State),
		changed: make(map[int]string),
	}
	if err := e.begin(ctx); err != nil {
		return s, err
	}
	var err error
	if s.rates, err = assay.ParseModelFaults(trial.ModelFaults); err != nil {
		return s, err
	}
	if d, ok := e.world.(spec.Dialogue); ok && d.Begun() != nil {
		return s, d.Begun()
	}
	prompt := ""
	for _, m := range e.transcript.Messages {
		prompt += m.Content + "\n\n"
	}
	e.transcript.Messages = nil
	s.show(assay.Message{Role: assay.User, Content: prompt[:len(prompt)-2]})
	return s, nil
}

// Prompt returns the rules and the task as one text.
func (s *Stage) Prompt() string { return s.e.transcript.Messages[0].Content }

// Functions returns the tools that can be called now.
func (s *Stage) Functions() []assay.Function {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.e.permitted()
}

// Over is closed when a limit or a fault has ended the attempt. After a limit, the requests in
// flight are waited for first, because their endpoint bills them.
func (s *Stage) Over() <-chan struct{} { return s.over }

// Limited returns the limit that has ended the attempt, or "".
func (s *Stage) Limited() assay.Ended {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Settle waits until no request is in flight if a limit has ended the attempt, or until ctx ends.
func (s *Stage) Settle(ctx context.Context) {
	if s.Limited() == "" {
		return
	}
	select {
	case <-s.over:
	case <-ctx.Done():
	}
}

// execute executes a call.
func (s *Stage) execute(c *arrival) {
	e, turn, rec := s.e, s.turn(), &s.before
	if turn > 0 {
		rec = &e.transcript.Turns[turn-1]
	} else {
		e.progress.begin(0) // without turns, each call is a turn
	}
	e.overdrawn = false
	before := len(e.world.Calls())
	a := nativeAction(e.trial.Tools, assay.ToolCall{Name: c.name, Arguments: c.arguments})
	fields := e.carryOut(turn, []action{a}, rec)[0]
	fields["replies_left"] = e.trial.Setting.Turns - turn
	s.actions++
	if reason, ok := fields["refused"].(string); ok {
		s.refuse(assay.RefusedCall{
			Turn: turn, Tool: spec.Clip(c.name), Arguments: spec.Clip(c.arguments),
			Asked: spec.Clip(c.asked()), Why: reason,
		})
	} else if len(e.world.Calls()) > before {
		s.changed[before] = c.asked()
	}
	if c.call != nil {
		c.call.finish()
	}
	seconds, _ := fields["seconds"].(int)
	c.answer, c.slow = string(encode(fields)), time.Duration(seconds)*time.Second
	c.failed = fields["refused"] != nil || fields["success"] == false
	s.afterCall(turn)
}

// maxRefused is how many refused calls of a turn are kept apart. Agents may make thousands.
const maxRefused = 20

// refuse records a call that was not carried out.
func (s *Stage) refuse(c assay.RefusedCall) {
	n := len(s.refused)
	alike := func(r assay.RefusedCall) bool { return r.Turn == c.Turn && r.Why == c.Why }
	same := slices.IndexFunc(s.refused, func(r assay.RefusedCall) bool {
		return alike(r) && r.Tool == c.Tool && r.Arguments == c.Arguments && r.Asked == c.Asked
	})
	if same < 0 && n >= maxRefused && s.refused[n-maxRefused].Turn == c.Turn {
		same = n - 1
	}
	if same < 0 {
		s.refused = append(s.refused, c)
		same = n
	}
	s.refused[same].Times++
}

// afterCall ends the attempt if the call did.
func (s *Stage) afterCall(turn int) {
	if s.e.broken != nil {
		s.fail(s.e.broken)
	}
	if ended, stop := s.e.world.Stop(); stop {
		s.end(ended)
	}
	if !s.e.overdrawn {
		return
	}
	// A reply may have been written before the agent read that no calls are left.
	if s.told > 0 && (turn == 0 || s.told < turn+1) {
		s.end(assay.CallLimit)
	}
	s.told = turn + 1
}

// turn returns the number of replies so far.
func (s *Stage) turn() int { return len(s.e.transcript.Turns) }

// Chat sends a request of the agent to its model. The trial's own settings replace the agent's. A
// fault of the model ends the attempt, unless the agent itself has given up the request, which ends
// ctx, or has let the conversation outgrow the model's context. A reply to a request that was given up is
// paid, but is no turn.
func (s *Stage) Chat(
	ctx context.Context, provider assay.Provider, req assay.Request,
) (*assay.Response, error) {
	left, err := s.ask(&req)
	if err != nil {
		return &assay.Response{}, err
	}
	req.Budget = left
	resp, err := provider.Chat(ctx, &req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking--
	defer s.settle()
	if s.concluded {
		return resp, ErrOver
	}
	s.e.account(&req, resp)
	switch {
	case s.fault != nil:
		return resp, ErrOver
	case ctx.Err() != nil: // also if the reply was on its way: it reaches nobody
		s.abandoned = true
		return resp, cmp.Or(err, context.Cause(ctx))
	case s.turn() > 0 && TooLong(err): // the agent has let the conversation grow
		s.tooLong++
		return resp, err
	case WrongForm(err): // the agent may do without the form
		s.formless++
		return resp, err
	case err != nil:
		s.fail(err)
		return resp, err
	}
	s.abandoned = false
	for i := range req.Messages {
		s.show(req.Messages[i])
	}
	s.hear(resp)
	return resp, nil
}

// ask checks the limits, completes a request and returns the working time that is left for it.
func (s *Stage) ask(req *assay.Request) (time.Duration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOver() {
		return 0, ErrOver
	}
	e := s.e
	s.take(req.Messages)
	s.endTurn()
	switch spent, left := e.spent(), e.budget-e.waits.Working; {
	case s.isOver():
	case spent != "":
		s.end(spent)
	case s.usedUp():
		s.end(assay.TurnLimit)
	case e.budget > 0 && left <= 0:
		s.fail(e.outOfTime())
	default:
		s.asking++
		req.Model, req.Lane = e.trial.Model, e.attempt.Lane
		req.Sampling = over(e.trial.Sampling, req.Sampling)
		s.restore(req.Messages)
		return max(0, left), nil
	}
	return 0, ErrOver
}

// usedUp reports whether no reply is left for a further request. Refused forms are no turns, but end
// an agent that does nothing but repeat them.
func (s *Stage) usedUp() bool {
	turns := s.e.trial.Setting.Turns
	return s.turn()+s.asking+s.tooLong >= turns || s.formless > turns
}

// TooLong reports whether a request was longer than its model's context.
func TooLong(err error) bool {
	f := assay.AsFault(err)
	return f != nil && f.TooLong
}

// WrongForm reports whether a request was refused because of the form that it wants for the reply.
func WrongForm(err error) bool {
	f := assay.AsFault(err)
	return f != nil && f.Form
}

// over returns the settings of a trial, and the agent's where the trial has no setting.
func over(trial, agent assay.Sampling) assay.Sampling {
	trial.Temperature = cmp.Or(trial.Temperature, agent.Temperature)
	trial.TopP = cmp.Or(trial.TopP, agent.TopP)
	trial.MaxTokens = cmp.Or(trial.MaxTokens, agent.MaxTokens)
	trial.Seed = cmp.Or(trial.Seed, agent.Seed)
	trial.Effort = cmp.Or(trial.Effort, agent.Effort)
	trial.Thinking = cmp.Or(trial.Thinking, agent.Thinking)
	trial.ToolChoice = cmp.Or(trial.ToolChoice, agent.ToolChoice)
	return trial
}

// restore gives replies back the state that their endpoint wants again. Agents keep only the calls.
func (s *Stage) restore(messages []assay.Message) {
	for i := range messages {
		m := &messages[i]
		m.State = nil
		if len(m.Calls) > 0 {
			m.State = s.states[m.Calls[0].ID]
		}
	}
}

// hear records a reply.
func (s *Stage) hear(resp *assay.Response) {
	reply := s.e.hear(resp)
	s.asked.hear(s.turn(), reply, s.e.permitted())
	s.seen[hashOf(reply)] = true
	if reply.State != nil && len(reply.Calls) > 0 {
		s.states[reply.Calls[0].ID] = reply.State
	}
	s.e.progress.begin(s.turn())
}

// endTurn looks for loops in the latest turn.
func (s *Stage) endTurn() {
	if n := s.turn(); n > 0 && s.asking == 0 {
		s.e.progress.end(s.actions, &s.e.transcript.Turns[n-1])
		s.actions = 0
		if s.e.progress.stops() {
			s.end(assay.Loop)
		}
	}
}

// show adds a message to the transcript unless it is in it. Agents send the whole conversation with
// every request, and may shorten it.
func (s *Stage) show(m assay.Message) {
	if h := hashOf(&m); !s.seen[h] {
		s.seen[h] = true
		m.State = nil
		s.e.say(m)
	}
}

// hashOf returns a hash of what a message says. Frameworks write the arguments of calls anew.
func hashOf(m *assay.Message) uint64 {
	text := fmt.Sprint(m.Role, "\x00", m.Content, "\x00", m.CallID)
	for _, c := range m.Calls {
		text += fmt.Sprint("\x00", c.ID, "\x00", c.Name, "\x00", canonical(c.Arguments))
	}
	return maphash.String(messageSeed, text)
}

func (s *Stage) isOver() bool { return s.ended != "" || s.fault != nil }

func (s *Stage) end(ended assay.Ended) {
	if !s.isOver() {
		s.ended = ended
		s.dismiss()
		s.settle()
	}
}

// settle closes over when a limit has ended the attempt and the last request in flight has ended.
func (s *Stage) settle() {
	if s.ended != "" && s.asking == 0 {
		close(s.over)
	}
}

func (s *Stage) fail(err error) {
	if !s.isOver() {
		s.fault = err
		s.dismiss()
		close(s.over)
	}
}

// Conclude ends the attempt in an outcome or a fault. A fault or a limit that has ended it before
// counts more than how the agent ended, because the agent was stopped for it. The agent's answer is
// the last message.
func (s *Stage) Conclude(
	ended assay.Ended, answer string, record *assay.AgentRecord, err error,
) (*assay.Attempt, *assay.Transcript) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.e
	if e.world != nil {
		s.leave()
		s.endTurn()
		s.fault = e.collect(s.fault)
		for i := range e.transcript.Calls {
			e.transcript.Calls[i].Asked = s.changed[i]
		}
	}
	switch {
	case s.fault != nil:
		err = s.fault
	case s.ended != "":
		ended, err = s.ended, nil
	case err == nil && (s.abandoned || s.asking > 0) && ended != assay.Finished: // it may end before we notice
		err = &assay.Fault{
			Kind: assay.Timeout, Detail: "the agent gave up waiting for a reply of its model",
		}
	}
	if err != nil {
		ended = ""
	}
	s.noteCalls(record, ended)
	if answer != "" {
		e.say(assay.Message{Role: assay.Assistant, Content: answer})
	}
	e.transcript.Agent = record
	e.transcript.Ended = ended
	s.fail(cmp.Or(err, error(ErrOver))) // refuse later requests
	s.concluded = true
	e.conclude(err)
	return &e.attempt, &e.transcript
}

// noteCalls records what became of the calls of an attempt that ended like this.
func (s *Stage) noteCalls(record *assay.AgentRecord, ended assay.Ended) {
	a := &s.e.attempt
	if a.Unmetered = s.turn() == 0 && s.fault == nil && len(s.planted) == 0; !a.Unmetered {
		a.NoteCalls(assay.CallsUnasked, s.asked.unasked)
	}
	a.NoteCalls(assay.CallsChanged, s.asked.changed)
	early, late, lost := 0, 0, s.lost(ended)
	for _, r := range s.refused {
		if r.Turn == 0 {
			early += r.Times
		}
	}
	a.NoteCalls(assay.CallsRefused, early)
	for _, l := range lost {
		if l.Late {
			late++
		}
	}
	a.NoteCalls(assay.CallsLost, len(lost)-late)
	a.NoteCalls(assay.CallsLate, late)
	if record != nil {
		record.Refused, record.Lost = s.refused, lost
		record.ModelFaults = slices.Clone(s.planted)
	}
}
