package workflow

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/world"
)

// A Plan is what a model is shown: steps in order and what the planner knows
// of the environment.
type Plan struct {
	Steps []Step
	// Reliability is the chance that the world gives a call when all that it
	// needs is there and nothing failed lately.
	Reliability float64
}

// A Step is one call of a plan.
type Step struct {
	Tool string
	// Purpose is the tool's description.
	Purpose string
	// Needs are the tool's dependencies, in the plan or not.
	Needs []string
}

// Reference returns the plan of the pilot world: the required tools in their
// listed order, as in the original, which never inserted a dependency.
func Reference(catalog *assay.Catalog, task assay.Task, reliability float64) Plan {
	plan := Plan{Reliability: world.PilotChance(reliability, nil, nil)}
	for _, name := range task.Required {
		tool, _ := catalog.Tool(name)
		plan.Steps = append(plan.Steps, Step{Tool: name, Purpose: tool.Description, Needs: tool.Dependencies})
	}
	return plan
}
