package score

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/pilot"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A Reason says how an episode ended, and what went wrong first. It has the same rules in every
// world.
type Reason struct {
	Stop assay.Stop `json:"stop"`
	// Cause is empty for full success. Turn and Call locate it, counted from 1. Both are 0 if it has
	// no place, and Call is 0 if it is not a call.
	Cause assay.Cause `json:"cause"`
	Turn  int         `json:"turn"`
	Call  int         `json:"call"`
	// Because states what happened, and Right what would have been right.
	Because string `json:"because"`
	Right   string `json:"right"`
}

// declines finds the words with which a model says that it does not go on. It knows English only.
var declines = regexp.MustCompile(
	`(?i)\b(can(?:not|['’]t| not)|unable|impossible|won['’]t|will not|not able|give up|giving up|` +
		`sorry|refuse|decline|must not)\b`)

// claims finds the usual words with which a model says that it is done.
var claims = regexp.MustCompile(`(?i)\bTASK_COMPLETED\b|\btask (?:is |has been )?completed?\b`)

// An inquiry looks for the reason of an outcome.
type inquiry struct {
	catalog *assay.Catalog
	e       *Explanation
	trial   *assay.Trial
	task    *assay.Task
	tr      *assay.Transcript

	// The rest is only there without full success.
	facts spec.Facts
	of    []int // the step that each call has done, or -1
	by    []int // the call that has done each step, or -1
	acted []bool
	ended assay.Ended // call_limit if that is why nothing more could be done
}

func newInquiry(
	catalog *assay.Catalog, e *Explanation, trial *assay.Trial, task *assay.Task, tr *assay.Transcript,
) *inquiry {
	q := &inquiry{catalog: catalog, e: e, trial: trial, task: task, tr: tr, ended: tr.Ended}
	if e.Outcome.Level == assay.FullSuccess {
		return q
	}
	q.facts = world.Of(trial.World).Facts(catalog, task, tr, &e.Outcome)
	q.of = slices.Repeat([]int{-1}, len(tr.Calls))
	q.by = slices.Repeat([]int{-1}, len(q.facts.Steps))
	for i := range tr.Calls {
		for _, s := range q.facts.Calls[i].Steps {
			if tr.Calls[i].Happened() && q.by[s] < 0 && q.due(s, tr.Calls[i].Tool) {
				q.of[i], q.by[s] = s, i
				break
			}
		}
	}
	q.acted = q.acting()
	if q.exhausted() {
		q.ended = assay.CallLimit
	}
	return q
}

// exhausted reports whether the episode went on to its end without the call that it lacked, because
// all calls were used up. Nothing that a model does then can help any more.
func (q *inquiry) exhausted() bool {
	last := len(q.tr.Calls) - 1
	if last < 0 || q.trial.Calls == 0 || len(q.tr.Calls) < q.trial.Calls {
		return false
	}
	switch q.tr.Ended {
	case assay.CallLimit, assay.FailureStreak, assay.AgentError, assay.AgentTimeout:
		return false
	}
	if len(q.facts.Steps) == 0 {
		return !q.tr.Calls[last].Happened() && !q.tr.Calls[last].Mistake
	}
	for s := range q.facts.Steps {
		if q.missing(s) && !q.spared(s) {
			return true
		}
	}
	return false
}

// due reports whether a call of a tool can do a step now. If the plan calls the tool several times, the
// steps between have to be done first. Otherwise, the call is a repetition.
func (q *inquiry) due(step int, tool string) bool {
	first := q.stepOf(tool, 0)
	return step == first || q.facts.Steps[step].Effect || !q.facts.Ordered || !slices.Contains(q.by[first:step], -1)
}

// acting reports for each turn whether the model did more than talk: it called a tool or tried to, or
// looked for one.
func (q *inquiry) acting() []bool {
	acted := make([]bool, len(q.tr.Turns))
	for i, t := range q.tr.Turns {
		acted[i] = t.Lookups > 0
	}
	for _, c := range q.tr.Calls {
		if c.Turn > 0 && c.Turn <= len(acted) {
			acted[c.Turn-1] = true
		}
	}
	turn := 0
	for _, m := range q.tr.Messages {
		if m.Role != assay.Assistant {
			continue
		}
		if turn < len(acted) && tries(&m) {
			acted[turn] = true
		}
		turn++
	}
	return acted
}

// tries reports whether a reply calls something, or was meant to.
func tries(m *assay.Message) bool { return len(m.Calls) > 0 || strings.Contains(m.Content, "<tool_") }

func (q *inquiry) reason() Reason {
	r := Reason{}
	if q.e.Outcome.Level != assay.FullSuccess {
		r = q.find()
	}
	r.Stop = q.stop()
	return r
}

// stops are the stops that do not depend on the last reply.
var stops = map[assay.Ended]assay.Stop{
	assay.Finished: assay.Answered, assay.TurnLimit: assay.OutOfTurns, assay.CallLimit: assay.OutOfCalls,
	assay.TokenLimit: assay.OutOfTokens, assay.CostLimit: assay.OutOfMoney, assay.AgentTimeout: assay.OutOfTime,
	assay.AgentError: assay.Crashed, assay.Loop: assay.Looped, assay.FailureStreak: assay.Failed,
}

func (q *inquiry) stop() assay.Stop {
	ended := q.tr.Ended
	if ended == assay.Finished && q.tr.Agent != nil && !world.Of(q.trial.World).Environments {
		return q.silentEnd()
	}
	if ended != assay.TurnLimit && ended != assay.Loop || len(q.tr.Turns) == 0 {
		return stops[ended]
	}
	last := len(q.tr.Turns)
	acted := len(q.tr.Calls) > 0 && q.tr.Calls[len(q.tr.Calls)-1].Turn >= last ||
		q.tr.Turns[last-1].Lookups > 0
	switch {
	case acted:
	case claims.MatchString(q.said()): // the world did not accept it
		return assay.Answered
	case assay.Truncated(q.tr.Turns[last-1].Finish):
		return assay.CutOff
	case declines.MatchString(q.said()):
		return q.givesUp()
	}
	return stops[ended]
}

func (q *inquiry) givesUp() assay.Stop {
	if len(q.tr.Calls) == 0 {
		return assay.Declined
	}
	return assay.GaveUp
}

// silentEnd is the stop of a foreign agent that ended without an error, which is no word about its
// work. Users judge an environment's last answer.
func (q *inquiry) silentEnd() assay.Stop {
	said := q.said()
	switch {
	case q.e.Outcome.Level == assay.FullSuccess, claims.MatchString(said),
		strings.Contains(said, own.EndWordOf(q.task)):
		return assay.Answered
	case declines.MatchString(said):
		return q.givesUp()
	}
	return assay.LeftEarly
}

// deserted words how a foreign agent ended while its model was still acting. It returns "" if a
// limit or the model ended the episode.
func (q *inquiry) deserted() string {
	switch {
	case q.tr.Ended == assay.AgentTimeout:
		return "the agent used up its own time"
	case q.tr.Ended == assay.AgentError:
		if q.tr.Agent == nil || q.tr.Agent.Exit == "" {
			return "the agent failed"
		}
		return "the agent failed: " + q.tr.Agent.Exit
	case q.ended != assay.Finished || q.tr.Agent == nil || !q.acts():
		return ""
	}
	for _, l := range q.tr.Agent.Lost {
		if l.Turn == len(q.tr.Turns) && !l.Late {
			return "the agent ended, and did not carry out the call of " + l.Tool +
				" that its model asked for"
		}
	}
	return "the agent ended before its model did"
}

// acts reports whether the last reply to an agent asked for calls. If there is no reply, nobody knows
// whether a model made the calls.
func (q *inquiry) acts() bool {
	n := len(q.tr.Turns)
	last := len(q.tr.Calls) > 0 && q.tr.Calls[len(q.tr.Calls)-1].Turn == n
	if n == 0 {
		return last && q.stop() == assay.LeftEarly
	}
	return last || q.tr.Turns[n-1].Lookups > 0 ||
		slices.ContainsFunc(q.tr.Agent.Refused, func(r assay.RefusedCall) bool { return r.Turn == n }) ||
		slices.ContainsFunc(q.tr.Agent.Lost, func(l assay.LostCall) bool { return l.Turn == n })
}

// failed returns the reason that an agent deserted its task.
func (q *inquiry) failed(how, right string) Reason {
	return Reason{Cause: assay.AgentFailed, Turn: len(q.tr.Turns), Because: how, Right: right}
}

// said returns the model's last words. An agent whose last word is not at the end said nothing.
func (q *inquiry) said() string {
	for _, m := range slices.Backward(q.tr.Messages) {
		if m.Role == assay.Assistant && (q.tr.Agent == nil || len(m.Calls) == 0) {
			return m.Content
		}
		if q.tr.Agent != nil {
			break
		}
	}
	return ""
}

// find returns what a person would name first.
func (q *inquiry) find() Reason {
	if q.overruled() {
		said := q.tr.Opinion
		return Reason{
			Cause: assay.JudgeSaidNo, Because: fmt.Sprintf("%s (%s)", said.Reason, said.Model),
			Right: "what the rubric asks for",
		}
	}
	r := q.blame()
	if f := q.stranded(); f != nil && (r.Turn == 0 || r.Turn >= f.Turn) {
		switch r.Cause {
		case assay.BadLuck, assay.HarmfulEffect, assay.RepeatedEffect: // asking again would not have helped
		default:
			return q.unrecovered(f)
		}
	}
	return r
}

// overruled reports whether the episode would be a full success if the model that judges had not said no.
func (q *inquiry) overruled() bool {
	if q.e.Outcome.Verdict != assay.Fail {
		return false
	}
	before := *q.tr
	before.Opinion = nil
	return world.Of(q.trial.World).Verdict(q.catalog, *q.task, &before, nil).Level == assay.FullSuccess
}

// stranded returns the planted fault of its model after which an agent got no reply, if the agent itself
// ended. It returns nil without such a fault.
func (q *inquiry) stranded() *assay.ModelFaultRecord {
	all := q.tr.ModelFaults()
	switch q.tr.Ended {
	case assay.Finished, assay.AgentError, assay.AgentTimeout:
		if n := len(all); n > 0 && all[n-1].Delivered && !all[n-1].Recovered {
			return &all[n-1]
		}
	}
	return nil
}

// unrecovered is the reason that an agent got no reply after a planted fault of its model.
func (q *inquiry) unrecovered(f *assay.ModelFaultRecord) Reason {
	ends := map[assay.Ended]string{
		assay.Finished: "the agent ended", assay.AgentError: "the agent failed",
		assay.AgentTimeout: "the agent used up its own time",
	}[q.tr.Ended]
	if q.tr.Agent.Exit != "" {
		ends += ": " + q.tr.Agent.Exit
	}
	return Reason{
		Cause: assay.ModelFailed, Turn: f.Turn, Right: "to ask the model again",
		Because: fmt.Sprintf("the trial planted the fault %s in request %d to its model (%s), and %s",
			f.Kind, f.Request, f.Kind.Rule().Says, ends),
	}
}

// blame returns what went wrong first by the calls.
func (q *inquiry) blame() Reason {
	switch {
	case len(q.tr.Calls) == 0:
		return q.withoutCall()
	case q.tr.Ended == assay.AgentError || q.tr.Ended == assay.AgentTimeout:
		return q.failed(q.deserted(), "to go on to the end")
	case len(q.facts.Steps) == 0:
		return q.unplanned()
	}
	r := q.first()
	if i, due := q.stray(); i >= 0 && (r.Call == 0 || i+1 < r.Call || r.Cause == assay.NotRetried && i+1 == r.Call) &&
		!ofLimits(r.Cause) && r.Cause != assay.AgentFailed {
		return q.useless(i, "a call of "+q.name(due))
	}
	return r
}

// first returns what went wrong first with the steps of the plan.
func (q *inquiry) first() Reason {
	harm, step := q.harm()
	at, omission := q.omission()
	earlier := omission.Call > 0 && omission.Call < harm.Call && at >= 0 && q.facts.Steps[at].Effect
	if harm.Cause == "" || earlier && step != at && !ofLimits(omission.Cause) {
		return omission
	}
	return harm
}

// stray returns the first call of a tool that the task has no use for, made where a step was due that was
// never tried, and that step, or -1. If the order is free and other steps came later, it stands for none
// of them.
func (q *inquiry) stray() (call, due int) {
	for i, c := range q.tr.Calls {
		if q.stepOf(c.Tool, 0) >= 0 || q.needed(c.Tool) || !q.wasted(i) {
			continue
		}
		later := slices.ContainsFunc(q.of[i:], func(s int) bool { return s >= 0 })
		if !q.facts.Ordered && later {
			continue
		}
		for s := range q.facts.Steps {
			step := &q.facts.Steps[s]
			if step.Anywhere || q.by[s] >= 0 && q.by[s] < i {
				continue
			}
			if !q.missing(s) || q.spared(s) || len(q.tries(s)) > 0 {
				break
			}
			if !step.Optional || step.Effect {
				return i, s
			}
		}
	}
	return -1, -1
}

// useless explains a call of a tool that the task has no use for.
func (q *inquiry) useless(i int, right string) Reason {
	return q.at(i, assay.WrongTool, "the task has no use for "+q.tr.Calls[i].Tool, right)
}

// ofLimits reports whether a cause says that a limit was reached, and not what a model did.
func ofLimits(c assay.Cause) bool { return c == assay.BadLuck || c == assay.HitLimit }

// at returns a reason that is a call.
func (q *inquiry) at(i int, cause assay.Cause, because, right string) Reason {
	return Reason{
		Cause: cause, Turn: q.tr.Calls[i].Turn, Call: i + 1, Because: because, Right: right,
	}
}

// withoutCall finds the reason of an episode in which no call was carried out.
func (q *inquiry) withoutCall() Reason {
	right := "a call"
	if len(q.e.Plan) > 0 {
		right = "a call of " + q.e.Plan[0].Tool
	}
	turn := 0
	for _, m := range q.tr.Messages {
		if m.Role != assay.Assistant {
			continue
		}
		turn++
		tried := tries(&m)
		if q.tr.Agent != nil { // it need not have carried out what can be carried out
			tried = slices.ContainsFunc(m.Calls, func(c assay.ToolCall) bool { return !isObject(c.Arguments) })
		}
		if tried && turn <= len(q.tr.Turns) && q.tr.Turns[turn-1].Lookups == 0 {
			return Reason{
				Cause: assay.MalformedCall, Turn: turn, Because: "no call could be carried out", Right: right,
			}
		}
	}
	how := q.deserted()
	switch {
	case q.tr.Refused() > 0:
		return Reason{Cause: assay.MalformedCall, Because: spec.Made(q.tr), Right: right}
	case how != "":
		return q.failed(how+", and no tool had been called", right)
	case q.claimed():
		return Reason{
			Cause: assay.FalseClaim, Turn: min(1, len(q.tr.Turns)),
			Because: "it said that it was done, and had not called any tool", Right: right,
		}
	}
	because := "it never called a tool"
	if spec.Lookups(q.tr) > 0 {
		because = "it only searched for tools"
	}
	return Reason{Cause: assay.NoAction, Turn: min(1, len(q.tr.Turns)), Because: because, Right: right}
}

// isObject reports whether the arguments of a call can be read. None are none.
func isObject(arguments string) bool {
	var args map[string]json.RawMessage
	return strings.TrimSpace(arguments) == "" || json.Unmarshal([]byte(arguments), &args) == nil
}

// claimed reports whether the model or its agent said in the way that the world asks for that it was
// done. The pilot world does not accept every such claim.
func (q *inquiry) claimed() bool {
	switch said := q.said(); {
	case q.trial.World == pilot.Name:
		return q.tr.Ended == assay.Finished || q.stops() && pilot.Finished(said)
	case q.tr.Agent != nil && !world.Of(q.trial.World).Environments:
		return q.tr.Ended == assay.Finished && strings.Contains(said, own.EndWordOf(q.task))
	}
	return q.tr.Ended == assay.Finished
}

// stops reports whether the episode ended because nobody acted any more, and not by a limit.
func (q *inquiry) stops() bool {
	return q.ended == assay.Finished || q.idleFrom() > 0
}

// idleFrom returns the first of the turns at the end in which the model only talked, or 0.
func (q *inquiry) idleFrom() int {
	if q.ended == assay.CallLimit {
		return 0 // its last reply called a tool, or could not have called one
	}
	turn := len(q.acted)
	for turn > 0 && !q.acted[turn-1] {
		turn--
	}
	if turn == len(q.acted) {
		return 0
	}
	return turn + 1
}

// isOf reports whether a step is a call of a tool.
func (q *inquiry) isOf(step int, tool string) bool {
	return slices.Contains(q.facts.Steps[step].Tools, tool)
}

// stepOf returns the first step from a place on that is a call of a tool, or -1.
func (q *inquiry) stepOf(tool string, from int) int {
	for s := from; s < len(q.facts.Steps); s++ {
		if q.isOf(s, tool) {
			return s
		}
	}
	return -1
}

func (q *inquiry) name(step int) string { return strings.Join(q.facts.Steps[step].Tools, " or ") }

// needed reports whether the task requires a tool or builds on it.
func (q *inquiry) needed(tool string) bool {
	return spec.Strayed(q.catalog, q.e.Outcome.RequiredTools,
		[]assay.CallRecord{{Tool: tool}}) < 0
}

// missing reports whether a step lacks a call that happened and was right. If the judge is content
// with what was done, only an answer can lack the call.
func (q *inquiry) missing(step int) bool {
	s := &q.facts.Steps[step]
	for next := step; s.Anywhere && next < len(q.by); next++ {
		if !q.facts.Steps[next].Anywhere && q.by[next] >= 0 {
			return false // what builds on it worked
		} else if !q.facts.Steps[next].Anywhere {
			break
		}
	}
	return q.by[step] < 0 && !(q.facts.Done && (s.Effect || q.facts.Answered))
}

// harm finds the first change that the task did not ask for, and the step that it was meant for, or
// -1.
func (q *inquiry) harm() (r Reason, step int) {
	for i := range q.tr.Calls {
		c, fit := &q.tr.Calls[i], &q.facts.Calls[i]
		tool, _ := q.catalog.Tool(c.Tool)
		changes := tool.Effect != "" && !fit.Allowed && !q.facts.Done || fit.Unwanted
		step = q.openStep(i)
		switch {
		case fit.Forbidden:
			return q.at(i, assay.HarmfulEffect, "the task forbids the call of "+c.Tool, "not to call it"), step
		case !c.Happened() || q.of[i] >= 0 || !changes:
		case len(fit.Steps) > 0 || fit.Values && step < 0 && q.had(i):
			return q.repeated(i), step
		case step >= 0 && fit.Values && q.by[step] < 0: // it follows from what is missing before it
		case step >= 0:
			return q.unsound(i, step), step
		default:
			return q.at(i, assay.HarmfulEffect, "the task did not ask for the change that "+c.Tool+" made",
				"not to call it"), -1
		}
	}
	return Reason{}, -1
}

// openStep returns the first step of a call's tool that had not been done before, or -1.
func (q *inquiry) openStep(call int) int {
	for s := range q.facts.Steps {
		if q.isOf(s, q.tr.Calls[call].Tool) && (q.by[s] < 0 || q.by[s] >= call) {
			return s
		}
	}
	return -1
}

// repeated explains an effect that had happened.
func (q *inquiry) repeated(i int) Reason {
	tool := q.tr.Calls[i].Tool
	before := slices.IndexFunc(q.tr.Calls, func(c assay.CallRecord) bool { return c.Tool == tool && c.Happened() })
	because := fmt.Sprintf("%s had happened in call %d", tool, before+1)
	if !q.tr.Calls[before].OK {
		because += ", whose answer was lost"
	}
	return q.at(i, assay.RepeatedEffect, because, "to find out whether it had happened")
}

// omission finds the reason why a step of the plan, or the end, is missing. It returns the step, or
// -1. A read of something else, which nobody asks for, only matters if no other step was tried in vain.
func (q *inquiry) omission() (step int, r Reason) {
	for _, harmless := range []bool{false, true} { // the steps that were tried come first
		for s := range q.facts.Steps {
			tries := q.tries(s)
			if !q.missing(s) || len(tries) == 0 {
				continue
			}
			last, needed := tries[len(tries)-1], &q.facts.Steps[s]
			if harmless == (needed.Optional && !needed.Effect && q.tr.Calls[last].Happened()) {
				return s, q.tried(s, last)
			}
		}
	}
	for s := range q.facts.Steps {
		if q.missing(s) && !q.spared(s) {
			return s, q.untried(s)
		}
	}
	return -1, q.ending()
}

// tries returns the calls of a step's tool that did not do another step.
func (q *inquiry) tries(step int) (calls []int) {
	for i, c := range q.tr.Calls {
		if q.of[i] < 0 && q.isOf(step, c.Tool) && !q.repeats(i) {
			calls = append(calls, i)
		}
	}
	return calls
}

// repeats reports whether a call is right for steps that had all been done.
func (q *inquiry) repeats(i int) bool {
	fit := q.facts.Calls[i].Steps
	return len(fit) > 0 && !slices.ContainsFunc(fit, func(s int) bool { return q.by[s] < 0 || q.by[s] > i })
}

// spared reports whether all that a judge misses may be the answer: the step only reads, the judge does
// not ask for it, and all changes were made.
func (q *inquiry) spared(step int) bool {
	s := &q.facts.Steps[step]
	if !s.Optional || s.Effect || !q.claimed() {
		return false
	}
	changes := 0
	for k, s := range q.facts.Steps {
		if s.Effect && q.by[k] < 0 {
			return false
		} else if s.Effect {
			changes++
		}
	}
	return changes > 0
}

// tried explains a step whose last try is a call.
func (q *inquiry) tried(step, last int) Reason {
	if !slices.Contains(q.facts.Calls[last].Steps, step) {
		last = q.firstLike(step, last)
	}
	c := &q.tr.Calls[last]
	right := "a call of " + q.name(step)
	switch {
	case c.Mistake:
		return q.mistake(last, right)
	case !c.Happened():
		return q.unlucky(step, last, right)
	}
	return q.unsound(last, step)
}

// firstLike returns the first try at a step that went wrong with the same arguments as a call: it was
// refused for the same reason, or it happened. Without one, it returns the call.
func (q *inquiry) firstLike(step, call int) int {
	c := &q.tr.Calls[call]
	for _, i := range q.tries(step) {
		if b := &q.tr.Calls[i]; b.Tool == c.Tool && b.Mistake == c.Mistake && (b.Happened() || b.Mistake && b.Code == c.Code) &&
			sameJSON(b.Arguments, c.Arguments) {
			return i
		}
	}
	return call
}

// mistake explains a call that was refused for the model's own mistake. The first of the mistakes
// in a row counts.
func (q *inquiry) mistake(last int, right string) Reason {
	first := last
	for first > 0 && q.tr.Calls[first-1].Mistake && q.stepOf(q.tr.Calls[first-1].Tool, 0) >= 0 {
		first--
	}
	c, fit := &q.tr.Calls[first], &q.facts.Calls[first]
	switch {
	case len(fit.Waits) > 0:
		return q.premature(first, fit.Waits[0], q.calledAfter(fit.Waits[0], first))
	case c.Code == assay1.DependencyFail: // the catalog has changed
		return q.premature(first, "another tool", false)
	}
	if strings.HasSuffix(right, " "+c.Tool) {
		right += " with arguments that fit"
	}
	if c.Code != own.InvalidInput { // the tool refused what it was asked to do
		step := q.stepOf(c.Tool, 0)
		if len(fit.Steps) > 0 {
			step = fit.Steps[0]
		}
		for s := range max(step, 0) {
			open := q.by[s] < 0 || q.by[s] > first
			if open && (len(fit.Steps) > 0 || q.facts.Steps[s].Effect) {
				return q.premature(first, q.name(s), q.by[s] > first)
			}
		}
		if len(fit.Steps) > 0 {
			return q.at(first, assay.Unclear, "the right call of "+c.Tool+" was refused: "+c.Code, right)
		}
	}
	if i := q.source(first); i >= 0 {
		return q.believed(i)
	}
	return q.at(first, assay.WrongArgument, c.Tool+" was refused: "+c.Code, right)
}

// calledAfter reports whether a tool was called after a call.
func (q *inquiry) calledAfter(tool string, call int) bool {
	return slices.ContainsFunc(q.tr.Calls[call+1:], func(c assay.CallRecord) bool { return c.Tool == tool })
}

// premature explains a call that needed a step. If that came later, the order was wrong.
func (q *inquiry) premature(i int, needs string, later bool) Reason {
	tool := q.tr.Calls[i].Tool
	if later {
		return q.at(i, assay.WrongOrder, fmt.Sprintf("%s needs %s, which had not succeeded", tool, needs),
			"a call of "+needs+" before it")
	}
	for k, s := range q.of[:i] { // it may have gone on before
		if step := q.stepOf(needs, 0); step >= 0 && s > step && !q.facts.Steps[s].Anywhere {
			i = k
			break
		}
	}
	return q.at(i, assay.SkippedStep, fmt.Sprintf("it went on with %s without %s", q.tr.Calls[i].Tool, needs),
		"a call of "+needs)
}

// unsound explains a call that happened with wrong data or values, or before its turn.
func (q *inquiry) unsound(i, step int) Reason {
	c, fit := &q.tr.Calls[i], &q.facts.Calls[i]
	if fit.Values {
		for s := range step {
			if q.by[s] < 0 || q.by[s] > i {
				return q.premature(i, q.name(s), q.by[s] > i)
			}
		}
	} else if from := q.source(i); from >= 0 {
		return q.believed(from)
	}
	return q.at(i, assay.WrongArgument, c.Tool+" had the wrong data or values",
		"a call of "+q.name(step)+" with the right ones")
}

// unlucky explains a step whose last call did not happen.
func (q *inquiry) unlucky(step, last int, right string) Reason {
	c := &q.tr.Calls[last]
	failed, again := fmt.Sprintf("call %d (%s) failed by chance", last+1, c.Tool), right+" again"
	if c.Met().Rule().Permanent {
		if other := q.substitute(c.Tool); other != "" {
			again = "a call of " + other + ", which does the same"
		}
		failed = fmt.Sprintf("call %d (%s) found that the tool is down", last+1, c.Tool)
		if q.deserted() == "" && !q.winnable() {
			return q.at(last, assay.BadLuck, failed+", and the task's plan cannot do without it",
				"the same, with better luck")
		}
	}
	for i := last + 1; i < len(q.tr.Calls); i++ {
		later := q.stepOf(q.tr.Calls[i].Tool, step+1)
		if !q.facts.AnyOrder && q.tr.Calls[i].Turn > c.Turn && step >= 0 && later >= 0 && !q.facts.Steps[later].Anywhere &&
			!q.isOf(step, q.tr.Calls[i].Tool) {
			if c.OK {
				return q.believed(last)
			}
			return q.at(i, assay.SkippedStep, failed+", and it went on with "+q.tr.Calls[i].Tool, again)
		}
	}
	how := q.deserted()
	switch {
	case how != "":
		return q.at(last, assay.AgentFailed, failed+", and then "+how, again)
	case q.stops() && c.OK: // the answer was an old one
		return q.believed(last)
	case q.stops():
		return q.at(last, assay.NotRetried, failed+" and was not made again", again)
	}
	return q.limit(right)
}

// substitute returns a tool that does the work of one that is down or corrupted and that is not known to be, or "".
func (q *inquiry) substitute(tool string) string {
	work := q.catalog.Work(tool)
	for _, name := range append([]string{work}, q.catalog.Substitutes(work)...) {
		if !slices.ContainsFunc(q.tr.Calls, func(c assay.CallRecord) bool {
			return c.Tool == name && (c.Met().Rule().Permanent || c.Met().Rule().Stays)
		}) {
			return name
		}
	}
	return ""
}

// untried explains a step that was never tried.
func (q *inquiry) untried(step int) Reason {
	right := "a call of " + q.name(step)
	last := len(q.tr.Calls) - 1
	if c := &q.tr.Calls[last]; !c.Mistake && !c.Happened() && !q.wasted(last) {
		return q.unlucky(-1, last, "a call of "+c.Tool) // a tool that a step builds on
	}
	for i := range q.tr.Calls {
		if s := q.of[i]; s > step && !q.facts.Steps[s].Anywhere && !q.facts.AnyOrder {
			if p := slices.IndexFunc(q.by[:s], func(by int) bool { return by > i }); p >= 0 {
				return q.premature(i, q.name(p), true)
			}
			return q.at(i, assay.SkippedStep, "it went on with "+q.tr.Calls[i].Tool, right)
		}
	}
	if r := q.gaveUp(); r.Cause != "" {
		return r
	}
	if from := q.useful() + 1; from <= last && !(q.stops() && q.again(from)) {
		if !q.stops() {
			if r := q.luckless(); r.Cause != "" {
				return r
			}
		}
		return q.waste(from, right)
	}
	if how := q.deserted(); how != "" {
		return q.failed(how, right)
	}
	if q.stops() {
		if i := q.halved(step); i >= 0 {
			return q.believed(i)
		}
	}
	if q.claimed() && q.stops() {
		return Reason{
			Cause: assay.SkippedStep, Turn: q.turnAfter(last),
			Because: "it said that it was done", Right: right,
		}
	}
	if q.stops() {
		return q.idle(q.idleFrom(), assay.NoAction, right)
	}
	return q.limit(right)
}

// turnAfter returns the turn after a call, as far as there is one.
func (q *inquiry) turnAfter(call int) int {
	return min(len(q.tr.Turns), q.tr.Calls[call].Turn+1)
}

// idle explains an episode that ended because nobody acted from a turn on.
func (q *inquiry) idle(turn int, cause assay.Cause, right string) Reason {
	turn = max(turn, q.turnAfter(len(q.tr.Calls)-1))
	because := "nothing was done after the last call"
	if n := len(q.tr.Turns) - turn + 1; n > 0 {
		because = fmt.Sprintf("the last %s made no call", assay.Counted(n, "turn"))
	}
	return Reason{Cause: cause, Turn: turn, Because: because, Right: right}
}

// gaveUp explains an episode in which nobody acted after a call that happened but whose answer was
// lost.
func (q *inquiry) gaveUp() Reason {
	last := len(q.tr.Calls) - 1
	c := &q.tr.Calls[last]
	if c.OK || !c.Happened() || !q.stops() || q.deserted() != "" {
		return Reason{}
	}
	return q.at(last, assay.NotRetried,
		fmt.Sprintf("the answer of call %d (%s) was lost, and it stopped there", last+1, c.Tool),
		"to find out whether it had happened, and to go on")
}

// wasted reports whether a call did not do a step and was no try at one that was still open, nor at
// something that a step builds on.
func (q *inquiry) wasted(i int) bool {
	c := &q.tr.Calls[i]
	open := slices.ContainsFunc(q.facts.Calls[i].Steps, func(s int) bool { return q.by[s] < 0 || q.by[s] > i })
	builds := !q.facts.Planned && !q.e.Path[i].Wasted
	return q.of[i] < 0 && !(open && !c.Happened() && !c.Mistake) && !builds
}

// useful returns the last call that was not wasted, or -1.
func (q *inquiry) useful() int {
	for i := range slices.Backward(q.tr.Calls) {
		if !q.wasted(i) {
			return i
		}
	}
	return -1
}

// firstWaste returns the first call that took something from the limit that ended the episode and did
// not bring the task forward, or -1.
func (q *inquiry) firstWaste() int {
	for i, c := range q.tr.Calls {
		useful := false // another call of the turn was
		for k, other := range q.tr.Calls {
			useful = useful || other.Turn == c.Turn && !q.wasted(k) && q.ended == assay.TurnLimit
		}
		if q.wasted(i) && !useful {
			return i
		}
	}
	return -1
}

// again reports whether all calls from a place on repeat what had been done.
func (q *inquiry) again(from int) bool {
	for i := from; i < len(q.tr.Calls); i++ {
		if !q.had(i) {
			return false
		}
	}
	return true
}

// had reports whether the tool of a call had worked before.
func (q *inquiry) had(i int) bool {
	return slices.ContainsFunc(q.tr.Calls[:i], func(b assay.CallRecord) bool {
		return b.Tool == q.tr.Calls[i].Tool && b.Happened()
	})
}

// waste explains a call that did not bring the task forward.
func (q *inquiry) waste(i int, right string) Reason {
	c := &q.tr.Calls[i]
	step := q.stepOf(c.Tool, 0)
	switch {
	case c.Mistake && (step >= 0 || q.needed(c.Tool)):
		return q.mistake(i, right)
	case q.had(i):
		return q.at(i, assay.RetriedTooMuch, c.Tool+" had succeeded before", right)
	case step >= 0 && c.Happened():
		return q.unsound(i, step)
	}
	return q.useless(i, right)
}

// longSearch is how many turns with nothing but searches at the end are no work any more.
const longSearch = 3

// limit explains an episode that a limit ended while the model was acting.
func (q *inquiry) limit(right string) Reason {
	if r := q.luckless(); r.Cause != "" {
		return r
	}
	wasted := q.firstWaste()
	complete := q.complete()
	for turn := range q.acted {
		if q.acted[turn] || q.ended == assay.CallLimit || world.Of(q.trial.World).Environments {
			continue // talk takes no call
		}
		if wasted >= 0 && q.tr.Calls[wasted].Turn <= turn+1 {
			break
		}
		cause := assay.NoAction
		if complete {
			cause = assay.NoEnd
		}
		return Reason{Cause: cause, Turn: turn + 1, Because: "this turn made no call", Right: right}
	}
	if wasted >= 0 {
		return q.waste(wasted, right)
	}
	last := len(q.tr.Calls) - 1
	r := Reason{
		Cause: assay.HitLimit, Turn: len(q.tr.Turns), Because: "no call was wrong, and " + q.limited(),
		Right: "the same within the limit",
	}
	if q.ended != q.tr.Ended {
		r.Turn = q.turnAfter(last)
	} else if searched := len(q.tr.Turns) - q.tr.Calls[last].Turn; searched >= longSearch &&
		q.ended != assay.CallLimit { // no call was left for anything else
		if complete {
			return q.idle(0, assay.NoEnd, right)
		}
		return q.idle(0, assay.NoAction, right)
	}
	return r
}

// limited says which limit kept the model from more.
func (q *inquiry) limited() string {
	if q.ended != q.tr.Ended {
		return "all calls were used up"
	}
	return spec.EndedBy(q.tr.Ended)
}

// complete reports whether the plan is known and each of its steps was done, as far as the judge asks
// for them.
func (q *inquiry) complete() bool {
	for s := range q.facts.Steps {
		if q.missing(s) {
			return false
		}
	}
	return len(q.facts.Steps) > 0
}

// ending explains an episode in which every step was done.
func (q *inquiry) ending() Reason {
	if i := q.early(); i >= 0 && !q.facts.Done {
		if last := q.retried(i); last >= 0 {
			r := q.unlucky(q.of[i], last, "a call of "+q.tr.Calls[i].Tool)
			if r.Cause != assay.HitLimit {
				return r
			}
		}
		return q.at(i, assay.WrongOrder, q.tr.Calls[i].Tool+" was called before its turn",
			"a call of "+q.tr.Calls[i].Tool+" in its place")
	}
	const right = "to say that it was done"
	last := len(q.tr.Calls) - 1
	if !q.claimed() && q.tr.Ended != assay.Finished {
		if how := q.deserted(); how != "" {
			return q.failed(how, right)
		}
		if r := q.gaveUp(); r.Cause != "" {
			return r
		}
		from := q.useful() + 1
		again := from <= last && q.had(from)
		turn := q.idleFrom()
		if turn > 0 && !(again && q.again(from) && len(q.tr.Calls) == q.trial.Calls) {
			return q.idle(turn, assay.NoEnd, right)
		}
		if from <= last {
			if again {
				return q.at(from, assay.RetriedTooMuch, q.tr.Calls[from].Tool+" had succeeded before", right)
			}
			return q.at(from, assay.NoEnd, "all steps were done, and it went on with "+q.tr.Calls[from].Tool, right)
		}
		return q.limit(right)
	}
	if how := q.deserted(); how != "" {
		return q.failed(how, right)
	}
	return q.answer()
}

// early returns the first call that did a step before an earlier one was done, or -1. If only effects
// decide, the order of other calls does not matter.
func (q *inquiry) early() int {
	for i, s := range q.of {
		if s < 0 || !q.ordered(s) {
			continue
		}
		for p := range s {
			if q.by[p] > i && q.ordered(p) {
				return i
			}
		}
	}
	return -1
}

// ordered reports whether the place of a step in the plan matters.
func (q *inquiry) ordered(step int) bool {
	s := &q.facts.Steps[step]
	return q.facts.Ordered && !s.Anywhere || s.Effect && !q.facts.AnyOrder
}

// retried returns the last call that would have made a call good that came too early, but failed by
// chance, or -1.
func (q *inquiry) retried(early int) int {
	last := -1
	for i := early + 1; i < len(q.tr.Calls); i++ {
		if c := &q.tr.Calls[i]; c.Tool == q.tr.Calls[early].Tool && !c.Mistake && !c.Happened() {
			last = i
		}
	}
	return last
}

// answer explains an episode that ended as it should, after the right calls.
func (q *inquiry) answer() Reason {
	r := Reason{
		Cause: assay.WrongAnswer, Turn: len(q.tr.Turns), Because: "the result is not the right one",
		Right: "another answer",
	}
	for _, rule := range q.e.Rules {
		if rule.Verdict == "level" && !rule.Holds {
			r.Because, _, _ = strings.Cut(rule.Because, " → ")
			break
		}
	}
	asked := q.task.Reference != nil && q.task.Reference.Answer != ""
	if q.facts.Answered && !(q.facts.Opaque && asked) || !q.facts.Answered && q.obscure() {
		r.Cause, r.Right = assay.Unclear, "what the judge misses"
		return r
	}
	if i := q.told(); i >= 0 {
		return q.believed(i)
	}
	if i := q.unread(); i >= 0 {
		return q.lost(i)
	}
	return r
}

// unread returns the first call that only reads, and whose answer was lost and not got later, or -1.
func (q *inquiry) unread() int {
	for i, c := range q.tr.Calls {
		again := func(l assay.CallRecord) bool { return l.Tool == c.Tool && l.OK }
		tool, _ := q.catalog.Tool(c.Tool)
		if tool.Effect == "" && c.Happened() && !c.OK && !slices.ContainsFunc(q.tr.Calls[i+1:], again) {
			return i
		}
	}
	return -1
}

// lost explains an episode that ended without the answer of a call that happened.
func (q *inquiry) lost(i int) Reason {
	return q.at(i, assay.NotRetried,
		fmt.Sprintf("the answer of call %d (%s) was lost, and it was not made again", i+1, q.tr.Calls[i].Tool),
		"a call of "+q.tr.Calls[i].Tool+" again")
}

// obscure reports whether a judge of an episode without a known plan misses more than the answer.
func (q *inquiry) obscure() bool {
	j := q.task.Judge
	return len(q.facts.Steps) == 0 && !q.facts.Done && j != nil && (q.facts.Opaque || len(j.State) > 0)
}

// unplanned finds the reason of an episode whose task has no known plan. Then most calls may be right.
func (q *inquiry) unplanned() Reason {
	last := len(q.tr.Calls) - 1
	c := &q.tr.Calls[last]
	for i, fit := range q.facts.Calls {
		tool := q.tr.Calls[i].Tool
		lost := slices.IndexFunc(q.tr.Calls[:i], func(b assay.CallRecord) bool {
			return b.Tool == tool && sameJSON(b.Arguments, q.tr.Calls[i].Arguments) && b.Happened() &&
				(fit.Unwanted || !b.OK)
		})
		t, _ := q.catalog.Tool(tool)
		switch {
		case lost >= 0 && t.Effect != "" && q.tr.Calls[i].Happened():
			return q.at(i, assay.RepeatedEffect, fmt.Sprintf("%s had happened in call %d", tool, lost+1),
				"to find out whether it had happened")
		case fit.Forbidden || fit.Unwanted:
			return q.at(i, assay.HarmfulEffect, "the task did not ask for the change that "+tool+" made",
				"not to call it")
		}
	}
	right := "a call of " + c.Tool
	if how := q.deserted(); how != "" {
		return q.failed(how, "to go on to the end")
	}
	if q.stops() {
		if r := q.gaveUp(); r.Cause != "" {
			return r
		}
		switch {
		case c.Mistake:
			return q.at(last, assay.WrongArgument, c.Tool+" was refused: "+c.Code, right+" with arguments that fit")
		case !c.Happened() && c.OK:
			return q.believed(last)
		case !c.Happened():
			return q.unlucky(-1, last, right)
		case q.tr.Ended == assay.Finished:
			return q.answer()
		case q.facts.Done && q.facts.Answered:
			return q.idle(q.idleFrom(), assay.NoEnd, "to say that it was done")
		}
		return q.idle(q.idleFrom(), assay.NoAction, "to go on")
	}
	for i := range q.tr.Calls {
		again := func(b assay.CallRecord) bool {
			return b.Tool == q.tr.Calls[i].Tool && sameJSON(b.Arguments, q.tr.Calls[i].Arguments) &&
				b.OK && b.Output == q.tr.Calls[i].Output
		}
		if q.tr.Calls[i].OK && slices.ContainsFunc(q.tr.Calls[:i], again) {
			return q.waste(i, "another call")
		}
	}
	return Reason{
		Cause: assay.HitLimit, Turn: len(q.tr.Turns), Because: q.limited(),
		Right: "to be done within the limit",
	}
}
