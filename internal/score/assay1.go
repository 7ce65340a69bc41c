package score

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/workflow"
)

// Assay1 gives the outcome of an episode in the world assay-1, all but Best:
// full success is the required tools in order among the successful calls and
// the model's word that it is finished; partial success is at least 60 % of
// the required tools. A task that requires nothing cannot succeed.
func Assay1(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) assay.Outcome {
	c := &course{catalog: catalog, required: task.Required}
	uses := c.follow(tr.Calls)
	o := measured(task, tr, workflow.Sequence(catalog, task.Required), uses)
	o.ScoreVersion = Assay1Version
	o.Coverage = share(task.Required, o.ExecutedTools)
	o.OrderCorrect = len(task.Required) > 0 && c.next == len(task.Required)
	switch {
	case o.OrderCorrect && tr.Ended == assay.Finished:
		o.Level = assay.FullSuccess
		return o
	case o.Coverage >= 0.6:
		o.Level = assay.PartialSuccess
	default:
		o.Level = assay.Failure
	}
	o.ErrorCategory = c.category(tr, uses)
	return o
}

// category gives the reason why an episode is not a full success. The step is
// the first required tool that has not succeeded in its place, and the rest
// are the calls after the last that was useful or unlucky: all of them wasted,
// and made while the step was the next. The first rule that fits decides.
//
//  1. There was no call. Without a lookup it is tool_call_format; a model that
//     looked tools up and said that it is finished made a tool_selection;
//     otherwise max_turns.
//  2. Only the word that it is finished is missing: max_turns.
//  3. The step succeeded too early, in a call that nothing needed:
//     sequence_order. With the same luck it would have succeeded in its place.
//  4. The rest has mistakes in wanted calls: the last one decides between
//     dependency and parameter_config.
//  5. The rest has a tool for which the task has no use: tool_selection.
//  6. The model said that it is finished, and never called the step, without
//     having given up on what that builds on: tool_selection.
//  7. The rest has a tool that is required later: sequence_order.
//  8. The model said that it is finished: after bad luck it gave up, which is
//     other; where the step had succeeded for an earlier tool that
//     needs it, sequence_order; otherwise the step was left out,
//     tool_selection.
//  9. The episode was cut off: other where more replies were lost to bad luck
//     than were wasted or idle, max_turns where not.
//
// The code of a failure by chance plays no part.
func (c *course) category(tr *assay.Transcript, uses []use) string {
	claimed := tr.Ended == assay.Finished
	switch {
	case len(tr.Calls) == 0 && !lookedUp(tr):
		return ToolCallFormat
	case len(tr.Calls) == 0 && claimed:
		return ToolSelection
	case len(tr.Calls) == 0 || c.next == len(c.required):
		return MaxTurns
	}
	from := len(uses)
	for from > 0 && uses[from-1].wasted() {
		from--
	}
	rest := tr.Calls[from:]
	step := c.required[c.next]
	gaveUp := from > 0 && uses[from-1] == unlucky
	switch last := lastMistake(uses[from:]); {
	case tooEarly(step, tr.Calls, uses):
		return SequenceOrder
	case last == premature:
		return DependencyError
	case last == mistaken:
		return ParameterConfig
	case strayed(c.catalog, c.required, rest):
		return ToolSelection
	case claimed && !gaveUp && !slices.ContainsFunc(tr.Calls, func(r assay.CallRecord) bool { return r.Tool == step }):
		return ToolSelection
	case c.hurried(rest):
		return SequenceOrder
	case claimed && gaveUp:
		return OtherError
	case claimed && slices.Contains(c.done, step):
		return SequenceOrder
	case claimed:
		return ToolSelection
	case badLuck(tr, uses):
		return OtherError
	}
	return MaxTurns
}

// tooEarly reports whether a tool has succeeded in a call that was not wanted.
func tooEarly(tool string, calls []assay.CallRecord, uses []use) bool {
	for i, call := range calls {
		if call.Tool == tool && call.OK && uses[i].wasted() {
			return true
		}
	}
	return false
}

// lastMistake returns the use of the last wanted call that failed by a
// mistake; idle if there is none.
func lastMistake(uses []use) use {
	for _, u := range slices.Backward(uses) {
		if u == premature || u == mistaken {
			return u
		}
	}
	return idle
}

// hurried reports whether a tool was called that is required after the step.
func (c *course) hurried(calls []assay.CallRecord) bool {
	return slices.ContainsFunc(calls, func(call assay.CallRecord) bool {
		return slices.Contains(c.required[c.next+1:], call.Tool)
	})
}

// badLuck reports whether more replies were lost to bad luck than to anything
// else. A reply with a useful call is not lost; one with an unlucky call and
// none that is useful is lost to bad luck; and one without either to the model.
func badLuck(tr *assay.Transcript, uses []use) bool {
	best := make(map[int]use) // by turn
	for i, call := range tr.Calls {
		if u, ok := best[call.Turn]; !ok || uses[i] < u {
			best[call.Turn] = uses[i]
		}
	}
	luck, model := 0, len(tr.Turns)
	for _, u := range best {
		if u == unlucky {
			luck++
		}
		if !u.wasted() {
			model--
		}
	}
	return luck > model
}
