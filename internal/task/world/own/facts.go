package own

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// facts implements [spec.Definition]. The steps are the calls of the reference plan, and required
// calls that it leaves out.
func facts(
	catalog *assay.Catalog, task *assay.Task, tr *assay.Transcript, o *assay.Outcome,
) spec.Facts {
	c := follow(catalog, task)
	values, err := wanted(catalog, task, &c.judge, tr.State)
	f := spec.Facts{
		Planned:  true,
		Ordered:  len(c.judge.Calls) > 0 && !c.judge.AnyOrder,
		AnyOrder: c.judge.AnyOrder,
		Answered: c.answers(finalAnswer(tr, EndWordOf(task))),
		Opaque:   c.judge.Check != "" || c.judge.Success != "" || c.judge.Model != "",
	}
	if c.judge.Success != "" { // it decides alone
		f.Answered = true
	}
	f.Done = !f.Opaque && len(c.judge.Calls)+len(c.judge.State) > 0 && o.Coverage == 1 &&
		o.UnwantedEffects == 0 && err == nil && !slices.ContainsFunc(values, wrongly)
	for _, s := range c.steps {
		tools := toolsOf(s.want)
		f.Steps = append(f.Steps, spec.Needed{
			Tools: tools, Optional: s.optional, Arguments: s.want.Arguments,
			Effect: slices.ContainsFunc(tools, func(name string) bool {
				tool, _ := catalog.Tool(name)
				return tool.Effect != ""
			}),
		})
	}
	onlyCalls := !f.Opaque && len(c.judge.State) == 0
	for i := range tr.Calls {
		call := &tr.Calls[i]
		c.take(call)
		is := func(e assay.Expected) bool { return fits(&e, call) }
		fit := spec.Fit{
			Unwanted:  c.judged[i].Unwanted != "" && c.judge.Success == "",
			Forbidden: call.Happened() && slices.ContainsFunc(c.judge.Forbidden, is),
			Allowed: slices.ContainsFunc(c.judge.Allowed, is) ||
				onlyCalls && (!c.harms(call) || c.judged[i].Placed && o.UnwantedEffects == 0),
		}
		for k, s := range c.steps {
			if fits(s.want, call) {
				fit.Steps = append(fit.Steps, k)
			}
		}
		fit.Values = len(fit.Steps) > 0
		f.Calls = append(f.Calls, fit)
	}
	return f
}
