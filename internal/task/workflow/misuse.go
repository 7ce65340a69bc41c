package workflow

import (
	"bytes"
	"slices"

	"github.com/assay-eval/assay/internal/task/policy"
)

// choices is the number of most similar tools among which a wrong one is chosen.
const choices = 3

// misuse makes steps call a similar tool that is not in the plan. References to the right tool's
// result then refer to the wrong tool's result.
func (f *flawed) misuse() []Step {
	kin := newKinship(f.catalog)
	taken := f.right()
	steps := slices.Clone(f.steps)
	for _, i := range f.victims()[:f.dose] {
		similar := kin.nearest(f.steps[i].Tool, taken)
		tool := similar[f.dice.pick("tool", i, min(choices, len(similar)))]
		taken = append(taken, tool)
		f.replace(steps, i, tool)
		f.relink(steps, i)
	}
	return steps
}

// replace puts another tool in the place of step i, with its own arguments.
func (f *flawed) replace(steps []Step, i int, name string) {
	steps[i] = stepOf(f.catalog, name, f.inputs(), toolNames(steps[:i]))
}

// relink redirects references to the original tool of step i to the tool that is there now.
func (f *flawed) relink(steps []Step, i int) {
	before := f.steps[i].Tool
	from, to := reference(before), reference(steps[i].Tool)
	for j := i + 1; j < len(steps); j++ {
		steps[j].Arguments = bytes.ReplaceAll(steps[j].Arguments, from, to)
		if f.steps[j].Tool == before { // later references mean this step
			return
		}
	}
}

// driftable returns the number of steps that drift can replace: all but the first if the last step
// is the only call of its tool and there are enough other tools.
func (f *flawed) driftable() int {
	n := len(f.steps)
	if n < 2 || !f.isOnly(n-1) || f.others() < n-1 {
		return 0
	}
	return n - 1
}

// drift leads away from the plan: from some step on, each step is the tool most similar to the step
// before it.
func (f *flawed) drift() []Step {
	n := len(f.steps)
	kin := newKinship(f.catalog)
	taken := f.right()
	steps := slices.Clone(f.steps)
	for i := n - f.dose; i < n; i++ {
		tool := kin.nearest(steps[i-1].Tool, taken)[0]
		taken = append(taken, tool)
		f.replace(steps, i, tool)
	}
	return steps
}

// others counts the tools that do the work of no step.
func (f *flawed) others() int { return len(f.catalog.All()) - len(f.right()) }

// right returns the tools that do the work of some step.
func (f *flawed) right() []string {
	names := policy.Distinct(toolNames(f.steps))
	for _, name := range slices.Clone(names) {
		names = append(names, f.catalog.Substitutes(name)...)
	}
	return names
}
