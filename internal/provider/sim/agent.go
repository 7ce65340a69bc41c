package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/workflow"
)

// An agent decides the next message from what it sees.
type agent func(m *Models, v *view) assay.Message

var agents = map[string]agent{
	Listed:   (*Models).listed,
	Optimal:  (*Models).optimal,
	Obedient: (*Models).obedient,
	Searcher: (*Models).searcher,
	Mute:     (*Models).mute,
}

// listed runs the steps in order, each until it succeeds.
func (m *Models) listed(v *view) assay.Message {
	if msg, wait := v.look(); wait {
		return msg
	}
	for _, tool := range v.steps() {
		if !v.succeeded(tool) {
			return v.execute(tool)
		}
	}
	return done
}

// optimal follows the exact best policy for the steps, with what it knows of
// the tools' dependencies and the chance that the plan states.
func (m *Models) optimal(v *view) assay.Message {
	if msg, wait := v.look(); wait {
		return msg
	}
	steps := v.steps()
	worked := 0
	var history []workflow.Call
	for _, c := range v.calls {
		history = append(history, workflow.Call{Tool: c.tool, OK: c.ok})
	}
	for _, tool := range steps {
		if v.succeeded(tool) {
			worked++
		}
	}
	if worked == len(steps) {
		return done
	}
	idle := v.turn - len(v.calls) // replies that executed nothing
	calls := max(len(history)+1, v.limit-idle)
	if tool := m.next(steps, v.reliability, calls, history); tool != "" {
		return v.execute(tool)
	}
	return done
}

// obedient runs each step once, as written, whatever comes of it.
func (m *Models) obedient(v *view) assay.Message {
	if msg, wait := v.look(); wait {
		return msg
	}
	if steps := v.steps(); v.tried < len(steps) {
		return v.execute(steps[v.tried])
	}
	return done
}

// searcher looks for tools for ever, with other words each time.
func (m *Models) searcher(v *view) assay.Message {
	words := strings.Fields(v.description)
	query := "tool"
	if len(words) > 0 {
		query = words[v.turn%len(words)]
	}
	return v.message(v.search(0, fmt.Sprintf("%s, attempt %d", query, v.turn+1)))
}

// mute never calls a function.
func (m *Models) mute(v *view) assay.Message {
	return assay.Message{Role: assay.Assistant, Content: fmt.Sprintf("Thought %d: I would begin by reading the task again.", v.turn+1)}
}

var done = assay.Message{Role: assay.Assistant, Content: "All steps are done. TASK_COMPLETED"}

// look searches for the parts of the description, all in one reply, when the
// tools have to be found and were not searched for yet.
func (v *view) look() (assay.Message, bool) {
	if !v.discover || v.plan != nil || len(v.found) > 0 {
		return assay.Message{}, false
	}
	var calls []assay.ToolCall
	for i, q := range v.queries() {
		calls = append(calls, v.search(i, q))
	}
	if len(calls) == 0 {
		calls = append(calls, v.search(0, v.description))
	}
	return v.message(calls...), true
}

func (v *view) message(calls ...assay.ToolCall) assay.Message {
	return assay.Message{Role: assay.Assistant, Calls: calls}
}

func (v *view) search(i int, query string) assay.ToolCall {
	return v.call(i, "tool_search", map[string]any{"query": query})
}

func (v *view) execute(tool string) assay.Message {
	if v.discover {
		return v.message(v.call(0, "tool_call", map[string]any{"tool": tool}))
	}
	return v.message(v.call(0, tool, v.arguments(tool)))
}

// arguments fills a listed function's required parameters with values of the
// right type.
func (v *view) arguments(tool string) map[string]any {
	args := map[string]any{}
	for _, f := range v.functions {
		if f.Name != tool {
			continue
		}
		var s struct {
			Properties map[string]struct{ Type string }
			Required   []string
		}
		if json.Unmarshal(f.Parameters, &s) != nil {
			return args
		}
		for _, name := range s.Required {
			args[name] = example(s.Properties[name].Type, name)
		}
	}
	return args
}

func example(typ, name string) any {
	switch typ {
	case "object":
		return map[string]any{}
	case "array":
		return []any{}
	case "number", "integer":
		return 1
	case "boolean":
		return true
	}
	switch {
	case strings.Contains(name, "format"):
		return "json"
	case name == "destination":
		return "data/output.json"
	}
	return "data/input.json"
}

func (v *view) call(i int, name string, args map[string]any) assay.ToolCall {
	b, err := json.Marshal(args)
	if err != nil {
		panic("sim: arguments: " + err.Error())
	}
	return assay.ToolCall{ID: fmt.Sprintf("call_%d_%d", v.turn+1, i), Name: name, Arguments: string(b)}
}
