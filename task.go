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
	b, err := json.Marshal(t)
	if err != nil { // only an invalid RawMessage can fail, and libraries reject those
		panic("assay: task " + string(t.ID) + ": " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}
