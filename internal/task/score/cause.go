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

// An inquest looks for the reason of an outcome.
type inquest struct {
	catalog *assay.Catalog
	e       *Explanation
	trial   *assay.Trial
	task    *assay.Task
	tr      *assay.Transcript
}

func (q inquest) reason() Reason {
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

func (q inquest) stop() assay.Stop {
	ended := q.tr.Ended
	if ended == assay.Finished && q.tr.Agent != nil && !world.Of(q.trial.World).Environments {
		return q.farewell()
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

func (q inquest) givesUp() assay.Stop {
	if len(q.tr.Calls) == 0 {
		return assay.Declined
	}
	return assay.GaveUp
}

// farewell is the stop of a foreign agent that ended without an error, which is no word about its
// work. Users judge an environment's last answer.
func (q inquest) farewell() assay.Stop {
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
func (q inquest) deserted() string {
	switch {
	case q.tr.Ended == assay.AgentTimeout:
		return "the agent used up its own time"
	case q.tr.Ended == assay.AgentError:
		if q.tr.Agent == nil || q.tr.Agent.Exit == "" {
			return "the agent failed"
		}
		return "the agent failed: " + q.tr.Agent.Exit
	case q.tr.Ended != assay.Finished || q.tr.Agent == nil || !q.acts():
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
func (q inquest) acts() bool {
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
func (q inquest) failed(how, right string) Reason {
	return Reason{Cause: assay.AgentFailed, Turn: len(q.tr.Turns), Because: how, Right: right}
}

// said returns the model's last words. An agent whose last word is not at the end said nothing.
func (q inquest) said() string {
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

// find returns the first thing that went wrong, whatever the plan says.
func (q inquest) find() Reason {
	if len(q.tr.Calls) == 0 {
		return q.withoutCall()
	}
	first, missing := q.harm(), q.missing()
	switch {
	case first.Cause == "":
		first = missing
	case missing.Call > 0 && missing.Call < first.Call && missing.Cause != assay.BadLuck:
		first = missing
	}
	return first
}

// at returns a reason that is a call.
func (q inquest) at(i int, cause assay.Cause, because, right string) Reason {
	return Reason{
		Cause: cause, Turn: q.tr.Calls[i].Turn, Call: i + 1, Because: because, Right: right,
	}
}

// withoutCall finds the reason of an episode in which no call was carried out.
func (q inquest) withoutCall() Reason {
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
		tried := len(m.Calls) > 0 || strings.Contains(m.Content, "<tool_")
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
	case q.stop() == assay.Answered:
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

// harm finds the first change that the task did not ask for.
func (q inquest) harm() Reason {
	for i := range q.e.Path {
		if !q.unwanted(i) {
			continue
		}
		c := &q.tr.Calls[i]
		if q.e.Path[i].Mark == otherArguments {
			return q.at(i, assay.WrongArgument, c.Tool+" had other arguments", "the arguments of the task")
		}
		before := slices.IndexFunc(q.tr.Calls[:i], func(b assay.CallRecord) bool {
			return b.Tool == c.Tool && b.Happened()
		})
		if before < 0 && q.step(c.Tool) {
			continue // it came too early
		}
		if before < 0 {
			return q.at(i, assay.HarmfulEffect, "the task did not ask for the change that "+c.Tool+" made",
				"not to call it")
		}
		because := fmt.Sprintf("%s had happened in call %d", c.Tool, before+1)
		if !q.tr.Calls[before].OK {
			because += ", whose answer was lost"
		}
		return q.at(i, assay.RepeatedEffect, because, "to find out whether it had happened")
	}
	return Reason{}
}

// otherArguments is a mark of the world own-1.
const otherArguments Mark = "with other arguments"

// step reports whether the plan has a tool.
func (q inquest) step(tool string) bool {
	return slices.ContainsFunc(q.e.Plan, func(s PlanStep) bool { return s.Tool == tool })
}

// unwanted reports whether a call made a change that the task did not ask for.
func (q inquest) unwanted(i int) bool {
	step := &q.e.Path[i]
	tool, _ := q.catalog.Tool(step.Tool)
	changed := tool.Effect != "" && q.tr.Calls[i].Happened()
	told := q.e.Outcome.UnwantedEffects > 0 || q.task.Judge != nil && q.task.Judge.ByPlan()
	return step.Unwanted != "" || changed && told && step.Wasted
}

// missing finds the reason why a step of the plan, or the end, is missing.
func (q inquest) missing() Reason {
	at := slices.IndexFunc(q.e.Plan, func(s PlanStep) bool { return !s.Optional && !s.InOrder })
	if at < 0 {
		return q.ending()
	}
	tool := q.e.Plan[at].Tool
	right := "a call of " + tool
	var tries []int
	for i, c := range q.tr.Calls {
		if c.Tool == tool {
			tries = append(tries, i)
		}
	}
	if len(tries) == 0 {
		return q.untried(at, right)
	}
	last := tries[len(tries)-1]
	c := &q.tr.Calls[last]
	switch {
	case c.Mistake:
		return q.mistake(last, right)
	case !c.Happened():
		return q.unlucky(at, last, right)
	case q.e.Path[last].Mark == Unsound || q.e.Path[last].Mark == otherArguments:
		if i := q.misled(last); i >= 0 {
			return q.believed(i)
		}
		return q.at(last, assay.WrongArgument, tool+" had the wrong data or values", right+" with the right ones")
	case !q.e.Path[tries[0]].Wasted: // an earlier step needed it
		return q.untried(at, right)
	}
	return q.at(tries[0], assay.WrongOrder, tool+" was called before its turn", right+" in its place")
}

// mistake explains a call that was refused for the model's own mistake. The first of the mistakes
// in a row counts.
func (q inquest) mistake(last int, right string) Reason {
	first := last
	for first > 0 && q.tr.Calls[first-1].Mistake {
		first--
	}
	c := &q.tr.Calls[first]
	tool, _ := q.catalog.Tool(c.Tool)
	done := spec.Succeeded(q.tr.Calls[:first])
	for _, d := range tool.Dependencies {
		if !slices.Contains(done, d) {
			return q.at(first, assay.WrongOrder, fmt.Sprintf("%s needs %s, which had not succeeded", c.Tool, d),
				"a call of "+d)
		}
	}
	if c.Code == assay1.DependencyFail {
		return q.at(first, assay.WrongOrder, c.Tool+" needs a tool that had not succeeded", right)
	}
	if strings.HasSuffix(right, " "+c.Tool) {
		right += " with arguments that fit"
	}
	return q.at(first, assay.WrongArgument, c.Tool+" was refused: "+c.Code, right)
}

// unlucky explains a step whose last call did not happen.
func (q inquest) unlucky(at, last int, right string) Reason {
	c := &q.tr.Calls[last]
	if c.OK { // the answer was an old one
		return q.believed(last)
	}
	failed := fmt.Sprintf("call %d (%s) failed by chance", last+1, c.Tool)
	for i := last + 1; i < len(q.tr.Calls); i++ {
		later := func(s PlanStep) bool { return s.Tool == q.tr.Calls[i].Tool }
		if slices.ContainsFunc(q.e.Plan[at+1:], later) {
			return q.at(i, assay.SkippedStep, failed+", and it went on with "+q.tr.Calls[i].Tool, right+" again")
		}
	}
	if first := q.firstWaste(0); first >= 0 && q.stop() != assay.Answered && q.e.Outcome.Wasted >= q.e.Outcome.Failures {
		return q.waste(first, right)
	}
	if how := q.deserted(); how != "" {
		return q.at(last, assay.AgentFailed, failed+", and then "+how, right+" again")
	}
	switch q.stop() {
	case assay.Answered, assay.GaveUp, assay.Declined, assay.LeftEarly:
		return q.at(last, assay.NotRetried, failed+" and was not made again", right+" again")
	}
	return q.at(last, assay.BadLuck, failed+", and there was no chance left", "the same, with better luck")
}

// untried explains a step that was never tried.
func (q inquest) untried(at int, right string) Reason {
	from := 0
	for i := range q.e.Path {
		if !q.e.Path[i].Wasted {
			from = i + 1
		}
	}
	if lost := q.lost(); lost >= 0 { // a tool that the step builds on
		return q.unlucky(at, lost, "a call of "+q.tr.Calls[lost].Tool)
	}
	if from < len(q.tr.Calls) {
		c := &q.tr.Calls[from]
		later := func(s PlanStep) bool { return s.Tool == c.Tool }
		if !c.Mistake && slices.ContainsFunc(q.e.Plan[at+1:], later) {
			return q.at(from, assay.SkippedStep, "it went on with "+c.Tool, right)
		}
		return q.waste(from, right)
	}
	if q.stop() == assay.Answered && q.deserted() == "" {
		return Reason{
			Cause: assay.SkippedStep, Turn: min(len(q.tr.Turns), q.tr.Calls[len(q.tr.Calls)-1].Turn+1),
			Because: "it said that it was done", Right: right,
		}
	}
	return q.idle(right)
}

// lost returns the last call if it is of a tool that the plan needs, but is not a step of, and
// failed by chance. Otherwise it returns -1.
func (q inquest) lost() int {
	last := len(q.tr.Calls) - 1
	c := &q.tr.Calls[last]
	if !c.Mistake && !c.Happened() && !q.e.Path[last].Wasted {
		return last
	}
	return -1
}

// needed reports whether the task requires a tool or builds on it.
func (q inquest) needed(tool string) bool {
	return spec.Strayed(q.catalog, q.e.Outcome.RequiredTools,
		[]assay.CallRecord{{Tool: tool}}) < 0
}

// firstWaste returns the first wasted call from a place on, or -1.
func (q inquest) firstWaste(from int) int {
	for i := from; i < len(q.e.Path); i++ {
		if q.e.Path[i].Wasted {
			return i
		}
	}
	return -1
}

// waste explains a call that did not bring the task forward.
func (q inquest) waste(i int, right string) Reason {
	c := &q.tr.Calls[i]
	again := slices.ContainsFunc(q.tr.Calls[:i], func(b assay.CallRecord) bool {
		return b.Tool == c.Tool && b.Happened()
	})
	switch {
	case c.Mistake && q.needed(c.Tool):
		return q.mistake(i, right)
	case again:
		return q.at(i, assay.RetriedTooMuch, c.Tool+" had succeeded before", right)
	case q.step(c.Tool) && c.Happened():
		return q.at(i, assay.WrongOrder, c.Tool+" was called before its turn", right)
	}
	return q.at(i, assay.WrongTool, "the task has no use for "+c.Tool, right)
}

// idle explains an episode that ended while nothing was wrong with its calls: its last replies made
// no call, or there were too few of them.
func (q inquest) idle(right string) Reason {
	if how := q.deserted(); how != "" {
		return q.failed(how, right)
	}
	last := q.tr.Calls[len(q.tr.Calls)-1].Turn
	if last < len(q.tr.Turns) && q.tr.Ended != assay.CallLimit {
		return Reason{
			Cause: assay.NoAction, Turn: last + 1,
			Because: fmt.Sprintf("the last %s made no call", assay.Counted(len(q.tr.Turns)-last, "turn")),
			Right:   right,
		}
	}
	if first := q.firstWaste(0); first >= 0 {
		return q.waste(first, right)
	}
	return Reason{
		Cause: assay.BadLuck, Turn: len(q.tr.Turns), Because: "all calls were right, and no turn was left",
		Right: "the same, with better luck",
	}
}

// ending explains an episode in which every step succeeded in its place.
func (q inquest) ending() Reason {
	if q.stop() != assay.Answered {
		useful := 0
		for i := range q.e.Path {
			if !q.e.Path[i].Wasted {
				useful = i + 1
			}
		}
		if first := q.firstWaste(useful); first >= 0 {
			return q.waste(first, "to say that it was done")
		}
		return q.idle("to say that it was done")
	}
	if i := q.misled(len(q.tr.Calls)); i >= 0 {
		return q.believed(i)
	}
	because := "the result is not the right one"
	for _, r := range q.e.Rules {
		if r.Verdict == "level" && !r.Holds {
			because, _, _ = strings.Cut(r.Because, " → ")
			break
		}
	}
	return Reason{
		Cause: assay.WrongAnswer, Turn: len(q.tr.Turns), Because: because, Right: "another answer",
	}
}

// misled returns the first call before a place whose answer was wrong and which was not made again
// with success, or -1.
func (q inquest) misled(before int) int {
	for i, c := range q.tr.Calls[:before] {
		if c.Fault != assay.FaultStale && c.Fault != assay.FaultWrongShape {
			continue
		}
		again := slices.ContainsFunc(q.tr.Calls[i+1:], func(l assay.CallRecord) bool {
			return l.Tool == c.Tool && l.Met() == ""
		})
		if !again {
			return i
		}
	}
	return -1
}

func (q inquest) believed(i int) Reason {
	c := &q.tr.Calls[i]
	because := fmt.Sprintf("the answer of call %d (%s) lacked a part", i+1, c.Tool)
	if c.Fault == assay.FaultStale {
		because = fmt.Sprintf("call %d (%s) did not happen, and its answer was an old one", i+1, c.Tool)
	}
	return q.at(i, assay.BelievedAnswer, because, "to notice that, and a call of "+c.Tool+" again")
}
