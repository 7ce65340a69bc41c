package spec

import "encoding/json"

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
