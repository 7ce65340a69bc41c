package score

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// An Explanation shows step by step how an outcome came about.
type Explanation struct {
	// Outcome is the result of [Judge.Outcome] by the current rules.
	Outcome assay.Outcome `json:"outcome"`
	// Reason says how the episode ended and what went wrong first.
	Reason Reason `json:"reason"`
	// Plan holds the required tools in order. Given holds the steps of the plan that the model
	// was shown, or nil.
	Plan  []PlanStep `json:"plan"`
	Given []PlanStep `json:"given"`
	// Path holds every call in order.
	Path []PathStep `json:"path"`
	// Measures are the figures of the outcome and the reasons for them.
	Measures []Measure `json:"measures"`
	// Changes are the values of the tools' state that the calls changed, and Wanted are those that
	// the judge asks for. Both are nil in worlds whose tools have no state.
	Changes []spec.Change `json:"changes,omitempty"`
	Wanted  []spec.Wanted `json:"wanted,omitempty"`
	// Rules are the questions that the verdict asked, in order. The last one states level and
	// category.
	Rules []spec.Rule `json:"rules"`
}

// A PlanStep shows how often a step was tried and whether it succeeded. Each call belongs to at
// most one step; see [PathStep].
type PlanStep struct {
	Tool string `json:"tool"`
	// Optional means that the step is in the task's plan, but not required.
	Optional bool `json:"optional,omitempty"`
	// Turn and Call locate the first success, both counted from 1. They are 0 without one.
	Turn     int `json:"turn"`
	Call     int `json:"call"`
	Tries    int `json:"tries"`
	Failures int `json:"failures"` // by chance
	Mistakes int `json:"mistakes"`
	// InOrder means that the step succeeded in its place. In Plan, the place follows from the
	// required order as the world defines it, so all steps are in order if the outcome's order
	// is correct. In Given, it follows from a longest common subsequence with the successes,
	// the one that adherence counts.
	InOrder bool `json:"in_order"`
}

// A PathStep is a call and its effect on the task.
type PathStep struct {
	Turn int    `json:"turn"`
	Tool string `json:"tool"`
	Mark Mark   `json:"mark"`
	Code string `json:"code,omitempty"` // of a call that failed
	// Fault is the kind of fault that the call met, in a trial with a mix of them.
	Fault assay.ToolFault `json:"fault,omitempty"`
	// Chance and Luck belong to the call. Both are 0 for a mistake.
	Chance float64 `json:"chance"`
	Luck   float64 `json:"luck"`
	// Step and Given are indexes into Plan and Given, or -1 if the list does not have the tool. A
	// call without its own place belongs to the step of the next call of its tool that has one, or
	// else to the first step of its tool that is not in order yet, or else to the last step of its
	// tool. In own-1, only the steps of its tool count.
	Step  int `json:"step"`
	Given int `json:"given_step"`
	// Wasted, Recovered and Extra mean that the outcome counts the call under these names.
	Wasted    bool `json:"wasted"`
	Recovered bool `json:"recovered"`
	Extra     bool `json:"extra"`
	// Unwanted is the reason why the call is an unwanted effect, in worlds that state it.
	Unwanted string `json:"unwanted,omitempty"`
	// Harm is that of the unwanted effect, if it is known.
	Harm assay.Harm `json:"harm,omitempty"`
	// Reaction is what became of the fault that the call met, unless it continues that of an earlier one.
	Reaction *Reaction `json:"reaction,omitempty"`
}

// A Mark describes a call. The world own-1 has its own marks.
type Mark = spec.Mark

// The marks of calls: first for calls that succeeded, then for calls that failed.
const (
	InOrder    Mark = "required and in order"
	Dependency Mark = "a dependency"
	OutOfOrder Mark = "required, out of order"
	Repeated   Mark = "repeated" // not wanted, and it had succeeded before
	Needless   Mark = "needless" // not wanted, not required, and new
	Unsound    Mark = "wrong data or values"

	Unlucky  Mark = "failed by chance"
	Mistaken Mark = "a mistake"
)

// A Measure is a figure of the outcome.
type Measure struct {
	Name    string `json:"measure"`
	Value   string `json:"value"`
	Because string `json:"because"`
}

// Explain judges an episode as [Judge.Outcome] does and shows how. It depends on its arguments
// only.
func (j *Judge) Explain(trial *assay.Trial, task *assay.Task, tr *assay.Transcript) Explanation {
	why := &spec.Rationale{}
	e, b := j.judge(trial, task, tr, why)
	e.measure(j.catalog, trial, task, b, tr.Plan)
	why.Decide("verdict")
	why.Ask("the level is "+string(e.Outcome.Level), true, func() string {
		if e.Outcome.ErrorCategory == "" {
			return "no error category"
		}
		return "the error category is " + e.Outcome.ErrorCategory
	})
	e.Rules = why.Rules
	return e
}

// trace fills in the plans and the path.
func (e *Explanation) trace(
	catalog *assay.Catalog, trial *assay.Trial, task *assay.Task, tr *assay.Transcript,
) basis {
	d := world.Of(trial.World)
	b := basis{plan: d.Steps(catalog, task.Required), name: "the task's plan"}
	if d.Trace != nil {
		b = e.traced(d.Trace(catalog, task, tr), tr.Calls)
	} else {
		e.walked(d.Course(catalog, task), task.Required, tr.Calls)
		b.covered = "required tools that succeeded: " + spec.Covered(&e.Outcome)
	}
	if len(tr.Plan) > 0 {
		var places []int
		e.Given, places = follow(tr.Plan, tr.Calls, aligned(tr.Plan, tr.Calls))
		for i := range e.Path {
			e.Path[i].Given = places[i]
		}
	}
	return b
}

// A basis is the plan with which the measures of an outcome compare the calls.
type basis struct {
	plan    []string // the tools for adherence
	name    string   // of the plan
	covered string   // words the coverage
}

// walked fills in plan and path in a world that follows tools in order.
func (e *Explanation) walked(c *spec.Course, required []string, calls []assay.CallRecord) {
	places := e.walk(c, calls)
	e.Plan, places = follow(required, calls, places)
	for i := range e.Path {
		e.Path[i].Step = places[i]
	}
}

// traced fills in plan and path in a world that shows how it judged the calls.
func (e *Explanation) traced(t spec.Trace, calls []assay.CallRecord) basis {
	e.Changes, e.Wanted = t.Changes, t.Wanted
	for _, s := range t.Steps {
		e.Plan = append(e.Plan, PlanStep{Tool: s.Tool, Optional: s.Optional})
	}
	fates := spec.Fates(calls)
	e.Path = make([]PathStep, len(calls))
	for i, call := range calls {
		j := t.Calls[i]
		e.Path[i] = pathStep(calls, i, fates[i], j.Use)
		e.Path[i].Mark, e.Path[i].Step, e.Path[i].Unwanted = j.Mark, j.Step, j.Unwanted
		e.Path[i].Harm = j.Harm
		switch {
		case j.Step < 0:
		case call.Happened() && !j.Placed: // it is not a success of the step
			e.Plan[j.Step].Tries++
		default:
			e.Plan[j.Step].count(&call, i, j.Placed)
		}
	}
	return basis{t.Plan, t.PlanName, "required calls that happened: " + t.Covered}
}

// pathStep returns the i-th call as a step that failed by chance.
func pathStep(calls []assay.CallRecord, i int, fate spec.Fate, use spec.Use) PathStep {
	call := &calls[i]
	return PathStep{
		Turn: call.Turn, Tool: call.Tool, Mark: Unlucky,
		Code: call.Code, Fault: call.Fault, Chance: call.Chance, Luck: call.Luck,
		Step: -1, Given: -1,
		Wasted:    use.Wasted(),
		Recovered: fate == spec.Overcome,
		Extra:     spec.BeyondFirst(calls, i),
	}
}

// walk fills in the path except for its steps. For each call of the next required tool it returns
// that tool's place, and -1 for all other calls.
func (e *Explanation) walk(c *spec.Course, calls []assay.CallRecord) []int {
	places, fates := make([]int, len(calls)), spec.Fates(calls)
	e.Path = make([]PathStep, len(calls))
	for i, call := range calls {
		next := c.Next
		use := c.Step(&call)
		isNext := next < len(c.Required) && c.Required[next] == call.Tool
		places[i] = -1
		if isNext && use != spec.Unsound {
			places[i] = next
		}
		e.Path[i] = pathStep(calls, i, fates[i], use)
		switch {
		case call.Happened():
			had := slices.ContainsFunc(calls[:i], func(r assay.CallRecord) bool {
				return r.Happened() && r.Tool == call.Tool
			})
			e.Path[i].Mark = worked(use, isNext, had, slices.Contains(c.Required, call.Tool))
		case call.Mistake:
			e.Path[i].Mark = Mistaken
		}
	}
	return places
}

// worked returns the mark of a call that succeeded. isNext means that its tool was the next
// required one, had that the tool had succeeded before, and required that the task requires it.
func worked(use spec.Use, isNext, had, required bool) Mark {
	switch {
	case use == spec.Unsound:
		return Unsound
	case use == spec.Useful && isNext:
		return InOrder
	case use == spec.Useful:
		return Dependency
	case had:
		return Repeated
	case required:
		return OutOfOrder
	}
	return Needless
}

// follow returns a plan's steps with their tries and successes, and the step that each call belongs
// to. places holds the calls' own places, or -1.
func follow(plan []string, calls []assay.CallRecord, places []int) ([]PlanStep, []int) {
	steps, of := make([]PlanStep, len(plan)), make([]int, len(calls))
	for i, tool := range plan {
		steps[i].Tool = tool
	}
	for i, call := range calls {
		of[i] = belongs(steps, calls[i:], places[i:])
		if of[i] < 0 {
			continue
		}
		steps[of[i]].count(&call, i, places[i] >= 0)
	}
	return steps, of
}

// count adds the i-th call to its step. Placed means that it is in its place.
func (s *PlanStep) count(call *assay.CallRecord, i int, placed bool) {
	s.Tries++
	switch {
	case call.Happened():
		if s.Call == 0 {
			s.Turn, s.Call = call.Turn, i+1
		}
		s.InOrder = s.InOrder || placed
	case call.Mistake:
		s.Mistakes++
	default:
		s.Failures++
	}
}

// belongs returns the step that the first of the calls belongs to; see [PathStep].
func belongs(steps []PlanStep, calls []assay.CallRecord, places []int) int {
	tool := calls[0].Tool
	for i, p := range places {
		if p >= 0 && calls[i].Tool == tool {
			return p
		}
	}
	last := -1
	for i, s := range steps {
		if s.Tool == tool {
			last = i
			if !s.InOrder {
				break
			}
		}
	}
	return last
}

// aligned returns the places of calls in a plan, along the first longest common subsequence of the
// plan and the successes. It returns -1 for all other calls.
func aligned(plan []string, calls []assay.CallRecord) []int {
	places := make([]int, len(calls))
	executed, at := spec.Succeeded(calls), 0
	for i, call := range calls {
		places[i] = -1
		if !call.Happened() {
			continue
		}
		rest := executed[1:]
		k := slices.Index(plan[at:], call.Tool)
		if k >= 0 && 1+spec.Common(plan[at+k+1:], rest) == spec.Common(plan[at:], executed) {
			places[i] = at + k
			at += k + 1
		}
		executed = rest
	}
	return places
}

// measure lists the figures of the outcome with their reasons. given is the plan that the model was
// shown.
func (e *Explanation) measure(
	catalog *assay.Catalog, trial *assay.Trial, task *assay.Task, b basis, given []string,
) {
	o := &e.Outcome
	add := func(name, value, because string) {
		e.Measures = append(e.Measures, Measure{name, value, because})
	}
	add("coverage", decimal(o.Coverage), b.covered)
	add("order", yesNo(o.OrderCorrect), e.order())
	add("adherence", decimal(o.Adherence), adhered(b.plan, o.ExecutedTools, b.name))
	if !slices.Equal(b.plan, o.RequiredTools) && len(e.Plan) == len(o.RequiredTools) {
		last := &e.Measures[len(e.Measures)-1]
		last.Because += ". With what the required tools build on, that plan is " + strings.Join(
			b.plan, ", ")
	}
	if o.GivenAdherence != nil {
		add("to the given plan", decimal(*o.GivenAdherence),
			adhered(given, o.ExecutedTools, "the plan that was shown"))
	}
	add("efficiency", decimal(o.Efficiency), e.spent())
	limit := assay.Counted(trial.Calls, "call")
	if trial.Calls == 0 {
		limit = assay.Counted(trial.Turns, "turn")
	}
	if _, known := workflow.Planned(trial.World, task); !known {
		add("best possible", "unknown", "the task has no plan")
		return
	}
	if !workflow.BestKnown(catalog, trial, task) {
		why := "answers can hide what has happened"
		if trial.LimitsBest() {
			why = "of limits that the best policy does not know"
		}
		add("best possible", "unknown", fmt.Sprintf("at most %.3f, because %s", o.Best, why))
		return
	}
	add("best possible", fmt.Sprintf("%.3f", o.Best),
		fmt.Sprintf("the best policy's rate of full success, with reliability %s and %s",
			assay.FormatReliability(trial.Reliability), limit))
}

// order words which steps succeeded in their place.
func (e *Explanation) order() string {
	var not []string
	n := 0
	for _, s := range e.Plan {
		if s.Optional {
			continue
		}
		if n++; !s.InOrder {
			not = append(not, s.Tool)
		}
	}
	if n == 0 {
		return "the task requires no call"
	}
	text := fmt.Sprintf("steps that succeeded in their place: %d of %d", n-len(not), n)
	if len(not) > 0 {
		text += "; not " + strings.Join(not, ", ")
	}
	return text
}

// adhered words the parts of adherence to a plan.
func adhered(plan, executed []string, name string) string {
	if len(executed) == 0 {
		return "no call succeeded"
	}
	return fmt.Sprintf("%d in common, in order, / the longer of %s (%d) and the successes (%d)",
		spec.Common(plan, executed), name, len(plan), len(executed))
}

// spent words how many calls were wasted, by mark, the most frequent first.
func (e *Explanation) spent() string {
	o := &e.Outcome
	if o.ToolCalls == 0 {
		return "no call was carried out"
	}
	times := make(map[Mark]int)
	for _, s := range e.Path {
		if s.Wasted {
			times[s.Mark]++
		}
	}
	var marks []string
	often := func(a, b Mark) int {
		return cmp.Or(times[b]-times[a], strings.Compare(string(a), string(b)))
	}
	for _, m := range slices.SortedFunc(maps.Keys(times), often) {
		marks = append(marks, fmt.Sprintf("%s (%d)", m, times[m]))
	}
	text := fmt.Sprintf("%d of %s not wasted", o.ToolCalls-o.Wasted,
		assay.Counted(o.ToolCalls, "call"))
	if len(marks) > 0 {
		text += "; wasted: " + strings.Join(marks, "; ")
	}
	return text
}

func decimal(v float64) string { return fmt.Sprintf("%.2f", v) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
