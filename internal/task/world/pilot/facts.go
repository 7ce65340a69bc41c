package pilot

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// facts implements [spec.Definition]. This world does not look at arguments, effects and answers.
func facts(
	_ *assay.Catalog, task *assay.Task, tr *assay.Transcript, o *assay.Outcome,
) spec.Facts {
	f := spec.Facts{Ordered: true, Done: o.OrderCorrect, Answered: true}
	for _, name := range task.Required {
		f.Steps = append(f.Steps, spec.Needed{Tools: []string{name}})
	}
	for _, c := range tr.Calls {
		fit := spec.Fit{Values: true, Allowed: true}
		for s, name := range task.Required {
			if name == c.Tool {
				fit.Steps = append(fit.Steps, s)
			}
		}
		f.Calls = append(f.Calls, fit)
	}
	return f
}
