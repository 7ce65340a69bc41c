package workflow

import (
	"encoding/json"
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// Version names how plans are made, flawed ones too. It goes into the hash of
// what models are told, for a plan is most of that.
const Version = "1"

// A Plan is what a model is shown: steps in order and what the planner knows
// of the environment.
type Plan struct {
	Steps []Step
	// Reliability is the chance that the world gives a call when all that it
	// needs is there and nothing failed lately.
	Reliability float64
}

// A Step is one call of a plan. All but the arguments is what the catalog says
// of the tool, so that no step tells how it came into the plan.
type Step struct {
	Tool string
	// Purpose is the tool's description.
	Purpose string
	// Arguments are what the tool is called with, as compact JSON.
	Arguments json.RawMessage
	// Needs are the tool's dependencies, in the plan or not.
	Needs []string
	// Gives are the fields of the tool's result as "name (type)".
	Gives []string
}

// For returns the plan for a task in the world of that name. In assay-1 it is
// the [Sequence] of the required tools; in the pilot world the required tools
// as listed, for the original never inserted a dependency.
func For(catalog *assay.Catalog, worldName string, task *assay.Task, reliability float64) Plan {
	tools := task.Required
	plan := Plan{Reliability: world.PilotChance(reliability, nil, nil)}
	if worldName == world.Assay1Name {
		tools = Sequence(catalog, task.Required)
		plan.Reliability = world.Assay1Chance(assay.Setting{}, reliability, false, false)
	}
	in := readInputs(task.Inputs)
	for i, name := range tools {
		tool, _ := catalog.Tool(name)
		plan.Steps = append(plan.Steps, stepOf(tool, in.arguments(tool, tools[:i])))
	}
	return plan
}

func stepOf(tool assay.Tool, args json.RawMessage) Step {
	return Step{Tool: tool.Name, Purpose: tool.Description, Arguments: args, Needs: tool.Dependencies, Gives: gives(tool)}
}

// gives leaves out the fields that nearly every tool has, unless there is
// nothing else than metadata.
func gives(tool assay.Tool) []string {
	var fields, metadata []string
	for _, r := range tool.Returns {
		field := fmt.Sprintf("%s (%s)", r.Name, r.Type)
		switch r.Name {
		case "success":
		case "metadata":
			metadata = append(metadata, field)
		default:
			fields = append(fields, field)
		}
	}
	if len(fields) == 0 {
		return metadata
	}
	return fields
}
