package sim

import (
	"encoding/json"
	"slices"

	"github.com/assay-eval/assay/internal/task/adapter"
)

type adapterKey struct{ level, description string }

// adapt lets an agent read and write another interface of the tools. The agents know the tools' own one
// by heart, so they get the translation, and do not read it from schemas: see [Models.KnowingTasks].
func (m *Models) adapt(v *agentView) {
	if v.level == "" || m.tasks == nil {
		return
	}
	key := adapterKey{v.level, v.description}
	a, ok := m.adapters.Get(key)
	if !ok {
		task, known := m.tasks(v.description)
		if !known {
			return
		}
		a = adapter.Of(v.level, m.catalog, &task)
		m.adapters.Add(key, a)
	}
	v.offered = a
	v.plan = slices.Clone(v.plan)
	for i, step := range v.plan {
		v.plan[i].arguments, _ = a.Read(step.text, step.arguments)
	}
	for i, c := range v.calls {
		v.calls[i].arguments, _ = a.Read(c.text, c.arguments)
	}
	v.output = a.Original(v.output)
}

// written returns the arguments of a call as the interface has them.
func (v *agentView) written(a move) string {
	if v.offered == nil || a.arguments == "" {
		return a.arguments
	}
	return string(v.offered.Offer(a.text, json.RawMessage(a.arguments)))
}
