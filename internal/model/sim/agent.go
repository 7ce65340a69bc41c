package sim

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// An agent decides on the next message based on its view.
type agent func(m *Models, v *agentView) assay.Message

var agents = map[string]agent{
	Listed:   looking((*Models).listed),
	Optimal:  looking((*Models).optimal),
	Expert:   (*Models).expert,
	Obedient: looking((*Models).obedient),
	Searcher: (*Models).searcher,
	Mute:     (*Models).mute,
	Batcher:  looking((*Models).batcher),
	Alphabet: (*Models).alphabet,
	Sprayer:  (*Models).sprayer,
	Copier:   looking((*Models).copier),
	Inputs:   looking((*Models).onInputs),
	Guesser:  (*Models).guesser,
	Claimer:  (*Models).claimer,
	Starter:  (*Models).starter,
}

// looking returns an agent that first looks for the tools if they have to be found.
func looking(a agent) agent {
	return func(m *Models, v *agentView) assay.Message {
		if msg, wait := v.look(); wait {
			return msg
		}
		return a(m, v)
	}
}

// listed runs the steps in order, each until it succeeds.
func (m *Models) listed(v *agentView) assay.Message {
	return m.carryOut(v, v.steps())
}

// carryOut runs steps in order, each until it succeeds. A tool that occurs twice has to succeed
// twice.
func (m *Models) carryOut(v *agentView, steps []string) assay.Message {
	rest := v.rest(steps)
	if len(rest) == 0 {
		return done
	}
	if tool := v.up(rest[0]); tool != "" {
		return m.execute(v, tool)
	}
	return v.finish(rest)
}

// finish says that the steps are done, or how many of them are left because a tool is down.
func (v *agentView) finish(rest []string) assay.Message {
	if !slices.ContainsFunc(rest, func(tool string) bool { return v.up(tool) == "" }) {
		return done
	}
	return v.unfinished(len(rest), len(v.steps()))
}

// optimal follows the exact best policy for the steps, based on the tools' dependencies and the
// chance that the plan states. [Models.decide] gives it the steps of the task where they are known.
func (m *Models) optimal(v *agentView) assay.Message {
	if tool := m.best(v); tool != "" {
		return m.execute(v, tool)
	}
	return v.finish(v.rest(v.steps()))
}

// batcher follows the best policy too, and makes several calls in one reply when that is free: when
// every call that is left has to succeed.
func (m *Models) batcher(v *agentView) assay.Message {
	tool := m.best(v)
	rest := v.rest(v.steps())
	if tool == "" {
		return v.finish(rest)
	}
	if v.budget > 0 && len(rest) < v.budget-len(v.calls) {
		return m.execute(v, tool)
	}
	var acts []move
	earlier := v.succeeded()
	for _, name := range rest {
		acts = append(acts, m.act(v, name, earlier))
		earlier = append(earlier, name)
	}
	return v.message(acts...)
}

// best returns the tool that the exact best policy calls next, or "".
func (m *Models) best(v *agentView) string {
	steps := v.steps()
	problem := workflow.Problem{World: v.world(), Required: steps, Reliability: v.reliability}
	worked := 0
	succeeded := v.succeeded()
	for _, tool := range steps {
		if slices.ContainsFunc(succeeded, func(name string) bool { return v.catalog.Work(name) == tool }) {
			worked++
		}
	}
	if worked == len(steps) && !v.arguments {
		return ""
	}
	var history []workflow.Call
	for _, c := range v.calls {
		history = append(history, workflow.Call{
			Tool: c.text, OK: c.happened, Mistake: c.refused, Down: c.down, Wait: c.wait,
		})
	}
	idle := v.turn - len(v.calls) // replies without an executed call
	problem.Calls = v.limit - idle
	if v.budget > 0 {
		problem.Calls = min(problem.Calls, v.budget)
	}
	problem.Calls = max(len(history)+1, problem.Calls)
	return m.next(problem, history)
}

// expert works from the description and its knowledge of the tools, and treats a plan only as a
// hint. It finds the tools that the parts of the description ask for, runs each tool's dependencies
// first, and chooses the arguments itself.
func (m *Models) expert(v *agentView) assay.Message {
	found := m.guide.matches(v.queries(), toolsOf(v.plan))
	return m.carryOut(v, policy.Sequence(m.catalog, found))
}

// obedient carries out the given plan to the letter, including its arguments. It retries a step
// that failed by chance and skips a step that cannot succeed, because it does not repair anything.
// It believes every answer.
func (m *Models) obedient(v *agentView) assay.Message {
	if v.plan == nil {
		return m.carryOut(v, v.steps())
	}
	next := v.corrected
	for _, c := range v.calls {
		if c.ok || c.refused || c.down {
			next++
		}
	}
	if next >= len(v.plan) {
		return done
	}
	return v.message(v.plan[next])
}

// searcher searches for tools forever, with different words each time.
func (m *Models) searcher(v *agentView) assay.Message {
	words := strings.Fields(v.description)
	query := "tool"
	if len(words) > 0 {
		query = words[v.turn%len(words)]
	}
	return v.message(move{search: true, text: fmt.Sprintf("%s, attempt %d", query, v.turn+1)})
}

// mute never acts.
func (m *Models) mute(v *agentView) assay.Message {
	text := fmt.Sprintf("Thought %d: I would begin by reading the task again.", v.turn+1)
	return assay.Message{Role: assay.Assistant, Content: text}
}

var done = assay.Message{Role: assay.Assistant, Content: "All steps are done. TASK_COMPLETED"}

// planned returns the calls of the plan. Without a plan it returns calls of the tools that the task
// seems to want, with arguments that fit the calls so far.
func (m *Models) planned(v *agentView) []move {
	if v.plan != nil {
		return v.plan
	}
	var acts []move
	for _, name := range v.steps() {
		acts = append(acts, m.act(v, name, v.succeeded()))
	}
	return acts
}

// look searches for the parts of the description, all in one reply, if the tools have to be found
// first and there was no search yet.
func (v *agentView) look() (assay.Message, bool) {
	if !v.discover || v.plan != nil || len(v.found) > 0 {
		return assay.Message{}, false
	}
	var acts []move
	for _, q := range v.queries() {
		acts = append(acts, move{search: true, text: q})
	}
	if len(acts) == 0 {
		acts = append(acts, move{search: true, text: v.description})
	}
	return v.message(acts...), true
}

// execute calls a tool with arguments that fit the calls so far.
func (m *Models) execute(v *agentView, name string) assay.Message {
	return v.message(m.act(v, name, v.succeeded()))
}

// act returns a call of a tool with arguments that fit the tools that succeeded earlier.
func (m *Models) act(v *agentView, name string, earlier []string) move {
	arguments := workflow.Arguments(m.catalog, name, v.inputs, earlier)
	return move{text: name, arguments: m.complete(v, name, arguments)}
}

// complete adds the defaults of arguments that the request demands, although the tool does not.
// Some frameworks make all arguments required.
func (m *Models) complete(v *agentView, name string, arguments json.RawMessage) string {
	var schema struct{ Required []string }
	i := slices.IndexFunc(v.functions, func(f assay.Function) bool { return f.Name == v.prefix+name })
	if i < 0 || json.Unmarshal(v.functions[i].Parameters, &schema) != nil {
		return string(arguments)
	}
	var values map[string]any
	tool, _ := m.catalog.Tool(name)
	for _, p := range tool.Parameters {
		if p.Required || !slices.Contains(schema.Required, v.offered.Name(p.Name)) {
			continue
		}
		if values == nil && json.Unmarshal(arguments, &values) != nil {
			return string(arguments)
		}
		if _, given := values[p.Name]; !given {
			values[p.Name] = p.Default
		}
	}
	if values == nil {
		return string(arguments)
	}
	return encode(values)
}

// message writes down actions under the protocol of the conversation.
func (v *agentView) message(acts ...move) assay.Message {
	msg := assay.Message{Role: assay.Assistant}
	acts = slices.Clone(acts) // episodes share their plans
	for i := range acts {
		now := v.drifted[acts[i].text]
		acts[i].arguments = now.of(acts[i].arguments)
		if !acts[i].search {
			acts[i].arguments = v.written(acts[i])
		}
	}
	if v.tags {
		var lines []string
		for _, a := range acts {
			line := "<tool_call>" + strings.TrimSpace(a.text+" "+a.arguments) + "</tool_call>"
			if a.search {
				line = "<tool_search>" + a.text + "</tool_search>"
			}
			lines = append(lines, line)
		}
		msg.Content = strings.Join(lines, "\n")
		return msg
	}
	for i, a := range acts {
		name, args := v.prefix+a.text, a.arguments
		switch {
		case a.search:
			name, args = v.prefix+"tool_search", encode(map[string]any{"query": a.text})
		case v.discover:
			inner := json.RawMessage(a.arguments)
			if a.arguments == "" {
				inner = json.RawMessage("{}")
			}
			name, args = v.prefix+"tool_call", encode(map[string]any{"tool": a.text, "arguments": inner})
		}
		msg.Calls = append(msg.Calls, assay.ToolCall{ID: v.newID(i), Name: name, Arguments: args})
	}
	return msg
}

// newID returns the ID of the i-th call of a reply. Agents that join replies leave fewer of them
// than there are turns.
func (v *agentView) newID(i int) string {
	for turn := v.turn + 1; ; turn++ {
		id := fmt.Sprintf("call_%d_%d", turn, i)
		if _, taken := v.ids[id]; !taken {
			return id
		}
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("sim: arguments: " + err.Error())
	}
	return string(b)
}
