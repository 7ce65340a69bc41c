package workflow

import (
	"bytes"
	"slices"

	"github.com/assay-eval/assay/internal/task/policy"
)

// anticipate makes steps refer to a result that needs the step's own: the result of a later step
// whose tool depends on it, or the step's own if there is no such step.
func (f *flawed) anticipate() []Step {
	steps := slices.Clone(f.steps)
	for _, i := range f.dice.shuffle("anticipate", f.able())[:f.dose] {
		later := f.notYet(i)
		to := later[f.dice.pick("result", i, len(later))]
		from := reference(f.flow(i))
		steps[i].Arguments = bytes.ReplaceAll(steps[i].Arguments, from, reference(to))
	}
	return steps
}

// able returns the steps that refer to something and are the only call of their tool. If another
// step called it, the reference could come true when the plan is repeated. It returns nil for a
// single step.
func (f *flawed) able() []int {
	var able []int
	for i, s := range f.steps {
		if len(f.steps) > 1 && len(references(s.Arguments)) > 0 && f.isOnly(i) {
			able = append(able, i)
		}
	}
	return able
}

// notYet returns the tools of later steps that depend on step i. If there is no such step, it
// returns the step's own tool.
func (f *flawed) notYet(i int) []string {
	own := f.steps[i].Tool
	var later []string
	for _, s := range f.steps[i+1:] {
		if slices.Contains(policy.Missing(f.catalog, []string{s.Tool}), own) {
			later = append(later, s.Tool)
		}
	}
	if len(later) == 0 {
		return []string{own}
	}
	return later
}

// flow returns the reference that brings data to step i: the first one to an earlier result, or
// else its first one.
func (f *flawed) flow(i int) string {
	refs := references(f.steps[i].Arguments)
	names := toolNames(f.steps[:i])
	isResult := func(r string) bool { return slices.Contains(names, r) }
	if k := slices.IndexFunc(refs, isResult); k >= 0 {
		return refs[k]
	}
	return refs[0]
}
