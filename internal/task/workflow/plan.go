// Package workflow makes plans: the linear plan that a model is shown, and plans with a known
// flaw. It also finds the best policy for a task in its world.
//
// It does not execute anything and does not write prompts.
package workflow

import (
	"encoding/json"
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// Version names the rules by which plans, including flawed ones, are made. It goes into the hash
// of the prompts, because a plan is the largest part of a prompt.
const Version = "2"

// A Plan is shown to a model: steps in order, and the planner's knowledge about the environment.
type Plan struct {
	Steps []Step
	// Text comes before the steps, and Answer is the answer to give after them. Only plans that
	// users wrote have them.
	Text, Answer string
}

// A Step is one call of a plan. Everything but the arguments comes from the catalog, so a step does
// not give away how it came into the plan.
type Step struct {
	Tool string
	// Purpose is the tool's description.
	Purpose string
	// Arguments are the tool's arguments as compact JSON.
	Arguments json.RawMessage
	// Needs are the tool's dependencies, whether or not the plan has them.
	Needs []string
	// Turn is the number of earlier messages of the user after which the step is due.
	Turn int
	// Gives are the fields of the tool's result as "name (type)".
	Gives []string
}

// Split returns the part of the plan for the first message of the user, and the parts for the later
// ones. A step that a flaw has moved before a step of an earlier message stays before it.
func (p *Plan) Split() (first *Plan, later []*Plan) {
	parts := []*Plan{{Text: p.Text}}
	for _, s := range p.Steps {
		for len(parts) <= s.Turn {
			parts = append(parts, new(Plan))
		}
		last := parts[len(parts)-1]
		last.Steps = append(last.Steps, s)
	}
	parts[len(parts)-1].Answer = p.Answer
	return parts[0], parts[1:]
}

// For returns the plan for a task in a world.
func For(catalog *assay.Catalog, worldName string, task *assay.Task) Plan {
	d := world.Of(worldName)
	if d.OwnTools {
		return written(catalog, task.Reference)
	}
	var plan Plan
	tools := d.Steps(catalog, task.Required)
	in := readInputs(task.Inputs)
	for i, name := range tools {
		plan.Steps = append(plan.Steps, stepOf(catalog, name, in, tools[:i]))
	}
	return plan
}

// stepOf returns the call of a tool after the tools of the earlier steps. A tool that the catalog
// does not have, but another tool depends on, is a step without a purpose.
func stepOf(catalog *assay.Catalog, name string, in taskInputs, earlier []string) Step {
	tool, _ := catalog.Tool(name)
	return Step{
		Tool: name, Purpose: tool.Description, Arguments: in.arguments(catalog, name, earlier),
		Needs: tool.Dependencies, Gives: gives(tool),
	}
}

// gives returns the fields of a tool's result without those that nearly every tool has. It keeps
// metadata if there are no other fields.
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
