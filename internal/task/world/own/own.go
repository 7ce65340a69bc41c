// Package own is the world own-1, for tools and tasks that users wrote: its rules, the chances that
// its planner uses, and its verdict. It is also the world openenv, for environments.
//
// docs/worlds.md states the same rules in words.
package own

import (
	"context"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Name is the world's name.
const Name = "own-1"

// Definition registers the world.
var Definition = spec.Definition{
	Name:         Name,
	ScoreVersion: "own-1.7",

	Begin: func(
		ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
	) spec.World {
		return begin(ctx, catalog, trial, task)
	},
	Planner: planner,
	Verdict: Verdict,
	Trace:   trace,
	Facts:   facts,

	Chance: func(reliability float64) float64 { return reliability },
	Steps:  func(_ *assay.Catalog, required []string) []string { return required },

	Throws: throws,
	Hidden: hidden,

	OwnTools:        true,
	FaultKinds:      true,
	ClaimTakesReply: true,
	StopsSearches:   true,
}

// EndWord is the word with which a model claims to be done unless the task has another one.
const EndWord = "TASK_COMPLETED"

// EndWordOf returns the word with which a model claims to be done.
func EndWordOf(task *assay.Task) string {
	if task.EndWord != "" {
		return task.EndWord
	}
	return EndWord
}

// reliabilityOf returns the chance of a call of a tool.
func reliabilityOf(tool assay.Tool, reliability float64) float64 {
	if tool.Reliability > 0 {
		return reliability * tool.Reliability
	}
	return reliability
}
