// Package pilot is the world with the rules of the 2025 original's simulator: its rules, the
// chances that its planner uses, and its verdicts.
//
// docs/worlds.md states the same rules in words.
package pilot

import (
	"context"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Name is the world's name.
const Name = "pilot"

// Definition registers the world.
var Definition = spec.Definition{
	Name:         Name,
	ScoreVersion: "pilot-6",

	Begin: func(
		_ context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
	) spec.World {
		return New(catalog, *trial, task.Required)
	},
	Planner: planner,
	Verdict: Verdict,

	Chance: func(reliability float64) float64 { return Chance(reliability, nil, nil) },
	// The original never inserted a dependency.
	Steps: func(_ *assay.Catalog, required []string) []string { return required },
	Course: func(catalog *assay.Catalog, task *assay.Task) *spec.Course {
		return newCourse(catalog, task.Required)
	},
	Facts: facts,
}
