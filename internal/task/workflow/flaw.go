package workflow

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
)

// Flawed returns a plan from [For] with a flaw of a given severity. It returns false if the flaw
// does not apply; see [Applies]. It does not change the given plan. Random choices depend only on
// the task's ID, the flaw and the seed.
//
// In assay-1, following the flawed plan to the letter never leads to full success, with or without
// luck, however often the plan is repeated. [assay.RedundantOperations] is an exception.
func Flawed(
	catalog *assay.Catalog, plan Plan, task *assay.Task,
	flaw assay.Flaw, severity string, seed uint64,
) (Plan, bool) {
	f := flawed{
		catalog: catalog, task: task, steps: plan.Steps,
		dice: chooser(fmt.Sprintf("assay flaw 1\x00%d\x00%s\x00%s", seed, task.ID, flaw)),
	}
	if f.dose = f.doses(flaw).of(severity); f.dose == 0 {
		return Plan{}, false
	}
	plan.Steps = f.apply(flaw)
	return plan, true
}

// Applies reports whether the plan for a task in a world can have a flaw of a severity. Severities
// of one plan have different doses: if a flaw has only two doses, they are light and severe, and if
// it has one, it is severe. The answer does not depend on the seed.
func Applies(
	catalog *assay.Catalog, worldName string, task *assay.Task, flaw assay.Flaw, severity string,
) bool {
	f := flawed{
		catalog: catalog, task: task, steps: For(catalog, worldName, task).Steps,
		written: ownTools(worldName),
	}
	return f.doses(flaw).of(severity) > 0
}

// flawed is a plan that is about to get a flaw.
type flawed struct {
	catalog *assay.Catalog
	task    *assay.Task
	steps   []Step // belong to the plan and must not be changed
	dose    int
	dice    chooser
	written bool       // by a user, so the tools need not follow the rules of other flaws
	in      taskInputs // parsed on demand; see inputs
}

// inputs returns the task's inputs.
func (f *flawed) inputs() taskInputs {
	if f.in == nil {
		f.in = readInputs(f.task.Inputs)
	}
	return f.in
}

// doses are the sizes of a flaw: how many steps it leaves out, adds, replaces or gives other
// arguments, or how many pairs of steps it reverses. They are 0 if the flaw does not apply.
type doses struct{ light, medium, severe int }

// of returns the dose of a severity. It returns 0 if a worse severity has no larger dose.
func (d doses) of(severity string) int {
	switch {
	case severity == assay.Severe:
		return d.severe
	case severity == assay.Light && d.light < d.severe:
		return d.light
	case severity == assay.Medium && d.light < d.medium && d.medium < d.severe:
		return d.medium
	case slices.Contains(assay.Severities, severity):
		return 0
	}
	panic(fmt.Sprintf("workflow: there is no severity named %q", severity))
}

// upTo limits the doses to the room in a plan.
func (d doses) upTo(most int) doses {
	return doses{min(d.light, most), min(d.medium, most), min(d.severe, most)}
}

func (f *flawed) doses(flaw assay.Flaw) doses {
	n := len(f.steps)
	if f.written && flaw != assay.MissingStep && flaw != assay.RedundantOperations {
		return doses{}
	}
	if n == 0 {
		return doses{}
	}
	most := doses{1, 2, max(3, n/2+1)}
	switch flaw {
	case assay.SequenceDisorder:
		return doses{1, 2, 3}.upTo(f.pairs())
	case assay.ToolMisuse:
		return most.upTo(min(len(f.victims()), f.others()))
	case assay.ParameterError:
		return most.upTo(len(f.victims()))
	case assay.MissingStep:
		return doses{1, 2, max(3, n-2)}.upTo(len(f.dispensable()))
	case assay.RedundantOperations:
		return doses{1, (n + 1) / 2, n}
	case assay.LogicalInconsistency:
		return doses{1, 2, max(3, (n+1)/2)}.upTo(len(f.able()))
	case assay.SemanticDrift:
		return doses{1, (n + 1) / 2, n - 1}.upTo(f.driftable())
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

// isOnly reports whether step i is the only one that calls its tool. No other step can make up for
// damage to such a step.
func (f *flawed) isOnly(i int) bool {
	for j, s := range f.steps {
		if j != i && s.Tool == f.steps[i].Tool {
			return false
		}
	}
	return true
}

// victims returns the steps in random order, beginning with the only call of a tool. It returns nil
// if there is no such step.
func (f *flawed) victims() []int {
	return f.onlyFirst(f.dice.shuffle("victims", numbers(0, len(f.steps))))
}

// onlyFirst moves the first step that is the only call of its tool to the front. It returns nil if
// there is no such step.
func (f *flawed) onlyFirst(steps []int) []int {
	at := slices.IndexFunc(steps, f.isOnly)
	if at < 0 {
		return nil
	}
	i := steps[at]
	return slices.Insert(slices.Delete(steps, at, at+1), 0, i)
}

// dispensable returns all steps but one in the order in which they are left out: those between the
// first and the last, and then one of these two.
func (f *flawed) dispensable() []int {
	n := len(f.steps)
	if n < 2 {
		return nil
	}
	ends := f.dice.shuffle("end", []int{0, n - 1})[:1]
	if n == 2 {
		return f.onlyFirst(ends)
	}
	between := f.onlyFirst(f.dice.shuffle("omit", numbers(1, n-1)))
	if between == nil {
		return nil
	}
	return append(between, ends...)
}

// omit leaves out steps. References to them stay as they are.
func (f *flawed) omit() []Step {
	gone := f.dispensable()[:f.dose]
	var steps []Step
	for i, s := range f.steps {
		if !slices.Contains(gone, i) {
			steps = append(steps, s)
		}
	}
	return steps
}

// repeat doubles steps.
func (f *flawed) repeat() []Step {
	twice := f.dice.shuffle("repeat", numbers(0, len(f.steps)))[:f.dose]
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
