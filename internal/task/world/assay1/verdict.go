package assay1

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/verdict"
)

// Verdict judges an episode. Full success means that the required tools succeeded in order with the
// right data and values, that the model claimed to be done and handed over the result of the last
// one, and that all changes were asked for by the task. Partial success means at least 60 % of the
// required tools, with at least half of the calls spent on them. A task that requires no tools
// cannot succeed. The witness may be nil.
func Verdict(
	catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, w *verdict.Witness,
) assay.Outcome {
	l := newLineage(catalog, &task)
	c := &course{Course: l.course(task.Required), lineage: l}
	uses := c.Follow(tr.Calls)
	o := verdict.Measured(task, tr, l.steps, uses)
	o.Coverage = l.coverage()
	o.OrderCorrect = len(task.Required) > 0 && c.Next == len(task.Required)
	o.UnwantedEffects, o.Broken = l.unwanted, l.broken
	o.Level = c.level(&o, tr, w)
	if o.Level != assay.FullSuccess {
		w.Decide("category")
		o.ErrorCategory = c.category(tr, uses, w)
	}
	return o
}

// newCourse implements [spec.Definition].
func newCourse(catalog *assay.Catalog, task *assay.Task) *verdict.Course {
	c := newLineage(catalog, task).course(task.Required)
	return &c
}

func (l *lineage) course(required []string) verdict.Course {
	return verdict.Course{Catalog: l.catalog, Required: required, Sound: l.follow}
}

// A course is the shared one with this world's questions.
type course struct {
	verdict.Course
	lineage *lineage
}

// level asks for every condition of full success, so that an explanation shows all of them.
func (c *course) level(o *assay.Outcome, tr *assay.Transcript, w *verdict.Witness) assay.Level {
	w.Decide("level")
	covered := func() string { return c.covered(o) }
	all := w.Need("all required tools succeeded with the right data and values", o.Coverage == 1,
		covered)
	order := w.Need("they did in the required order", o.OrderCorrect, c.inPlace)
	claimed := w.Need("the model said that it was done", o.Ended == assay.Finished,
		func() string { return verdict.EndedBy(o.Ended) })
	delivered := w.Need("the last one changed something, or its result was handed over",
		c.lineage.delivers(handed(tr)), func() string { return c.delivered(tr) })
	harmless := w.Need("nothing changed that the task did not ask for", o.UnwantedEffects == 0,
		func() string { return verdict.Counted(o.UnwantedEffects, "unwanted effect") })
	if all && order && claimed && delivered && harmless {
		return assay.FullSuccess
	}
	most := w.Ask("at least 60 % of the required tools succeeded with the right data and values",
		o.Coverage >= 0.6, covered)
	if most && w.Ask("at least half of the calls were not wasted", o.Efficiency >= 0.5,
		func() string {
			return fmt.Sprintf("%d of %d", o.ToolCalls-o.Wasted, o.ToolCalls)
		}) {
		return assay.PartialSuccess
	}
	return assay.Failure
}

// covered words which required tools lack a sound result.
func (c *course) covered(o *assay.Outcome) string {
	if len(c.Required) == 0 {
		return "the task requires none"
	}
	var lacking []string
	for i, p := range c.lineage.places {
		switch name := c.Required[i]; {
		case c.lineage.done.Has(p):
		case slices.Contains(o.ExecutedTools, name):
			lacking = append(lacking, name+" had the wrong data or values")
		default:
			lacking = append(lacking, name+" never did")
		}
	}
	text := fmt.Sprintf("%d of %d", len(c.Required)-len(lacking), len(c.Required))
	if len(lacking) > 0 {
		text += "; " + strings.Join(lacking, ", ")
	}
	return text
}

// handed returns the tool that the model named when it claimed to be done, or "".
func handed(tr *assay.Transcript) string {
	for _, m := range slices.Backward(tr.Messages) {
		if m.Role != assay.Assistant {
			continue
		}
		at := doneWord.FindStringSubmatchIndex(m.Content)
		if at == nil {
			return ""
		}
		name := strings.FieldsFunc(m.Content[at[2]:], func(r rune) bool {
			return r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
		})
		if len(name) == 0 {
			return ""
		}
		return name[0]
	}
	return ""
}

// delivered words the effect or the result that the work ended in.
func (c *course) delivered(tr *assay.Transcript) string {
	if len(c.Required) == 0 {
		return "the task requires none"
	}
	last := c.Required[len(c.Required)-1]
	if tool, _ := c.Catalog.Tool(last); tool.Effect != "" {
		return last + ": " + tool.Effect
	}
	name := handed(tr)
	if _, ok := c.lineage.results[name]; !ok {
		name = c.lineage.latest
	}
	if name == "" {
		return "there was no result"
	}
	return name + " was handed over"
}

// inPlace words how far the required order was kept.
func (c *course) inPlace() string {
	text := fmt.Sprintf("%d of %d in their place", c.Next, len(c.Required))
	if c.Next < len(c.Required) {
		text += "; the next one is " + c.Required[c.Next]
	}
	return text
}

// category returns the reason why an episode is not a full success. Two terms: the step is the
// first required tool that has not succeeded in its place. The rest are the calls after the last
// useful or unlucky one. They are all wasted, and the step was next during all of them. The first
// rule that applies decides.
//
//  1. There was no call. The category is tool_call_format if there was no lookup, or if more
//     turns were corrected than had a lookup. Otherwise it is tool_selection if the model claimed
//     to be done, and max_turns if it did not.
//  2. Something changed that the task did not ask for: unwanted_effect.
//  3. All required tools succeeded in their places. The category is tool_selection if the model
//     claimed to be done and handed over another result, and max_turns if it did not claim.
//  4. The step succeeded too early, in a call that nothing needed: sequence_order. With the same
//     luck it would have succeeded in its place.
//  5. The rest has wanted calls that were mistakes or had the wrong data or values. The last one
//     decides between dependency and parameter_config.
//  6. The latest call of the step was a mistake, wherever it occurred, and the last useful or
//     unlucky call was not unlucky. That mistake decides in the same way. The steps of a plan in
//     the wrong order are refused, and a model that follows the plan does not come back to them.
//  7. The rest has a tool that the task has no use for: tool_selection.
//  8. The model claimed to be done and never called the step, and it did not give up on the
//     step's dependencies: tool_selection.
//  9. The rest has a tool that is required later: sequence_order.
//  10. The model claimed to be done. If it gave up after bad luck, the category is other. If the
//     step had succeeded for an earlier tool that depends on it, it is sequence_order. Otherwise
//     the step was left out: tool_selection.
//  11. The episode was cut off. The category is other if more replies were lost to bad luck than
//     were wasted or idle. If the model lost more replies to mistakes than to anything else of
//     its own doing, the last mistake decides as in 5. Otherwise it is max_turns.
//
// The code of a failure by chance does not matter.
func (c *course) category(tr *assay.Transcript, uses []verdict.Use, w *verdict.Witness) string {
	switch {
	case w.Ask("no call was carried out", len(tr.Calls) == 0, func() string { return verdict.Made(tr) }):
		return withoutCall(tr, w)
	case w.Ask("something changed that the task did not ask for", c.lineage.unwanted > 0,
		func() string { return verdict.Counted(c.lineage.unwanted, "unwanted effect") }):
		return assay.CategoryUnwantedEffect
	case w.Ask("the required tools succeeded in their places", c.Next == len(c.Required),
		c.inPlace):
		if w.Ask("the model said that it was done", tr.Ended == assay.Finished,
			func() string { return verdict.EndedBy(tr.Ended) }) {
			return assay.CategoryToolSelection
		}
		return w.Remains(assay.CategoryMaxTurns)
	}

	from := len(uses)
	for from > 0 && uses[from-1].Wasted() {
		from--
	}
	e := ending{
		course: c, calls: tr.Calls, uses: uses, from: from,
		step:    c.Required[c.Next],
		claimed: tr.Ended == assay.Finished,
		gaveUp:  from > 0 && uses[from-1] == verdict.Unlucky,
	}
	if category := e.category(w); category != "" {
		return category
	}
	if w.Ask("the model said that it was done", e.claimed, func() string {
		return verdict.EndedBy(tr.Ended)
	}) {
		return e.leftOff(w)
	}
	return c.cutOff(tr, uses, w)
}

// withoutCall returns the category of an episode without a call.
func withoutCall(tr *assay.Transcript, w *verdict.Witness) string {
	looked, corrected := verdict.Lookups(tr), 0 // turns
	for _, t := range tr.Turns {
		if t.Assisted {
			corrected++
		}
	}
	switch {
	case w.Ask("no turn had a lookup, or more were corrected than had one",
		looked == 0 || corrected > looked, func() string {
			return fmt.Sprintf("%s with a lookup, %d corrected",
				verdict.Counted(looked, "turn"), corrected)
		}):
		return assay.CategoryToolCallFormat
	case w.Ask("the model said that it was done", tr.Ended == assay.Finished,
		func() string { return verdict.EndedBy(tr.Ended) }):
		return assay.CategoryToolSelection
	}
	return w.Remains(assay.CategoryMaxTurns)
}

// cutOff returns the category of an episode that was cut off, if no call explains the reason.
func (c *course) cutOff(tr *assay.Transcript, uses []verdict.Use, w *verdict.Witness) string {
	n := losses(tr, uses)
	lost := n[byNeedless] + n[byMistake] + n[byLookup] + n[byTalk]
	mostlyMistakes := n[byMistake] > max(n[byNeedless], n[byLookup], n[byTalk])
	switch {
	case w.Ask("more replies were lost to bad luck than by the model's own doing", n[byLuck] > lost,
		func() string {
			return fmt.Sprintf("%d to bad luck, %d by its own doing", n[byLuck], lost)
		}):
		return assay.CategoryOther
	case w.Ask("more of these held only mistakes than anything else", mostlyMistakes,
		func() string {
			return fmt.Sprintf("%d only mistakes, %d needless calls, %d lookups, %d nothing",
				n[byMistake], n[byNeedless], n[byLookup], n[byTalk])
		}):
		last := lastIndex(tr.Calls, func(r assay.CallRecord) bool { return r.Mistake })
		return c.fault(tr.Calls, last, w)
	}
	return w.Remains(assay.CategoryMaxTurns)
}

// fault returns the category of the mistake in calls[i]. It is dependency if the world reported
// that a dependency had not succeeded. It is also dependency if the arguments name one that had
// not, because the world checks references before it looks at dependencies.
func (c *course) fault(calls []assay.CallRecord, i int, w *verdict.Witness) string {
	tool, _ := c.Catalog.Tool(calls[i].Tool)
	done := verdict.Succeeded(calls[:i])
	named := func(d string) bool {
		return !slices.Contains(done, d) && strings.Contains(calls[i].Arguments, strconv.Quote(d))
	}
	tooSoon := calls[i].Code == DependencyFail || slices.ContainsFunc(tool.Dependencies, named)
	if w.Ask("that mistake was a dependency that had not succeeded", tooSoon,
		func() string { return verdict.Nth(calls, i) + " failed with " + calls[i].Code }) {
		return assay.CategoryDependency
	}
	return w.Remains(assay.CategoryParameterConfig)
}

// A loss is the reason why a reply made no progress.
type loss int

// The losses of replies. A reply with several calls has the first loss of this list that one of
// its calls has.
const (
	byNothing  loss = iota // a call was useful
	byLuck                 // a call was unlucky
	byNeedless             // a call without a mistake was not wanted
	byMistake              // all calls were mistakes
	byLookup               // no call, but a lookup
	byTalk                 // neither
	lossKinds
)

// losses counts the replies of an episode by their losses.
func losses(tr *assay.Transcript, uses []verdict.Use) (n [lossKinds]int) {
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
		case uses[i] == verdict.Useful:
			l = byNothing
		case uses[i] == verdict.Unlucky:
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

// lastIndex returns the index of the last element that fits, or -1.
func lastIndex[E any](s []E, fits func(E) bool) int {
	for i, e := range slices.Backward(s) {
		if fits(e) {
			return i
		}
	}
	return -1
}
