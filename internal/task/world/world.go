package world

import (
	"fmt"

	"github.com/assay-eval/assay"
)

// A World is the rules of the tools during one episode. It belongs to one
// goroutine.
type World interface {
	// Call executes a tool and records it. A tool that the library does not
	// have is an error, which spends no luck and leaves no record.
	Call(turn int, name, arguments string) (assay.CallRecord, error)
	// Calls returns what was executed so far. The caller must not change it.
	Calls() []assay.CallRecord
	// Succeeded returns the tools that have succeeded, in the order of their
	// first success. The caller must not change it.
	Succeeded() []string
	// Claims reports whether a reply says that the work is done, and Ends
	// whether that ends the episode. Acts says that the reply holds actions.
	Claims(reply string, acts bool) bool
	Ends(reply string, acts bool) bool
	// Stop reports whether the calls so far end the episode, and how.
	Stop() (assay.Ended, bool)
}

// Names lists the worlds, the default first.
var Names = []string{Assay1Name, PilotName}

// Begin returns a trial's world at its start.
func Begin(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) World {
	switch trial.World {
	case Assay1Name:
		return NewAssay1(catalog, trial, task)
	case PilotName:
		return NewPilot(catalog, *trial, task.Required)
	}
	panic(fmt.Sprintf("world: no world is named %q", trial.World))
}
