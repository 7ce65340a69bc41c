package workflow

import (
	"context"
	"encoding/json"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

func ownTools(worldName string) bool { return world.Of(worldName).OwnTools }

// written returns a plan that a user wrote, without the answer. Without a plan it has no steps.
func written(catalog *assay.Catalog, ref *assay.Reference) (plan Plan) {
	if ref == nil {
		return plan
	}
	plan.Text = ref.Text
	for _, call := range ref.Calls {
		tool, _ := catalog.Tool(call.Tool)
		step := Step{
			Tool: call.Tool, Purpose: tool.Description, Arguments: call.Arguments, Turn: call.Turn,
		}
		if len(step.Arguments) == 0 {
			step.Arguments = json.RawMessage("{}")
		}
		plan.Steps = append(plan.Steps, step)
	}
	return plan
}

// Own returns the plan that a variant shows for a task with tools that users wrote. It returns
// false if the variant does not apply to the task.
func Own(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) (*Plan, bool) {
	variant, _ := assay.PlainOf(trial.Variant)
	if v, ok := task.Variants[variant]; ok {
		plan := written(catalog, &v)
		plan.Answer = v.Answer
		return &plan, true
	}
	if task.Reference == nil {
		return nil, false
	}
	plan := For(catalog, trial.World, task)
	flaw, flawed := assay.FlawOf(trial.Variant)
	switch {
	case variant == assay.Optimal:
		return &plan, true
	case !flawed || !Applies(catalog, trial.World, task, flaw, trial.Severity):
		return nil, false
	}
	plan, ok := Flawed(catalog, plan, task, flaw, trial.Severity, trial.Seed)
	return &plan, ok
}

// OwnApplies reports whether a variant applies to a task with tools that users wrote. Flaws need a
// reference plan, and only those that leave out or repeat steps apply: the others change arguments
// by rules that such tools need not follow.
func OwnApplies(
	catalog *assay.Catalog, worldName string, task *assay.Task, variant, severity string,
) bool {
	trial := assay.Trial{Cell: assay.Cell{Variant: variant, Severity: severity, Reliability: 1}}
	trial.World = worldName
	_, ok := Own(catalog, &trial, task)
	return ok
}

// Survivable reports whether an agent that follows the task's plan, and repeats each call until it
// has happened, completes it in spite of the faults that are scheduled for the trial. It is false
// if no plan is known.
func Survivable(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) bool {
	planned, known := Planned(trial.World, task)
	if !known {
		return false
	}
	d := world.Of(trial.World)
	_, survivable := spec.Scheduled(
		catalog, ProblemOf(trial, planned).Calls, d.Steps(catalog, planned), d.Throws(catalog, trial),
	)
	return survivable
}

// Winnable reports whether the best policy succeeds with the luck of a trial. It is
// true if no plan is known.
func Winnable(
	ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) bool {
	planned, known := Planned(trial.World, task)
	d := world.Of(trial.World)
	switch {
	case !known:
		return true
	case d.Throws != nil:
		return Survivable(catalog, trial, task)
	}
	w, best := d.Begin(ctx, catalog, trial, task), Solve(catalog, ProblemOf(trial, planned))
	for {
		tool := best.Next(callsOf(w.Calls()))
		_, stopped := w.Stop()
		if tool == "" || stopped {
			tr := assay.Transcript{Calls: w.Calls(), Ended: assay.Finished}
			return d.Verdict(catalog, *task, &tr, nil).Level == assay.FullSuccess
		}
		if _, err := w.Call(1, tool, "{}"); err != nil {
			return false // the library does not have the tool
		}
	}
}

// Planned returns the tools whose calls solve a task: the tools of its reference plan, or its
// required tools. It returns false if no plan is known.
func Planned(worldName string, task *assay.Task) ([]string, bool) {
	if !ownTools(worldName) {
		return task.Required, true
	}
	if task.Reference == nil {
		return nil, false
	}
	return assay.Called(task.Reference.Calls), true
}
