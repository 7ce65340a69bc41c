package own

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/verdict"
)

// A course follows the calls of an episode.
type course struct {
	catalog *assay.Catalog
	judge   assay.Judge
	// planned are the calls of the reference plan that no required call stands for.
	planned []assay.Expected

	met  []bool // required calls that succeeded
	next int    // index of the next required call, if the order matters

	late      []bool // required calls that happened before their place
	unwanted  int
	forbidden []string
}

func follow(catalog *assay.Catalog, task *assay.Task) *course {
	c := &course{catalog: catalog}
	if task.Judge != nil {
		c.judge = *task.Judge
	}
	if task.Reference != nil {
		c.planned = task.Reference.Calls
	}
	c.met, c.late = make([]bool, len(c.judge.Calls)), make([]bool, len(c.judge.Calls))
	return c
}

// step takes the next call and returns its use.
func (c *course) step(call *assay.CallRecord) verdict.Use {
	for i := range c.judge.Forbidden {
		if call.Happened() && fits(&c.judge.Forbidden[i], call) {
			c.forbidden = append(c.forbidden, call.Tool)
		}
	}
	at := c.required(call)
	if at >= 0 && call.Happened() {
		c.met[at] = true
		for c.next < len(c.met) && c.met[c.next] {
			c.next++
		}
		return verdict.Useful
	}
	for i := range c.judge.Calls {
		c.late[i] = c.late[i] || !c.met[i] && call.Happened() && fits(&c.judge.Calls[i], call)
	}
	switch {
	case call.Mistake && c.wants(call.Tool):
		return verdict.Mistaken
	case call.Mistake:
		return verdict.Idle
	case !call.Happened() && (at >= 0 || c.plans(call)):
		return verdict.Unlucky
	case !call.Happened():
		return verdict.Idle
	case c.plans(call):
		return verdict.Useful
	}
	c.effect(call)
	return verdict.Idle
}

// required returns the index of the required call that a call is, or -1. If the order matters, it
// is the next one.
func (c *course) required(call *assay.CallRecord) int {
	for i := range c.judge.Calls {
		if !c.met[i] && fits(&c.judge.Calls[i], call) && (c.judge.AnyOrder || i == c.next) {
			return i
		}
	}
	return -1
}

func (c *course) wants(tool string) bool {
	for i := range c.judge.Calls {
		if !c.met[i] && toolOf(&c.judge.Calls[i]) == tool {
			return true
		}
	}
	return false
}

// plans reports whether a call without an effect, or one that no required call stands for, is part
// of the reference plan.
func (c *course) plans(call *assay.CallRecord) bool {
	for i := range c.planned {
		if fits(&c.planned[i], call) && !(c.changes(call) && c.listed(call)) {
			return true
		}
	}
	return false
}

// listed reports whether a call fits a required one, whether or not that has succeeded.
func (c *course) listed(call *assay.CallRecord) bool {
	return slices.ContainsFunc(c.judge.Calls, func(e assay.Expected) bool { return fits(&e, call) })
}

func (c *course) changes(call *assay.CallRecord) bool {
	tool, _ := c.catalog.Tool(call.Tool)
	return tool.Effect != ""
}

// effect counts a successful call that changes something and that neither the judge nor the plan
// has.
func (c *course) effect(call *assay.CallRecord) {
	allowed := slices.ContainsFunc(c.judge.Allowed, func(e assay.Expected) bool {
		return fits(&e, call)
	})
	if c.changes(call) && !allowed {
		c.unwanted++
	}
}

// newCourse implements [spec.Definition].
func newCourse(catalog *assay.Catalog, task *assay.Task) *verdict.Course {
	c := follow(catalog, task)
	return &verdict.Course{
		Catalog: catalog, Required: task.Required,
		Sound: func(call *assay.CallRecord, next int) (some, place bool) {
			return c.listed(call), next < len(c.judge.Calls) && fits(&c.judge.Calls[next], call)
		},
	}
}

// Verdict judges an episode. Full success means that the model claimed to be done and that all
// conditions of the task's judge hold: the required calls succeeded, no other call had an effect or
// was forbidden, and state, answer and check are right. If everything but the calls is wrong, or a
// check says so, it is a partial success or a failure. The witness may be nil.
func Verdict(
	catalog *assay.Catalog, task assay.Task, tr *assay.Transcript, w *verdict.Witness,
) assay.Outcome {
	c := follow(catalog, &task)
	uses := make([]verdict.Use, len(tr.Calls))
	for i := range tr.Calls {
		uses[i] = c.step(&tr.Calls[i])
	}
	o := verdict.Measured(task, tr, plannedTools(&task), uses)
	met := 0
	for _, ok := range c.met {
		if ok {
			met++
		}
	}
	if len(c.met) > 0 {
		o.Coverage = float64(met) / float64(len(c.met))
	}
	o.OrderCorrect = len(c.met) > 0 && met == len(c.met)
	o.UnwantedEffects = c.unwanted + len(c.forbidden)
	c.decide(&o, &task, tr, w)
	if o.Level != assay.FullSuccess && o.Level != "" {
		w.Decide("category")
		o.ErrorCategory = c.category(&o, tr, w)
	}
	return o
}

// plannedTools returns the tools of the reference plan, or else the required ones.
func plannedTools(task *assay.Task) []string {
	if task.Reference == nil {
		return task.Required
	}
	var tools []string
	for i := range task.Reference.Calls {
		tools = append(tools, toolOf(&task.Reference.Calls[i]))
	}
	return tools
}

// decide sets the level. It asks for every condition, so that an explanation shows all of them.
func (c *course) decide(
	o *assay.Outcome, task *assay.Task, tr *assay.Transcript, w *verdict.Witness,
) {
	w.Decide("level")
	answer := finalAnswer(tr, EndWordOf(task))
	calls := len(c.met) == 0 ||
		w.Need("all required calls succeeded", o.Coverage == 1, c.missing)
	harmless := w.Need("nothing changed that the task did not ask for", c.unwanted == 0,
		func() string { return verdict.Counted(c.unwanted, "unwanted effect") })
	permitted := len(c.judge.Forbidden) == 0 || w.Need("no forbidden call succeeded",
		len(c.forbidden) == 0, func() string { return strings.Join(c.forbidden, ", ") })
	claimed := w.Need("the model said that it was done", tr.Ended == assay.Finished,
		func() string { return verdict.EndedBy(tr.Ended) })
	state := len(c.judge.State) == 0 || w.Need("the final state is right",
		contains(tr.State, c.judge.State), func() string { return clip(tr.State) })
	told := len(c.judge.Answer)+len(c.judge.NotAnswer) == 0 || w.Need("the final answer is right",
		c.answers(answer), func() string { return clip(json.RawMessage(answer)) })
	checked, err := c.check(tr, answer, w)
	if err != nil {
		o.Undecided = err.Error()
		return
	}
	conditions := calls && claimed && state && told
	switch {
	case !harmless || !permitted || checked == assay.Failure:
		o.Level = assay.Failure
	case conditions && checked == assay.FullSuccess:
		o.Level = assay.FullSuccess
	case conditions || o.Coverage >= 0.6:
		o.Level = assay.PartialSuccess
	default:
		o.Level = assay.Failure
	}
}

// check returns the level of the task's own check, or full success if it has none.
func (c *course) check(
	tr *assay.Transcript, answer string, w *verdict.Witness,
) (assay.Level, error) {
	if c.judge.Check == "" {
		return assay.FullSuccess, nil
	}
	kit, err := toolkit.Of(c.catalog)
	if err != nil {
		return "", err
	}
	level, reasons, err := kit.Judge(c.judge.Check, tr.State, tr.Calls, answer)
	if err != nil {
		return "", err
	}
	w.Need("the check "+c.judge.Check+" is satisfied", level == assay.FullSuccess,
		func() string { return strings.Join(append([]string{string(level)}, reasons...), "; ") })
	return level, nil
}

// missing words which required calls have not succeeded.
func (c *course) missing() string {
	var names []string
	for i, ok := range c.met {
		if !ok {
			want := &c.judge.Calls[i]
			names = append(names, strings.TrimSpace(toolOf(want)+" "+string(want.Arguments)))
		}
	}
	text := fmt.Sprintf("%d of %d", len(c.met)-len(names), len(c.met))
	if len(names) > 0 {
		text += "; missing: " + strings.Join(names, ", ")
	}
	return text
}

func (c *course) answers(answer string) bool {
	answer = strings.ToLower(answer)
	in := func(text string) bool { return strings.Contains(answer, strings.ToLower(text)) }
	return !slices.ContainsFunc(c.judge.Answer, func(t string) bool { return !in(t) }) &&
		!slices.ContainsFunc(c.judge.NotAnswer, in)
}

// finalAnswer returns the model's last reply without the end word.
func finalAnswer(tr *assay.Transcript, word string) string {
	for _, m := range slices.Backward(tr.Messages) {
		if m.Role == assay.Assistant {
			answer, _ := cutEndWord(m.Content, word)
			return answer
		}
	}
	return ""
}

func clip(text json.RawMessage) string {
	const most = 200
	s := strings.Join(strings.Fields(string(text)), " ")
	if len(s) > most {
		return assay.Head(s, most) + "…"
	}
	return s
}

// category returns the reason why an episode is not a full success. The first rule that applies
// decides.
//
//  1. Something changed that the task did not ask for, or a forbidden call succeeded:
//     unwanted_effect.
//  2. There was no call although one was required: tool_selection if the model claimed to be done,
//     else tool_call_format.
//  3. A required call is missing. If its tool was called with arguments that were refused, or that
//     are not those that were asked for, it is parameter_config. If it succeeded before its place,
//     it is sequence_order. Else, if the model claimed to be done, it is tool_selection.
//  4. The episode was cut off: max_turns.
//  5. State, answer or check are wrong: tool_selection.
func (c *course) category(o *assay.Outcome, tr *assay.Transcript, w *verdict.Witness) string {
	claimed := tr.Ended == assay.Finished
	missing := slices.Index(c.met, false)
	switch {
	case w.Ask("something changed that the task did not ask for", o.UnwantedEffects > 0,
		func() string { return verdict.Counted(o.UnwantedEffects, "unwanted effect") }):
		return assay.CategoryUnwantedEffect
	case w.Ask("no call was made", len(tr.Calls) == 0 && missing >= 0 && !claimed,
		func() string { return verdict.Made(tr) }):
		return assay.CategoryToolCallFormat
	case missing >= 0 && w.Ask("a required call had other arguments", c.misdone(missing, tr.Calls),
		c.missing):
		return assay.CategoryParameterConfig
	case missing >= 0 && w.Ask("it succeeded before its place", c.late[missing],
		c.missing):
		return assay.CategorySequenceOrder
	case w.Ask("the episode was cut off", !claimed,
		func() string { return verdict.EndedBy(tr.Ended) }):
		return assay.CategoryMaxTurns
	}
	return w.Remains(assay.CategoryToolSelection)
}

// misdone reports whether the tool of a required call was called, but not as required.
func (c *course) misdone(i int, calls []assay.CallRecord) bool {
	want := &c.judge.Calls[i]
	return slices.ContainsFunc(calls, func(r assay.CallRecord) bool {
		return r.Tool == toolOf(want) && (r.Mistake || r.Happened() && !c.listed(&r))
	})
}
