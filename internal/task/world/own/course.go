package own

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// The marks of calls beside those that all worlds share.
const (
	required   spec.Mark = "required"
	inOrder    spec.Mark = "required and in order"
	outOfOrder spec.Mark = "required, out of order"
	planned    spec.Mark = "in the task's plan"
	repeated   spec.Mark = "repeated"
	allowed    spec.Mark = "allowed, but not needed"
	differs    spec.Mark = "with other arguments"
	needless   spec.Mark = "needless"
	unlisted   spec.Mark = "not required" // the task has no plan, so it may have been useful
	unlucky    spec.Mark = "failed by chance"
	mistaken   spec.Mark = "a mistake"
)

// A callCourse follows the calls of an episode.
type callCourse struct {
	catalog *assay.Catalog
	judge   assay.Judge
	planned []assay.Expected // the calls of the reference plan
	named   bool             // there is a reference plan

	steps []planStep
	at    []int // index of the step of each required call
	met   []bool
	next  int // index of the next required call, if the order matters

	late     []bool // required calls that happened before their place
	unwanted []string
	severity []assay.Harm // of the unwanted effects
	judged   []spec.Judged
}

// A planStep is a call of the task's plan. It is optional if no required call stands for it.
type planStep struct {
	want     *assay.Expected
	optional bool
	done     bool
}

func follow(catalog *assay.Catalog, task *assay.Task) *callCourse {
	c := &callCourse{catalog: catalog}
	if task.Judge != nil {
		c.judge = *task.Judge
	}
	if task.Reference != nil {
		c.planned, c.named = task.Reference.Calls, true
	}
	n := len(c.judge.Calls)
	c.met, c.late, c.at = make([]bool, n), make([]bool, n), slices.Repeat([]int{-1}, n)
	c.plan()
	return c
}

// plan lists the steps: the calls of the reference plan, and required calls that it leaves out. A
// repetition of a required call with an effect is not a step, because it is an unwanted effect.
func (c *callCourse) plan() {
	for i := range c.planned {
		call := assay.CallRecord{
			Tool: c.planned[i].Tool, Arguments: string(c.planned[i].Arguments), OK: true,
		}
		switch k := c.required(&call); {
		case k >= 0:
			c.meet(k)
			c.at[k] = len(c.steps)
			c.steps = append(c.steps, planStep{want: &c.judge.Calls[k]})
		case !c.changes(&call) || !c.listed(&call):
			c.steps = append(c.steps, planStep{want: &c.planned[i], optional: true})
		}
	}
	for k := range c.at {
		if c.at[k] < 0 {
			c.at[k] = len(c.steps)
			c.steps = append(c.steps, planStep{want: &c.judge.Calls[k]})
		}
	}
	clear(c.met) // the plan was not carried out
	c.next = 0
}

// take judges the next call.
func (c *callCourse) take(call *assay.CallRecord) {
	j := spec.Judged{Use: spec.Idle, Step: -1}
	k := c.required(call)
	if k >= 0 {
		j.Step = c.at[k]
	} else {
		j.Step = c.optional(call)
	}
	j.Placed = j.Step >= 0
	forbidden := c.forbidden(call)
	switch {
	case call.Happened() && j.Placed:
		j.Use, j.Mark = spec.Useful, c.useful(k)
		c.steps[j.Step].done = true
		c.meet(k)
	case call.Happened():
		j.Mark = c.idle(call)
	case call.Mistake:
		if j.Mark = mistaken; c.wants(call.Tool) {
			j.Use = spec.Mistaken
		}
	default:
		if j.Mark = unlucky; j.Placed {
			j.Use = spec.Unlucky
		}
	}
	if k < 0 && call.Happened() {
		c.missed(call)
	}
	tool, _ := c.catalog.Tool(call.Tool)
	switch {
	case len(forbidden) > 0:
		j.Unwanted, j.Harm = "forbidden", assay.WorstHarm(forbidden)
	case call.Happened() && !j.Placed && c.harms(call):
		j.Unwanted, j.Harm = "an unwanted effect", tool.Severity
	}
	if j.Step < 0 {
		j.Step = c.near(call)
	}
	c.judged = append(c.judged, j)
	if j.Unwanted != "" {
		c.severity = append(c.severity, j.Harm)
		c.unwanted = append(c.unwanted, fmt.Sprintf("call %d, %s", len(c.judged),
			strings.TrimSpace(call.Tool+" "+call.Arguments)))
	}
}

// forbidden returns the harm of a call that happened by each entry that forbids it.
func (c *callCourse) forbidden(call *assay.CallRecord) (harm []assay.Harm) {
	tool, _ := c.catalog.Tool(call.Tool)
	for i := range c.judge.Forbidden {
		if e := &c.judge.Forbidden[i]; call.Happened() && fits(e, call) {
			harm = append(harm, cmp.Or(e.Severity, tool.Severity))
		}
	}
	return harm
}

// useful returns the mark of a call that counts for a step, and for the k-th required call unless k
// is negative.
func (c *callCourse) useful(k int) spec.Mark {
	switch {
	case k < 0:
		return planned
	case c.judge.AnyOrder:
		return required
	}
	return inOrder
}

// idle returns the mark of a call that happened and counts for no step.
func (c *callCourse) idle(call *assay.CallRecord) spec.Mark {
	is := func(e assay.Expected) bool { return fits(&e, call) }
	unmet := func(k int) bool { return !c.met[k] && is(c.judge.Calls[k]) }
	switch {
	case slices.ContainsFunc(c.indexes(), unmet):
		return outOfOrder
	case c.listed(call) || slices.ContainsFunc(c.planned, is):
		return repeated
	case slices.ContainsFunc(c.judge.Allowed, is):
		return allowed
	case c.wants(call.Tool) || slices.ContainsFunc(c.steps, func(s planStep) bool {
		return !s.done && isOf(s.want, call.Tool)
	}):
		return differs
	case !c.named:
		return unlisted
	}
	return needless
}

// indexes returns the indexes of the required calls.
func (c *callCourse) indexes() []int {
	all := make([]int, len(c.met))
	for k := range all {
		all[k] = k
	}
	return all
}

// meet records that the k-th required call happened, unless k is negative.
func (c *callCourse) meet(k int) {
	if k < 0 {
		return
	}
	c.met[k] = true
	for c.next < len(c.met) && c.met[c.next] {
		c.next++
	}
}

// missed records for which required calls a call came too early.
func (c *callCourse) missed(call *assay.CallRecord) {
	for k := range c.judge.Calls {
		c.late[k] = c.late[k] || !c.met[k] && fits(&c.judge.Calls[k], call)
	}
}

// required returns the index of the required call that a call is, or -1. If the order matters, it
// is the next one.
func (c *callCourse) required(call *assay.CallRecord) int {
	for k := range c.judge.Calls {
		if !c.met[k] && fits(&c.judge.Calls[k], call) && (c.judge.AnyOrder || k == c.next) {
			return k
		}
	}
	return -1
}

// optional returns the index of the optional step that a call is, or -1.
func (c *callCourse) optional(call *assay.CallRecord) int {
	if c.changes(call) && c.listed(call) {
		return -1
	}
	return slices.IndexFunc(c.steps, func(s planStep) bool {
		return s.optional && !s.done && fits(s.want, call)
	})
}

// near returns the step that a call belongs to by its tool only: the first one that is not done, or
// else the last one, or -1 if no step has the tool.
func (c *callCourse) near(call *assay.CallRecord) int {
	last := -1
	for i, s := range c.steps {
		if isOf(s.want, call.Tool) {
			if last = i; !s.done {
				break
			}
		}
	}
	return last
}

func (c *callCourse) wants(tool string) bool {
	for k := range c.judge.Calls {
		if !c.met[k] && isOf(&c.judge.Calls[k], tool) {
			return true
		}
	}
	return false
}

// listed reports whether a call fits a required one, whether or not that has succeeded.
func (c *callCourse) listed(call *assay.CallRecord) bool {
	return slices.ContainsFunc(c.judge.Calls, func(e assay.Expected) bool { return fits(&e, call) })
}

func (c *callCourse) changes(call *assay.CallRecord) bool {
	tool, _ := c.catalog.Tool(call.Tool)
	return tool.Effect != ""
}

// harms reports whether a call changes something that neither the judge allows nor the plan has. A
// required call harms if it happens again. If the plan's state decides, it shows the harm.
func (c *callCourse) harms(call *assay.CallRecord) bool {
	is := func(e assay.Expected) bool { return fits(&e, call) }
	return c.changes(call) && !c.judge.ByPlan() && !slices.ContainsFunc(c.judge.Allowed, is) &&
		(c.listed(call) || !slices.ContainsFunc(c.planned, is))
}

// trace implements [spec.Definition].
func trace(catalog *assay.Catalog, task *assay.Task, tr *assay.Transcript) spec.Trace {
	c := follow(catalog, task)
	for i := range tr.Calls {
		c.take(&tr.Calls[i])
	}
	values, _ := wanted(catalog, task, &c.judge, tr.State) // none, if the state is broken
	t := spec.Trace{
		Calls: c.judged, Plan: plannedTools(task), PlanName: "the required tools",
		Covered: c.missing(), Wanted: values,
	}
	if c.named {
		t.PlanName = "the tools of the task's plan"
	}
	t.Changes = changed(catalog, task.State, tr.State)
	for _, s := range c.steps {
		t.Steps = append(t.Steps, spec.Step{
			Tool: strings.Join(toolsOf(s.want), " or "), Optional: s.optional,
		})
	}
	return t
}
