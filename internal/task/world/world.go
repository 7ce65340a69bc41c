// Package world lists the worlds and looks them up by name. It also implements tool
// search, which is the same in every world.
//
// A world is a versioned set of rules: how its tools behave, how a best policy plans, and how
// episodes are judged. Each has its own folder, such as assay1, which ends in a [Definition]. To
// add a world, add a folder and a row of [All].
package world

import (
	"context"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/assay1"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/pilot"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A Definition is everything that sets one world apart, and a World is one during an episode.
type (
	Definition = spec.Definition
	World      = spec.World
)

// The names of the worlds.
const (
	Assay1Name = assay1.Name
	PilotName  = pilot.Name
	OwnName    = own.Name
	OpenEnv    = own.EnvironmentName
)

// All lists the worlds, the default first.
var All = []*Definition{&assay1.Definition, &pilot.Definition, &own.Definition, &own.Environments}

// Names lists the names of the worlds, the default first.
var Names = names()

func names() []string { return having(func(*Definition) bool { return true }) }

// Simulated lists the names of the worlds that make up the results of tools, the default first.
// They can play any library except one whose tools users wrote.
var Simulated = having(func(d *Definition) bool { return !d.OwnTools })

func having(keep func(*Definition) bool) (names []string) {
	for _, d := range All {
		if keep(d) {
			names = append(names, d.Name)
		}
	}
	return names
}

// For returns the name of the world that carries out tools that users wrote, or "" for other tools.
func For(catalog *assay.Catalog) string {
	switch server := catalog.Server(); {
	case !catalog.Own():
		return ""
	case server != nil && server.OpenEnv:
		return OpenEnv
	}
	return OwnName
}

// Find returns the definition of a world. It returns nil if there is no world of that name.
func Find(name string) *Definition {
	for _, d := range All {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Of returns the definition of a world that exists. An unknown name is a bug of the caller, so
// Of panics.
func Of(name string) *Definition {
	if d := Find(name); d != nil {
		return d
	}
	panic("world: there is no world named " + name)
}

// Begin returns a trial's world at its start; see [Definition].
func Begin(
	ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) World {
	return Of(trial.World).Begin(ctx, catalog, trial, task)
}
