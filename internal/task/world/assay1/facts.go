package assay1

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// facts implements [spec.Definition].
func facts(
	catalog *assay.Catalog, task *assay.Task, tr *assay.Transcript, o *assay.Outcome,
) spec.Facts {
	l := newLineage(catalog, task)
	f := spec.Facts{
		Ordered: true, Done: o.OrderCorrect && o.Coverage == 1 && o.UnwantedEffects == 0,
	}
	for s, name := range l.steps {
		tool, _ := catalog.Tool(name)
		f.Steps = append(f.Steps, spec.Needed{
			Tools: append([]string{name}, catalog.Substitutes(name)...), Effect: tool.Effect != "", Anywhere: !slices.Contains(l.places, s),
		})
	}
	for i := range tr.Calls {
		call := &tr.Calls[i]
		fit := spec.Fit{Waits: l.waits(call)}
		before := len(l.unwanted)
		sound, right := l.take(call)
		for s := range sound.All {
			fit.Steps = append(fit.Steps, s)
		}
		fit.Values, fit.Unwanted = right, len(l.unwanted) > before
		f.Calls = append(f.Calls, fit)
	}
	f.Answered = l.delivers(handed(tr))
	return f
}

// waits returns the tools without which the world refuses a call: dependencies, and steps of the plan
// to whose results it refers.
func (l *lineage) waits(call *assay.CallRecord) (names []string) {
	tool, _ := l.catalog.Tool(call.Tool)
	args, _ := parseObject(call.Arguments) // none, if they cannot be read
	for _, name := range slices.Concat(tool.Dependencies, refs(args)) {
		_, has := l.results[name]
		if needed := slices.Contains(l.steps, name) || slices.Contains(tool.Dependencies, name); needed && !has {
			names = append(names, name)
		}
	}
	return names
}
