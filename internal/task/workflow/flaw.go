package workflow

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
)

// The severities as indexes into [assay.Severities].
const (
	light = iota
	medium
	severe
)

// Flawed returns a plan from [For] with a flaw of a given severity. It returns false if the flaw
// does not apply; see [Applies]. It does not change the given plan. Random choices depend only on
// the task's ID, the flaw and the seed.
//
// The number of steps to add, remove or change to get from one plan to the other never falls from
// one severity to the next. In assay-1, following the flawed plan to the letter never leads to full
// success. The exception is [assay.RedundantOperations], which only takes more calls.
func Flawed(
	catalog *assay.Catalog, plan Plan, task *assay.Task,
	flaw assay.Flaw, severity string, seed uint64,
) (Plan, bool) {
	f := flawed{
		catalog: catalog, task: task, steps: plan.Steps,
		severity: slices.Index(assay.Severities, severity),
		dice:     dice(fmt.Sprintf("assay flaw 1\x00%d\x00%s\x00%s", seed, task.ID, flaw)),
	}
	if f.severity < 0 {
		panic(fmt.Sprintf("workflow: there is no severity named %q", severity))
	}
	if !f.can(flaw) {
		return Plan{}, false
	}
	plan.Steps = f.apply(flaw)
	return plan, true
}

// Applies reports whether the plan for a task in a world can have a flaw. The answer does not
// depend on severity or seed.
func Applies(catalog *assay.Catalog, worldName string, task *assay.Task, flaw assay.Flaw) bool {
	f := flawed{catalog: catalog, task: task, steps: For(catalog, worldName, task, 1).Steps}
	return f.can(flaw)
}

// flawed is a plan that is about to get a flaw.
type flawed struct {
	catalog  *assay.Catalog
	task     *assay.Task
	steps    []Step // belong to the plan and must not be changed
	severity int
	dice     dice
}

// can reports whether the plan has enough steps for a flaw of any severity, and the catalog enough
// tools to replace them.
func (f *flawed) can(flaw assay.Flaw) bool {
	n := len(f.steps)
	switch flaw {
	case assay.SequenceDisorder:
		return f.swap(f.steps, "") != nil
	case assay.ToolMisuse:
		return n > 0 && f.others() >= n/2+1
	case assay.ParameterError, assay.RedundantOperations:
		return n > 0
	case assay.MissingStep:
		return n > 1
	case assay.LogicalInconsistency:
		return n > 1 && len(f.able()) > 0
	case assay.SemanticDrift:
		return n > 1 && f.others() >= n-1
	}
	panic(fmt.Sprintf("workflow: there is no flaw named %q", flaw))
}

// apply returns the steps with a flaw. The flaw must be possible.
func (f *flawed) apply(flaw assay.Flaw) []Step {
	switch flaw {
	case assay.SequenceDisorder:
		return f.disorder()
	case assay.ToolMisuse:
		return f.misuse()
	case assay.ParameterError:
		return f.misfit()
	case assay.MissingStep:
		return f.omit()
	case assay.LogicalInconsistency:
		return f.anticipate()
	case assay.SemanticDrift:
		return f.drift()
	}
	return f.repeat()
}

// count returns the number that belongs to the severity.
func (f *flawed) count(light, medium, severe int) int {
	return []int{light, medium, severe}[f.severity]
}

// omit leaves out steps between the first and the last: all of them if the flaw is severe. If there
// are only two steps, it leaves out one of them. References to omitted steps stay as they are.
func (f *flawed) omit() []Step {
	n := len(f.steps)
	between := numbers(1, n-1)
	if n == 2 {
		between = numbers(0, 2)
	}
	order := f.dice.shuffle("omit", between)
	some := n - 2
	gone := order[:max(1, f.count(1, min(2, some), some))]
	var steps []Step
	for i, s := range f.steps {
		if !slices.Contains(gone, i) {
			steps = append(steps, s)
		}
	}
	return steps
}

// repeat doubles steps: one, half of them, or all.
func (f *flawed) repeat() []Step {
	n := len(f.steps)
	twice := f.dice.shuffle("repeat", numbers(0, n))[:f.count(1, (n+1)/2, n)]
	var steps []Step
	for i, s := range f.steps {
		steps = append(steps, s)
		if slices.Contains(twice, i) {
			steps = append(steps, s)
		}
	}
	return steps
}

// toolNames returns the tools of steps.
func toolNames(steps []Step) []string {
	names := make([]string, len(steps))
	for i, s := range steps {
		names[i] = s.Tool
	}
	return names
}
