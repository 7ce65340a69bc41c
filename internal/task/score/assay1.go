package score

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// Assay1 gives the outcome of an episode in the world assay-1, all but Best:
// full success is the required tools in order among the successful calls and
// the model's word that it is finished; partial success is at least 60 % of
// the required tools. A task that requires nothing cannot succeed.
func Assay1(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript) assay.Outcome {
	return assay1(catalog, task, tr, nil)
}

func assay1(catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, w *witness) assay.Outcome {
	c := &course{catalog: catalog, required: task.Required}
	uses := c.follow(tr.Calls)
	o := measured(task, tr, c.plan(), uses)
	o.ScoreVersion = Assay1Version
	o.Coverage = share(task.Required, o.ExecutedTools)
	o.OrderCorrect = len(task.Required) > 0 && c.next == len(task.Required)
	o.Level = c.level(&o, w)
	if o.Level != assay.FullSuccess {
		w.decide("category")
		o.ErrorCategory = c.category(tr, uses, w)
	}
	return o
}

// level asks for all that full success takes before it looks at any part of it.
func (c *course) level(o *assay.Outcome, w *witness) assay.Level {
	w.decide("level")
	succeeded := func() string { return covered(o) }
	all := w.need("all required tools succeeded", o.Coverage == 1, succeeded)
	order := w.need("they did in the required order", o.OrderCorrect, c.inPlace)
	claimed := w.need("the model said that it was done", o.Ended == assay.Finished, func() string { return endedBy(o.Ended) })
	switch {
	case all && order && claimed:
		return assay.FullSuccess
	case w.ask("at least 60 % of the required tools succeeded", o.Coverage >= 0.6, succeeded):
		return assay.PartialSuccess
	}
	return assay.Failure
}

// inPlace tells how far the required order was kept.
func (c *course) inPlace() string {
	text := fmt.Sprintf("%d of %d in their place", c.next, len(c.required))
	if c.next < len(c.required) {
		text += "; the next was to be " + c.required[c.next]
	}
	return text
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
func (c *course) category(tr *assay.Transcript, uses []use, w *witness) string {
	switch {
	case w.ask("no call was made", len(tr.Calls) == 0, func() string { return made(tr) }):
		return withoutCall(tr, w)
	case w.ask("only the word that it is done is missing", c.next == len(c.required), c.inPlace):
		return assay.CategoryMaxTurns
	}
	from := len(uses)
	for from > 0 && uses[from-1].wasted() {
		from--
	}
	e := ending{
		course: c, calls: tr.Calls, uses: uses, from: from,
		step:    c.required[c.next],
		claimed: tr.Ended == assay.Finished,
		gaveUp:  from > 0 && uses[from-1] == unlucky,
	}
	if category := e.category(w); category != "" {
		return category
	}
	if w.ask("the model said that it was done", e.claimed, func() string { return endedBy(tr.Ended) }) {
		return e.leftOff(w)
	}
	return c.cutOff(tr, uses, w)
}

// withoutCall is the category of an episode without a call.
func withoutCall(tr *assay.Transcript, w *witness) string {
	looked, corrected := lookups(tr), 0 // turns
	for _, t := range tr.Turns {
		if t.Assisted {
			corrected++
		}
	}
	switch {
	case w.ask("no turn had a lookup, or more were corrected than had one", looked == 0 || corrected > looked, func() string {
		return fmt.Sprintf("%s with a lookup, %d corrected", counted(looked, "turn"), corrected)
	}):
		return assay.CategoryToolCallFormat
	case w.ask("the model said that it was done", tr.Ended == assay.Finished, func() string { return endedBy(tr.Ended) }):
		return assay.CategoryToolSelection
	}
	return w.remains(assay.CategoryMaxTurns)
}

// cutOff is the category of an episode that ended on the way, when no call
// tells the reason.
func (c *course) cutOff(tr *assay.Transcript, uses []use, w *witness) string {
	n := losses(tr, uses)
	lost := n[byNeedless] + n[byMistake] + n[byLookup] + n[byTalk]
	switch {
	case w.ask("more replies were lost to bad luck than in ways of the model's", n[byLuck] > lost, func() string {
		return fmt.Sprintf("%d to bad luck, %d in others", n[byLuck], lost)
	}):
		return assay.CategoryOther
	case w.ask("of these more held only mistakes than anything else", n[byMistake] > max(n[byNeedless], n[byLookup], n[byTalk]), func() string {
		return fmt.Sprintf("%d only mistakes, %d needless calls, %d lookups, %d nothing", n[byMistake], n[byNeedless], n[byLookup], n[byTalk])
	}):
		return c.fault(tr.Calls, lastIndex(tr.Calls, func(r assay.CallRecord) bool { return r.Mistake }), w)
	}
	return w.remains(assay.CategoryMaxTurns)
}

// fault is the category of the mistake in calls[i]: dependency where the world
// said that one had not succeeded, and where the arguments name one that had
// not, which assay-1 notices before it looks at dependencies.
func (c *course) fault(calls []assay.CallRecord, i int, w *witness) string {
	tool, _ := c.catalog.Tool(calls[i].Tool)
	done := succeeded(calls[:i])
	if w.ask("that mistake was a dependency that had not succeeded", calls[i].Code == world.DependencyFail ||
		slices.ContainsFunc(tool.Dependencies, func(d string) bool {
			return !slices.Contains(done, d) && strings.Contains(calls[i].Arguments, strconv.Quote(d))
		}), func() string { return nth(calls, i) + " failed with " + calls[i].Code }) {
		return assay.CategoryDependency
	}
	return w.remains(assay.CategoryParameterConfig)
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
