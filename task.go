package assay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// TaskID names a task inside its library.
type TaskID string

// TaskTypes are the five kinds of task, in the order of every table.
var TaskTypes = []string{"simple_task", "basic_task", "data_pipeline", "api_integration", "multi_stage_pipeline"}

// Difficulties are the five wordings of a description, easiest first. They
// change what a description says, never the task.
var Difficulties = []string{"very_easy", "easy", "medium", "hard", "very_hard"}

// Mixtures are named blends of the five difficulties. Where a library has one,
// each of its tasks stands in it at one of the five.
var Mixtures = []string{"easy_biased", "medium_biased", "hard_biased"}

// A Task is one problem: what the agent is told, what it gets, and the tools
// that have to succeed, in order.
type Task struct {
	ID         TaskID `json:"id"`
	Type       string `json:"type"`
	Difficulty string `json:"difficulty"`
	// Wording is, in a mixture, which of the five difficulties the description
	// has; empty elsewhere.
	Wording     string          `json:"wording,omitempty"`
	Description string          `json:"description"`
	Inputs      json.RawMessage `json:"inputs,omitempty"`
	Expected    json.RawMessage `json:"expected_outputs,omitempty"`
	Required    []string        `json:"required_tools"`
}

// A TaskRef names a task together with a digest of its content; planning needs
// no more of it.
type TaskRef struct {
	ID     TaskID
	Digest string
}

// Digest identifies the task's content: 128 bits of SHA-256 over its JSON, in
// hex. A trial carries a digest, so a task that changes becomes another trial.
func (t Task) Digest() string {
	b, err := json.Marshal(t)
	if err != nil { // only invalid RawMessage can fail, and libraries refuse it
		panic("assay: task " + string(t.ID) + ": " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
