package score

import (
	"encoding/json"
	"slices"

	"github.com/assay-eval/assay"
)

// attribute finds out whether the model's framework or a flawed plan is the cause.
func (q *inquiry) attribute(r *Reason) {
	if r.Cause == assay.JudgeSaidNo { // nothing else was wrong
		return
	}
	if l := q.left(r); l != nil {
		because := "the agent did not carry out the call of " + l.Tool
		right := "to carry out the calls that the model asks for"
		if l.Late {
			because, right = "the agent carried out the call of "+l.Tool+" after later calls of its reply",
				"the order of the reply"
		}
		*r = Reason{
			Stop: r.Stop, Cause: assay.ByFramework, Turn: l.Turn, Because: because, Right: right,
		}
	} else if asked, call := q.changed(r); asked != "" {
		*r = Reason{
			Stop: r.Stop, Cause: assay.ByFramework, Call: call,
			Because: "the model asked for " + asked, Right: "the call that it asked for",
		}
		if call > 0 {
			r.Turn = q.tr.Calls[call-1].Turn
		}
	} else if q.followed(r) {
		r.Because = "the flawed plan says so: " + r.Because
		r.Cause = assay.FollowedFlaw
	}
}

// left returns the first call of a reply that an agent did not carry out, or too late, if that came
// before what went wrong and was not made good. It returns nil if the cause is another one.
func (q *inquiry) left(r *Reason) *assay.LostCall {
	if q.tr.Agent == nil || r.Cause == assay.AgentFailed || r.Cause == assay.ModelFailed || r.Cause == assay.BadLuck {
		return nil
	}
	until := len(q.tr.Calls)
	if r.Call > 0 {
		until = r.Call - 1
	}
	for i := range q.tr.Agent.Lost {
		l := &q.tr.Agent.Lost[i]
		if (r.Turn == 0 || l.Turn <= r.Turn) && q.misses(l, q.tr.Calls[:until]) {
			return l
		}
	}
	return nil
}

// misses reports whether a lost call was needed and right, and was not made good by other calls. A
// lookup is made good by any later one.
func (q *inquiry) misses(l *assay.LostCall, others []assay.CallRecord) bool {
	if _, ok := q.catalog.Tool(l.Tool); !ok {
		later := q.tr.Turns[min(l.Turn, len(q.tr.Turns)):]
		return !slices.ContainsFunc(later, func(t assay.TurnRecord) bool { return t.Lookups > 0 })
	}
	wanted := len(q.tr.Calls) == 0 || len(q.e.Outcome.RequiredTools) == 0 || q.needed(l.Tool)
	return wanted && !q.lacks(l) && !slices.ContainsFunc(others, func(c assay.CallRecord) bool {
		return c.Tool == l.Tool && c.Turn >= l.Turn && c.Happened()
	})
}

// lacks reports whether a call lacks a required argument. Frameworks that check arguments refuse it.
func (q *inquiry) lacks(l *assay.LostCall) bool {
	tool, _ := q.catalog.Tool(l.Tool)
	var args map[string]json.RawMessage
	if l.Arguments != "" && json.Unmarshal([]byte(l.Arguments), &args) != nil {
		return false // it is cut off
	}
	return slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool {
		return p.Required && args[p.Name] == nil
	})
}

// changed returns the call that a model asked for if an agent's framework made another one of it, and that
// one mattered: it is the call at which things went wrong, or there is none, and it failed as a mistake or
// was refused and was not made good. It returns "" if the cause is another one. The place of the call is 0 if
// it was refused.
func (q *inquiry) changed(r *Reason) (asked string, call int) {
	switch q.category(r) {
	case assay.CategoryOther, assay.CategoryAgentFailure, assay.CategoryTimeout:
		return "", 0
	}
	if r.Call > 0 {
		return q.tr.Calls[r.Call-1].Asked, r.Call
	}
	for i, c := range q.tr.Calls {
		if c.Asked != "" && c.Mistake && !happens(c.Tool, q.tr.Calls[i+1:]) {
			return c.Asked, i + 1
		}
	}
	if q.tr.Agent != nil {
		for _, refused := range q.tr.Agent.Refused {
			later := slices.IndexFunc(q.tr.Calls, func(c assay.CallRecord) bool { return c.Turn >= refused.Turn })
			if refused.Asked != "" && (later < 0 || !happens(refused.Tool, q.tr.Calls[later:])) {
				return refused.Asked, 0
			}
		}
	}
	return "", 0
}

// happens reports whether a call of a tool succeeds.
func happens(tool string, calls []assay.CallRecord) bool {
	return slices.ContainsFunc(calls, func(c assay.CallRecord) bool { return c.Tool == tool && c.Happened() })
}

// categories are the error categories of causes.
var categories = map[assay.Cause]string{
	assay.NoAction: assay.CategoryToolSelection, assay.MalformedCall: assay.CategoryToolCallFormat,
	assay.FalseClaim: assay.CategoryToolSelection, assay.WrongTool: assay.CategoryToolSelection,
	assay.WrongArgument: assay.CategoryParameterConfig,
	assay.WrongOrder:    assay.CategorySequenceOrder, assay.SkippedStep: assay.CategoryToolSelection,
	assay.NotRetried: assay.CategoryOther, assay.RetriedTooMuch: assay.CategoryToolSelection,
	assay.RepeatedEffect: assay.CategoryUnwantedEffect, assay.BelievedAnswer: assay.CategoryOther,
	assay.HarmfulEffect: assay.CategoryUnwantedEffect, assay.WrongAnswer: assay.CategoryOther,
	assay.NoEnd: assay.CategoryOther, assay.HitLimit: assay.CategoryMaxTurns, assay.Unclear: assay.CategoryOther,
	assay.ByFramework: assay.CategoryFramework, assay.BadLuck: assay.CategoryOther,
	assay.AgentFailed: assay.CategoryAgentFailure, assay.ModelFailed: assay.CategoryAgentFailure,
	assay.JudgeSaidNo: assay.CategoryJudge,
}

// category returns the error category of a reason. An agent that failed is one whatever its calls
// were. Idle replies and needless calls are max_turns if a limit ended the episode. A call before its
// turn is a dependency if the world refused it, and a step that another call left behind is
// sequence_order. No tool was selected wrongly if every step was done. A plan's flaw does not matter.
func (q *inquiry) category(r *Reason) string {
	limited := true
	switch q.tr.Ended {
	case assay.AgentError:
		return assay.CategoryAgentFailure
	case assay.AgentTimeout:
		return assay.CategoryTimeout
	case assay.Finished:
		limited = false
	}
	class := categories[r.Cause]
	switch r.Cause {
	case assay.NoAction, assay.RetriedTooMuch, assay.NoEnd:
		if limited {
			return assay.CategoryMaxTurns
		}
	case assay.WrongOrder, assay.SkippedStep:
		switch {
		case r.Call > 0 && q.tr.Calls[r.Call-1].Mistake:
			return assay.CategoryDependency
		case r.Call > 0:
			return assay.CategorySequenceOrder
		}
	}
	if class == assay.CategoryToolSelection && q.complete() {
		return map[bool]string{true: assay.CategoryMaxTurns, false: assay.CategoryOther}[limited]
	}
	return class
}
