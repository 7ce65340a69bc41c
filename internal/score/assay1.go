package score

import (
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/workflow"
	"github.com/assay-eval/assay/internal/world"
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
//  1. There was no call. It is tool_call_format without a lookup, and where
//     more turns were corrected than had a lookup; otherwise a model that said
//     that it is finished made a tool_selection, and any other max_turns.
//  2. Only the word that it is finished is missing: max_turns.
//  3. The step succeeded too early, in a call that nothing needed:
//     sequence_order. With the same luck it would have succeeded in its place.
//  4. The rest has mistakes in wanted calls: the last one decides between
//     dependency and parameter_config.
//  5. The latest call of the step was a mistake, wherever it stands, and the last
//     useful or unlucky call was not unlucky: it decides in the same way. A plan
//     in the wrong order gets its steps refused, and whoever follows it does not
//     come back to them.
//  6. The rest has a tool for which the task has no use: tool_selection.
//  7. The model said that it is finished, and never called the step, without
//     having given up on what that builds on: tool_selection.
//  8. The rest has a tool that is required later: sequence_order.
//  9. The model said that it is finished: after bad luck it gave up, which is
//     other; where the step had succeeded for an earlier tool that
//     needs it, sequence_order; otherwise the step was left out,
//     tool_selection.
//  10. The episode was cut off: other where more replies were lost to bad luck
//     than were wasted or idle. Where more held only mistakes than were lost in
//     any other way of the model's, the last mistake decides as in 4.
//     Otherwise max_turns.
//
// The code of a failure by chance plays no part.
func (c *course) category(tr *assay.Transcript, uses []use) string {
	switch {
	case len(tr.Calls) == 0:
		return withoutCall(tr)
	case c.next == len(c.required):
		return MaxTurns
	}
	claimed := tr.Ended == assay.Finished
	from := len(uses)
	for from > 0 && uses[from-1].wasted() {
		from--
	}
	rest := tr.Calls[from:]
	step := c.required[c.next]
	gaveUp := from > 0 && uses[from-1] == unlucky
	wrong := lastIndex(uses, func(u use) bool { return u == mistaken })
	latest := lastIndex(tr.Calls, func(r assay.CallRecord) bool { return r.Tool == step })
	switch {
	case tooEarly(step, tr.Calls, uses):
		return SequenceOrder
	case wrong >= from:
		return c.fault(tr.Calls, wrong)
	case latest >= 0 && tr.Calls[latest].Mistake && !gaveUp:
		return c.fault(tr.Calls, latest)
	case strayed(c.catalog, c.required, rest):
		return ToolSelection
	case claimed && !gaveUp && latest < 0:
		return ToolSelection
	case c.hurried(rest):
		return SequenceOrder
	case claimed && gaveUp:
		return OtherError
	case claimed && slices.Contains(c.done, step):
		return SequenceOrder
	case claimed:
		return ToolSelection
	}
	return c.cutOff(tr, uses)
}

// withoutCall is the category of an episode without a call.
func withoutCall(tr *assay.Transcript) string {
	lookups, corrected := 0, 0 // turns
	for _, t := range tr.Turns {
		if t.Lookups > 0 {
			lookups++
		}
		if t.Assisted {
			corrected++
		}
	}
	switch {
	case lookups == 0 || corrected > lookups:
		return ToolCallFormat
	case tr.Ended == assay.Finished:
		return ToolSelection
	}
	return MaxTurns
}

// cutOff is the category of an episode that ended on the way, when no call
// tells the reason.
func (c *course) cutOff(tr *assay.Transcript, uses []use) string {
	n := losses(tr, uses)
	switch {
	case n[byLuck] > n[byNeedless]+n[byMistake]+n[byLookup]+n[byTalk]:
		return OtherError
	case n[byMistake] > max(n[byNeedless], n[byLookup], n[byTalk]):
		return c.fault(tr.Calls, lastIndex(tr.Calls, func(r assay.CallRecord) bool { return r.Mistake }))
	}
	return MaxTurns
}

// fault is the category of the mistake in calls[i]: dependency where the world
// said that one had not succeeded, and where the arguments name one that had
// not, which assay-1 notices before it looks at dependencies.
func (c *course) fault(calls []assay.CallRecord, i int) string {
	tool, _ := c.catalog.Tool(calls[i].Tool)
	done := succeeded(calls[:i])
	if calls[i].Code == world.DependencyFail || slices.ContainsFunc(tool.Dependencies, func(d string) bool {
		return !slices.Contains(done, d) && strings.Contains(calls[i].Arguments, strconv.Quote(d))
	}) {
		return DependencyError
	}
	return ParameterConfig
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

// hurried reports whether a tool was called that is required after the step.
func (c *course) hurried(calls []assay.CallRecord) bool {
	return slices.ContainsFunc(calls, func(call assay.CallRecord) bool {
		return slices.Contains(c.required[c.next+1:], call.Tool)
	})
}

// A loss is what a reply brought its task no further by.
type loss int

// The losses of replies. That of a reply with several calls is the first that
// one of them has.
const (
	byNothing  loss = iota // a call was useful
	byLuck                 // a call was unlucky
	byNeedless             // a call without mistake was not wanted
	byMistake              // all calls were mistakes
	byLookup               // no call, but a lookup
	byTalk                 // neither
	lossKinds
)

// losses counts the replies of an episode by their losses.
func losses(tr *assay.Transcript, uses []use) (n [lossKinds]int) {
	at := make(map[int]loss) // by turn, from 1
	for i, t := range tr.Turns {
		at[i+1] = byTalk
		if t.Lookups > 0 {
			at[i+1] = byLookup
		}
	}
	for i, call := range tr.Calls {
		l := byNeedless
		switch {
		case uses[i] == useful:
			l = byNothing
		case uses[i] == unlucky:
			l = byLuck
		case call.Mistake:
			l = byMistake
		}
		at[call.Turn] = min(l, at[call.Turn])
	}
	for _, l := range at {
		n[l]++
	}
	return n
}

// lastIndex returns the place of the last element that fits, -1 if none does.
func lastIndex[E any](s []E, fits func(E) bool) int {
	for i, e := range slices.Backward(s) {
		if fits(e) {
			return i
		}
	}
	return -1
}
