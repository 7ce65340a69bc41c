package score

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// plans returns the plan that the model was shown and the task's own. The steps of a plan that an older
// version of the rules has made lack their arguments.
func (q *inquiry) plans() (shown, right workflow.Plan) {
	right = workflow.For(q.catalog, q.trial.World, q.task)
	if world.Of(q.trial.World).OwnTools {
		if p, ok := workflow.Own(q.catalog, q.trial, q.task); ok {
			shown = *p
		}
	} else if flaw, ok := assay.FlawOf(q.trial.Variant); ok {
		shown, _ = workflow.Flawed(q.catalog, right, q.task, flaw, q.trial.Severity, q.trial.Seed)
	}
	same := func(s workflow.Step, tool string) bool { return s.Tool == tool }
	if !slices.EqualFunc(shown.Steps, q.tr.Plan, same) {
		shown = workflow.Plan{}
		for _, tool := range q.tr.Plan {
			shown.Steps = append(shown.Steps, workflow.Step{Tool: tool})
		}
	}
	return shown, right
}

// FromPlan reports whether what went wrong can be what a flawed plan says. Then the cause depends on the plan
// that the model was shown.
func FromPlan(c assay.Cause) bool {
	switch c {
	case assay.WrongTool, assay.WrongArgument, assay.WrongOrder, assay.SkippedStep, assay.HarmfulEffect,
		assay.RepeatedEffect, assay.RetriedTooMuch, assay.WrongAnswer:
		return true
	}
	return false
}

// followed reports whether a flawed plan says what went wrong: the model did what the plan says, up to
// the step with the flaw and with its arguments.
func (q *inquiry) followed(r *Reason) bool {
	variant, _ := assay.PlainOf(q.trial.Variant)
	_, flawed := assay.FlawOf(q.trial.Variant)
	if _, own := q.task.Variants[variant]; !flawed && !own || len(q.tr.Plan) == 0 {
		return false
	}
	if !FromPlan(r.Cause) {
		return false
	}
	shown, right := q.plans()
	ats, whole := q.follows(shown.Steps, r.Call)
	if r.Cause == assay.RetriedTooMuch { // it has to go on as the plan says
		if end, _ := q.follows(shown.Steps, 0); len(end) == 0 {
			return false
		}
	}
	switch {
	case len(ats) == 0:
		return false
	case r.Cause == assay.WrongAnswer:
		return shown.Answer != right.Answer && shown.Answer != "" &&
			strings.Contains(strings.ToLower(q.said()), strings.ToLower(shown.Answer))
	case r.Call == 0: // it left a step out
		return whole && lacks(shown.Steps, right.Steps)
	}
	return slices.ContainsFunc(ats, func(at int) bool { return q.flawAt(r, shown.Steps, at, right.Steps) })
}

// follows reports how far the calls up to the one with a number, or all if it is 0, follow a plan. A
// step that was answered by an error may be repeated or left, and the model may make steps of the task
// that the plan lacks. It returns the steps that the last call can be, and whether it can be the last
// one. There are none if the calls do something else.
func (q *inquiry) follows(steps []workflow.Step, call int) (ats []int, whole bool) {
	calls := q.tr.Calls
	if call > 0 {
		calls = calls[:call]
	}
	// A place is the latest step, and whether it was answered by an error.
	type place struct {
		step int
		open bool
	}
	places := []place{{step: -1}}
	for i, c := range calls {
		var next []place
		add := func(p place) {
			if !slices.Contains(next, p) {
				next = append(next, p)
			}
		}
		for _, p := range places {
			if p.open && steps[p.step].Tool == c.Tool {
				add(place{p.step, !c.OK})
			}
			switch on := p.step + 1; {
			case on < len(steps) && steps[on].Tool == c.Tool:
				add(place{on, !c.OK})
			case i+1 != call && !slices.ContainsFunc(steps, func(s workflow.Step) bool { return s.Tool == c.Tool }) &&
				q.stepOf(c.Tool, 0) >= 0:
				add(p)
			}
		}
		places = next
	}
	for _, p := range places {
		ats = append(ats, max(p.step, 0))
		whole = whole || p.step+1 == len(steps)
	}
	return ats, whole
}

// lacks reports whether a plan leaves out a step of another one, or makes it less often.
func lacks(steps, of []workflow.Step) bool {
	return slices.ContainsFunc(of, func(s workflow.Step) bool {
		return times(steps, s.Tool, "") < times(of, s.Tool, "")
	})
}

// times counts the steps of a tool, with certain arguments unless these are "".
func times(steps []workflow.Step, tool, arguments string) (n int) {
	for _, s := range steps {
		if s.Tool == tool && (arguments == "" || sameJSON(string(s.Arguments), arguments)) {
			n++
		}
	}
	return n
}

// flawAt reports whether the step of a plan that a call carried out is where the plan goes wrong.
func (q *inquiry) flawAt(r *Reason, shown []workflow.Step, at int, right []workflow.Step) bool {
	step := shown[at]
	var like []workflow.Step // the right steps of its tool
	for _, s := range right {
		if s.Tool == step.Tool {
			like = append(like, s)
		}
	}
	if len(like) == 0 {
		return true
	}
	arguments := q.tr.Calls[r.Call-1].Arguments
	if len(step.Arguments) > 0 && !slices.ContainsFunc(like, func(s workflow.Step) bool {
		return sameJSON(string(s.Arguments), string(step.Arguments))
	}) {
		k := min(times(shown[:at], step.Tool, ""), len(like)-1)
		return agrees(arguments, string(step.Arguments), string(like[k].Arguments),
			q.tr.Calls[r.Call-1].Mistake)
	}
	again := r.Cause == assay.RepeatedEffect || r.Cause == assay.RetriedTooMuch
	if (again || r.Cause == assay.WrongArgument) && len(step.Arguments) > 0 && !sameJSON(arguments, string(step.Arguments)) {
		return false
	}
	if known := string(step.Arguments); times(shown[:at+1], step.Tool, known) > times(right, step.Tool, known) {
		return again
	}
	switch r.Cause {
	case assay.SkippedStep, assay.WrongOrder, assay.WrongArgument, assay.RetriedTooMuch:
	default:
		return false
	}
	// It comes before a step that the right plan has before it.
	k := slices.IndexFunc(right, func(s workflow.Step) bool { return s.Tool == step.Tool })
	return lacks(shown[:at], right[:k])
}

// agrees reports whether the arguments of a call have the flaw: the members in which those of a flawed
// step differ from the right ones. A call that was refused must not have other members than that step.
func agrees(arguments, flawed, right string, refused bool) bool {
	var call, bad, good map[string]json.RawMessage
	if json.Unmarshal([]byte(flawed), &bad) != nil || json.Unmarshal([]byte(right), &good) != nil {
		return false
	}
	if strings.TrimSpace(arguments) != "" && json.Unmarshal([]byte(arguments), &call) != nil {
		return false
	}
	for name := range call {
		if refused && bad[name] == nil {
			return false
		}
	}
	differs := func(a, b json.RawMessage) bool {
		return (a == nil) != (b == nil) || a != nil && !sameJSON(string(a), string(b))
	}
	for _, members := range []map[string]json.RawMessage{bad, good} {
		for name := range members {
			if differs(bad[name], good[name]) && differs(call[name], bad[name]) {
				return false
			}
		}
	}
	return true
}
