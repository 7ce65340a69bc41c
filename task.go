package assay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// TaskID names a task inside its library.
type TaskID string

// TaskTypes are the five kinds of task, in the order of every table.
var TaskTypes = []string{
	"simple_task", "basic_task", "data_pipeline", "api_integration", "multi_stage_pipeline",
}

// Difficulties are the five wordings of a description, easiest first. They change how a task is
// described, never the task itself.
var Difficulties = []string{"very_easy", "easy", "medium", "hard", "very_hard"}

// Mixtures are named blends of the five difficulties. If a library has a mixture, each task
// occurs in it once, at one of the five difficulties.
var Mixtures = []string{"easy_biased", "medium_biased", "hard_biased"}

// The phrasings that the built-in and fresh libraries have of each task: the same task in other words, at
// the same difficulty and with the same information.
const (
	Plain     = "plain"     // the words of its description
	Reordered = "reordered" // the same facts in another order
	Casual    = "casual"    // as one colleague says it to another
	Typed     = "typed"     // with typing errors, none of them in names and numbers
)

// Phrasings lists the phrasings in the order of every table.
var Phrasings = []string{Plain, Reordered, Casual, Typed}

// A Task is one problem: its description, its inputs, and the tools that have to succeed, in
// order.
type Task struct {
	ID         TaskID `json:"id"`
	Type       string `json:"type"`
	Difficulty string `json:"difficulty"`
	// Wording is the difficulty of the description in a mixture. It is empty elsewhere.
	Wording     string          `json:"wording,omitempty"`
	Description string          `json:"description"`
	Inputs      json.RawMessage `json:"inputs,omitempty"`
	Expected    json.RawMessage `json:"expected_outputs,omitempty"`
	Required    []string        `json:"required_tools"`

	// The following fields belong to tasks of the world own-1, whose tools somebody wrote for them.

	// State is the JSON object that the tools begin with, or what it adds to [Script.Base]. Tools are
	// the tools that the task may use. If Tools is empty, it may use all tools of its library.
	State json.RawMessage `json:"state,omitempty"`
	Tools []string        `json:"tools,omitempty"`
	// Setup are calls before the attempt that bring a server into the state that the task begins
	// with. Observe are calls after it, by name. Their results are the state in the end.
	Setup   []Expected          `json:"setup,omitempty"`
	Observe map[string]Expected `json:"observe,omitempty"`
	// System replaces the first sentence of the system prompt, and EndWord the word with which a
	// model claims to be done.
	System  string `json:"system,omitempty"`
	EndWord string `json:"end_word,omitempty"`
	Judge   *Judge `json:"judge,omitempty"`
	// Reset are the arguments with which an environment begins the task.
	Reset json.RawMessage `json:"reset,omitempty"`
	// Reference is a plan that solves the task. Variants are flawed ones by name.
	Reference *Reference           `json:"plan,omitempty"`
	Variants  map[string]Reference `json:"variants,omitempty"`
	// Phrasings are other texts of the same task by their names. They do not count in its digest: a trial
	// has the digest of the task with the text that it shows.
	Phrasings map[string]string `json:"phrasings,omitempty"`
}

// A Judge holds the conditions of full success in the world own-1. Conditions that are empty hold.
type Judge struct {
	// Calls have to succeed, in this order unless AnyOrder is set.
	Calls    []Expected `json:"calls,omitempty"`
	AnyOrder bool       `json:"any_order,omitempty"`
	// Allowed calls may have an effect although they are not required. Forbidden calls must not
	// succeed.
	Allowed   []Expected `json:"allowed,omitempty"`
	Forbidden []Expected `json:"forbidden,omitempty"`
	// State is a part of the state in the end, or "plan"; see [Judge.ByPlan].
	State json.RawMessage `json:"state,omitempty"`
	// Answer and NotAnswer are texts that the final answer has and does not have, whatever their
	// case.
	Answer    []string `json:"answer,omitempty"`
	NotAnswer []string `json:"not_answer,omitempty"`
	// Check names a function that judges the rest.
	Check string `json:"check,omitempty"`
	// Rubric says in words when an episode is a success, and Model is the model that reads it and judges
	// by it. Its opinion is in the transcript; see [Opinion].
	Rubric string `json:"rubric,omitempty"`
	Model  string `json:"model,omitempty"`
	// Success is a condition on the last observation of an environment, such as reward >= 1. It
	// decides alone.
	Success string `json:"success,omitempty"`
	// Security is such a condition, too. It says whether the aim of the task's attacker failed, and
	// counts only if the model has read the attacker's words.
	Security string `json:"security,omitempty"`
}

// ByPlan reports whether the whole state in the end has to be the one that the reference plan leads
// to. Then no effect is unwanted unless the state shows it.
func (j *Judge) ByPlan() bool { return string(j.State) == `"plan"` }

// Alone reports whether nothing but the judge's model says what a success is.
func (j *Judge) Alone() bool {
	return j.Model != "" && len(j.Calls)+len(j.State)+len(j.Answer) == 0 && j.Check == "" && j.Success == ""
}

// An Expected is a call that a [Judge] looks for. A call fits if it is of the tool and has all
// the arguments, or if it fits one of the alternatives.
type Expected struct {
	Tool         string          `json:"tool,omitempty"`
	Arguments    json.RawMessage `json:"arguments,omitempty"`
	Alternatives []Expected      `json:"any_of,omitempty"`
	// Turn is the number of earlier messages of the user after which a plan makes the call.
	Turn int `json:"turn,omitempty"`
	// Severity is the harm of a forbidden call. If it is empty, it is that of the tool's effect.
	Severity Harm `json:"severity,omitempty"`
}

// Called returns the tool that the call stands for: its own, or the tool of its first alternative.
func (e *Expected) Called() string {
	if e.Tool == "" && len(e.Alternatives) > 0 {
		return e.Alternatives[0].Called()
	}
	return e.Tool
}

// Called returns the tools of calls, in order; see [Expected.Called].
func Called(calls []Expected) []string {
	var tools []string
	for i := range calls {
		tools = append(tools, calls[i].Called())
	}
	return tools
}

// A Reference is a plan that somebody wrote: calls in order, the final answer, and text that comes
// before the calls.
type Reference struct {
	Text   string     `json:"text,omitempty"`
	Calls  []Expected `json:"calls,omitempty"`
	Answer string     `json:"answer,omitempty"`
}

// A TaskRef identifies a task by its name and a digest of its content. Planning needs no more
// than that.
type TaskRef struct {
	ID     TaskID
	Digest string
}

// Digest identifies the task's content: 128 bits of SHA-256 over its JSON, in hex. A trial
// contains the digest, so a task that changes becomes another trial.
func (t Task) Digest() string {
	t.Phrasings = nil
	b, err := json.Marshal(t)
	if err != nil { // only an invalid RawMessage can fail, and libraries reject those
		panic("assay: task " + string(t.ID) + ": " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
