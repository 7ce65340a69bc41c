package workflow

import (
	"bytes"
	"slices"
)

// anticipate makes steps refer to a result that does not exist yet: the result of a later step, or
// the step's own if there is no later one.
func (f *flawed) anticipate() []Step {
	able := f.able()
	count := min(len(able), f.count(1, 2, max(2, (len(f.steps)+1)/2)))
	steps := slices.Clone(f.steps)
	for _, i := range f.dice.shuffle("anticipate", able)[:count] {
		later := f.notYet(i)
		to := later[f.dice.pick("result", i, len(later))]
		from := reference(f.flow(i))
		steps[i].Arguments = bytes.ReplaceAll(steps[i].Arguments, from, reference(to))
	}
	return steps
}

// able returns the steps that refer to something and could refer to a result that does not exist
// yet.
func (f *flawed) able() []int {
	var able []int
	for i, s := range f.steps {
		if len(references(s.Arguments)) > 0 && len(f.notYet(i)) > 0 {
			able = append(able, i)
		}
	}
	return able
}

// notYet returns the tools that have no result before step i but get one later. If there are none,
// it returns the step's own tool, provided that has no earlier result either.
func (f *flawed) notYet(i int) []string {
	names := toolNames(f.steps)
	var later []string
	for _, name := range names[i+1:] {
		if name != names[i] && !slices.Contains(names[:i], name) {
			later = append(later, name)
		}
	}
	if len(later) == 0 && !slices.Contains(names[:i], names[i]) {
		return names[i : i+1]
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
