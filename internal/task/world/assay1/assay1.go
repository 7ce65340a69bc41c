// Package assay1 is the default world, assay-1: its rules, the chances that its planner uses,
// and its verdict.
//
// docs/worlds.md states the same rules in words.
package assay1

import (
	"context"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// Name is the world's name.
const Name = "assay-1"

// Definition registers the world.
var Definition = spec.Definition{
	Name:         Name,
	ScoreVersion: "assay-1.7",

	Begin: func(
		_ context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
	) spec.World {
		return New(catalog, trial, task)
	},
	Planner: planner,
	Verdict: Verdict,
	Course:  newCourse,
	Facts:   facts,

	Throws: throws,

	Chance: func(reliability float64) float64 {
		return Chance(assay.Setting{}, reliability, false, false)
	},
	Steps: func(catalog *assay.Catalog, required []string) []string {
		return planOf(catalog, required).steps
	},

	References:      true,
	FailuresLast:    true,
	FaultKinds:      true,
	ClaimTakesReply: true,
	StopsSearches:   true,
}
