package spec

import (
	"encoding/json"

	"github.com/assay-eval/assay"
)

// A Mark describes the role of a call in words.
type Mark string

// A Trace shows how a world judged the calls of an episode. A world returns it from the code that
// decides its verdict, so an explanation cannot differ from the verdict.
type Trace struct {
	Steps []Step
	Calls []Judged
	// Plan holds the tools with which adherence compares the calls, and PlanName names this plan.
	Plan     []string
	PlanName string
	// Covered words how many of the required calls happened.
	Covered string
	// Changes are the differences between the state of the tools before and after the episode, and
	// Wanted compares the values that the judge asks for with the state after it.
	Changes []Change
	Wanted  []Wanted
}

// A Step is a step of a task's plan. An optional one is in the plan, but not required.
type Step struct {
	Tool     string
	Optional bool
}

// A Judged is a world's judgment of a call.
type Judged struct {
	Use  Use
	Mark Mark
	Step int // index of the step that the call belongs to, or -1
	// Placed means that the call counts for its step if it happened.
	Placed bool
	// Unwanted is the reason why the call is an unwanted effect, or "".
	Unwanted string
	// Harm is that of an unwanted effect. It is empty if it is unknown.
	Harm assay.Harm
}

// A Change is a value of the state that the calls changed. Before is nil if the value is new, and
// After is nil if it was removed.
type Change struct {
	Path   string          `json:"path"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Wanted is a value of the state that the judge asks for. Got is nil if there is no value.
type Wanted struct {
	Path   string          `json:"path"`
	Wanted json.RawMessage `json:"wanted"`
	Got    json.RawMessage `json:"got,omitempty"`
	Right  bool            `json:"right"`
}

// Facts are what decides the cause of an outcome. They say for which steps of a task's plan the calls
// are right, whatever the order and whatever the judge looks at, so the same calls have the same cause
// under every judge.
type Facts struct {
	// Steps are the steps of the task's plan. There are none if no plan is known. Planned means that
	// somebody wrote the plan, so that no other calls are needed.
	Steps   []Needed
	Planned bool
	// Calls has a fit for each call.
	Calls []Fit
	// Ordered means that the judge asks for the order of all steps, not only of their effects.
	Ordered bool
	// Done means that the judge looks at calls or state, and is content with them. It may still miss
	// the end, or another answer.
	Done bool
	// Answered means that the judge does not miss another answer, as far as it looks at answers.
	Answered bool
	// AnyOrder means that the task leaves the order of the steps to the model, even that of changes.
	AnyOrder bool
	// Opaque means that the judge does not say what it misses.
	Opaque bool
}

// A Needed is a step of a task's plan.
type Needed struct {
	Tools  []string // it is a call of one of them
	Effect bool     // one of them changes something
	// Optional means that the judge does not ask for the call itself.
	Optional bool
	// Anywhere means that it may come long before the next step, which builds on it.
	Anywhere bool
	// Arguments are those of the step, in worlds whose plans state them.
	Arguments json.RawMessage
}

// A Fit says how well a call fits the steps, whether or not it succeeded.
type Fit struct {
	Steps []int // for which it is right
	// Values means that it has the values that the task determines, although its data may be wrong.
	Values bool
	// Waits are the tools of the plan without which the world refuses the call, because they had not
	// succeeded.
	Waits []string
	// Unwanted means that the judge minds its effect.
	Unwanted bool
	// Forbidden means that the judge forbids the call, and Allowed that its effect does not matter.
	Forbidden, Allowed bool
}
