package workflow

import (
	"bytes"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// An Obeyed is the exact probability of full success of agents that follow a plan to the letter.
type Obeyed struct {
	// Once is for an agent that never retries, and Retrying for an agent that retries a step until
	// it succeeds.
	Once, Retrying float64
}

// Obey returns the chances of agents that follow the plan of a trial, and those that they would
// have with the task's own plan.
func Obey(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) (shown, right Obeyed) {
	plan := For(catalog, trial.World, task)
	p := Solve(catalog, ProblemOf(trial, task.Required))
	d := world.Of(trial.World)
	fragile := func(name string) bool {
		tool, _ := catalog.Tool(name)
		return d.References && tool.Effect != ""
	}
	obey := func(steps []Step) Obeyed {
		names := toolNames(steps)
		return Obeyed{p.Obey(names, fragile, false), p.Obey(names, fragile, true)}
	}

	right = obey(plan.Steps)
	shown = right
	flaw, ok := assay.FlawOf(trial.Variant)
	switch {
	case ok && d.References && flaw != assay.RedundantOperations: // hopeless: see Flawed
		shown = Obeyed{}
	case ok:
		flawed, _ := Flawed(catalog, plan, task, flaw, trial.Severity, trial.Seed)
		shown = Obeyed{}
		if !d.References && completes(task.Required, flawed.Steps) || repeats(plan.Steps, flawed.Steps) {
			shown = obey(flawed.Steps)
		}
	}
	return shown, right
}

// completes reports whether steps run the required tools in order.
func completes(required []string, steps []Step) bool {
	for _, s := range steps {
		if len(required) > 0 && required[0] == s.Tool {
			required = required[1:]
		}
	}
	return len(required) == 0
}

// repeats reports whether steps are the plan's steps, some of them several times in a row. No other
// edit of a plan can succeed where arguments matter; see [Flawed].
func repeats(plan, steps []Step) bool {
	equal := func(a, b Step) bool {
		return a.Tool == b.Tool && bytes.Equal(a.Arguments, b.Arguments)
	}
	return slices.EqualFunc(plan, slices.CompactFunc(slices.Clone(steps), equal), equal)
}

// point is the smallest difference of chances that counts as one.
const point = 0.01

// Hurts reports whether the plan of a trial makes full success less likely for agents that follow
// it to the letter: for one of those in [Obeyed] by a point or more, and not more likely for the
// other one.
func Hurts(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) bool {
	if ownTools(trial.World) { // only the flaw's author knows the effects of its calls
		return true
	}
	shown, right := Obey(catalog, trial, task)
	once, retrying := shown.Once-right.Once, shown.Retrying-right.Retrying
	return min(once, retrying) <= -point && max(once, retrying) < point
}
