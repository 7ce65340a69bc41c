package score

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// An Explanation tells step by step how an outcome came about.
type Explanation struct {
	// Outcome is what [Judge.Outcome] gives by the rules of now.
	Outcome assay.Outcome `json:"outcome"`
	// Plan holds the required tools in order, and Given the steps of the plan
	// that the model was shown; nil where it was shown none.
	Plan  []PlanStep `json:"plan"`
	Given []PlanStep `json:"given"`
	// Path holds every call in order.
	Path []PathStep `json:"path"`
	// Measures are the figures of the outcome and what they are made of.
	Measures []Measure `json:"measures"`
	// Rules are the questions that were asked, in order; the last one states
	// level and category.
	Rules []Rule `json:"rules"`
}

// A PlanStep is what became of a step. Each call belongs to one step at most;
// see [PathStep].
type PlanStep struct {
	Tool string `json:"tool"`
	// Turn and Call tell the first success, both from 1; 0 for never.
	Turn     int `json:"turn"`
	Call     int `json:"call"`
	Tries    int `json:"tries"`
	Failures int `json:"failures"` // by chance
	Mistakes int `json:"mistakes"`
	// InOrder says that the step succeeded in its place. Of Plan that is the
	// required order as the world has it, so that all steps are in order where
	// the outcome's order is correct. Of Given it is a longest common
	// subsequence with the successes: the one that adherence counts.
	InOrder bool `json:"in_order"`
}

// A PathStep is a call and what it was for its task.
type PathStep struct {
	Turn int    `json:"turn"`
	Tool string `json:"tool"`
	Mark Mark   `json:"mark"`
	Code string `json:"code,omitempty"` // of a call that failed
	// Chance and Luck are those of the call; both are 0 for a mistake.
	Chance float64 `json:"chance"`
	Luck   float64 `json:"luck"`
	// Step and Given are the places of the step in the lists of that name, from
	// 0; -1 where the list has no such tool. A call that has no place of its own
	// belongs to the step of the next call of its tool that has, else to the
	// first step of its tool that had none before, else to the last.
	Step  int `json:"step"`
	Given int `json:"given_step"`
	// Wasted, Recovered and Extra say that the call is among those that the
	// outcome counts under these names.
	Wasted    bool `json:"wasted"`
	Recovered bool `json:"recovered"`
	Extra     bool `json:"extra"`
}

// A Mark is what a call was.
type Mark string

// The marks of calls: of those that worked, and of those that failed.
const (
	InOrder    Mark = "required and in order"
	Dependency Mark = "a dependency"
	OutOfOrder Mark = "required, out of order"
	Repeated   Mark = "repeated" // not wanted, and it had succeeded before
	Needless   Mark = "needless" // not wanted, not required, and new

	Unlucky  Mark = "failed by chance"
	Mistaken Mark = "a mistake"
)

// A Measure is a figure of the outcome.
type Measure struct {
	Name    string `json:"measure"`
	Value   string `json:"value"`
	Because string `json:"because"`
}

// Explain judges an episode as [Judge.Outcome] does, and tells how. It is a
// function of its arguments alone.
func (j *Judge) Explain(trial *assay.Trial, task *assay.Task, tr *assay.Transcript) Explanation {
	w := &witness{}
	e := Explanation{Outcome: j.judge(trial, task, tr, w)}
	c := &course{catalog: j.catalog, required: task.Required, firsts: trial.World == world.PilotName}
	plan := c.plan()
	places := e.walk(c, tr.Calls)
	e.Plan, places = follow(task.Required, tr.Calls, places)
	for i := range e.Path {
		e.Path[i].Step, e.Path[i].Given = places[i], -1
	}
	if len(tr.Plan) > 0 {
		e.Given, places = follow(tr.Plan, tr.Calls, aligned(tr.Plan, tr.Calls))
		for i := range e.Path {
			e.Path[i].Given = places[i]
		}
	}
	e.measure(trial, plan, tr.Plan)
	w.decide("verdict")
	w.ask("the level is "+string(e.Outcome.Level), true, func() string {
		if e.Outcome.ErrorCategory == "" {
			return "no error category"
		}
		return "the error category is " + e.Outcome.ErrorCategory
	})
	e.Rules = w.rules
	return e
}

// walk sets the path but for its steps. It returns for each call of the next
// required tool the place of that, and -1 for all others.
func (e *Explanation) walk(c *course, calls []assay.CallRecord) []int {
	places, went := make([]int, len(calls)), fates(calls)
	e.Path = make([]PathStep, len(calls))
	for i, call := range calls {
		places[i] = -1
		if c.next < len(c.required) && c.required[c.next] == call.Tool {
			places[i] = c.next
		}
		u := c.use(&call)
		e.Path[i] = PathStep{
			Turn: call.Turn, Tool: call.Tool, Mark: c.mark(u, went[i], call.Tool),
			Code: call.Code, Chance: call.Chance, Luck: call.Luck,
			Wasted: u.wasted(), Recovered: went[i] == overcome, Extra: beyondFirst(calls, i),
		}
		if call.OK {
			c.succeed(call.Tool)
		}
	}
	return places
}

// mark is what a call is that comes next.
func (c *course) mark(u use, f fate, tool string) Mark {
	switch {
	case f == mistake:
		return Mistaken
	case f != worked:
		return Unlucky
	case u == useful && c.next < len(c.required) && c.required[c.next] == tool:
		return InOrder
	case u == useful:
		return Dependency
	case slices.Contains(c.done, tool):
		return Repeated
	case slices.Contains(c.required, tool):
		return OutOfOrder
	}
	return Needless
}

// follow tells what became of a plan's steps, and to which of them each call
// belongs. Places are those that calls have of their own, -1 for none.
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
		s := &steps[of[i]]
		s.Tries++
		switch {
		case call.OK:
			if s.Call == 0 {
				s.Turn, s.Call = call.Turn, i+1
			}
			s.InOrder = s.InOrder || places[i] >= 0
		case call.Mistake:
			s.Mistakes++
		default:
			s.Failures++
		}
	}
	return steps, of
}

// belongs returns the step of the first of some calls; see [PathStep].
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

// aligned returns the places of calls in a plan along the first of the longest
// common subsequences of the plan and the successes, -1 for all others.
func aligned(plan []string, calls []assay.CallRecord) []int {
	places := make([]int, len(calls))
	executed, at := succeeded(calls), 0
	for i, call := range calls {
		places[i] = -1
		if !call.OK {
			continue
		}
		rest := executed[1:]
		if k := slices.Index(plan[at:], call.Tool); k >= 0 && 1+common(plan[at+k+1:], rest) == common(plan[at:], executed) {
			places[i] = at + k
			at += k + 1
		}
		executed = rest
	}
	return places
}

// measure says what the figures of the outcome are made of. Plan is the task's
// own, and given the one that was shown.
func (e *Explanation) measure(trial *assay.Trial, plan, given []string) {
	o := &e.Outcome
	add := func(name, value, because string) { e.Measures = append(e.Measures, Measure{name, value, because}) }
	add("coverage", decimal(o.Coverage), "required tools that succeeded: "+covered(o))
	add("order", yesNo(o.OrderCorrect), e.order())
	add("adherence", decimal(o.Adherence), adhered(plan, o.ExecutedTools, "the task's plan"))
	if !slices.Equal(plan, o.RequiredTools) {
		last := &e.Measures[len(e.Measures)-1]
		last.Because += ". With what the required tools build on, that plan is " + strings.Join(plan, ", ")
	}
	if o.GivenAdherence != nil {
		add("to the given plan", decimal(*o.GivenAdherence), adhered(given, o.ExecutedTools, "the plan that was shown"))
	}
	add("efficiency", decimal(o.Efficiency), e.spent())
	add("best possible", fmt.Sprintf("%.3f", o.Best), fmt.Sprintf("the best policy fully succeeds so often, with reliability %s and %d turns",
		assay.FormatReliability(trial.Reliability), trial.Turns))
}

// order tells which steps succeeded in their place.
func (e *Explanation) order() string {
	var not []string
	for _, s := range e.Plan {
		if !s.InOrder {
			not = append(not, s.Tool)
		}
	}
	text := fmt.Sprintf("steps that succeeded in their place: %d of %d", len(e.Plan)-len(not), len(e.Plan))
	if len(not) > 0 {
		text += "; not " + strings.Join(not, ", ")
	}
	return text
}

// adhered tells the parts of adherence to a plan.
func adhered(plan, executed []string, name string) string {
	if len(executed) == 0 {
		return "no call succeeded"
	}
	return fmt.Sprintf("%d in common, in order, / the longer of %s (%d) and the successes (%d)", common(plan, executed), name, len(plan), len(executed))
}

// spent tells what calls were wasted on, the most frequent first.
func (e *Explanation) spent() string {
	o := &e.Outcome
	if o.ToolCalls == 0 {
		return "no call was made"
	}
	times := make(map[Mark]int)
	for _, s := range e.Path {
		if s.Wasted {
			times[s.Mark]++
		}
	}
	var marks []string
	for _, m := range slices.SortedFunc(maps.Keys(times), func(a, b Mark) int { return cmp.Or(times[b]-times[a], strings.Compare(string(a), string(b))) }) {
		marks = append(marks, fmt.Sprintf("%s (%d)", m, times[m]))
	}
	text := fmt.Sprintf("%d of %s not wasted", o.ToolCalls-o.Wasted, counted(o.ToolCalls, "call"))
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
