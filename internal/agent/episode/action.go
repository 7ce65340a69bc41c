package episode

import (
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// An act is one kind of thing that a model can do in a reply, under any protocol.
type act int

const (
	search act = iota // look for tools by their function
	info              // read about one tool
	call              // execute one tool
)

func (a act) String() string { return [...]string{toolSearch, toolInfo, toolCall}[a] }

// An action is one act of a reply, or a malformed attempt at one.
type action struct {
	act act
	// id is the ID of a native call. It is empty under the protocol tags.
	id string
	// text is a search's query, or the name of a tool.
	text string
	// arguments holds a call's arguments as the model wrote them. They are a JSON object unless
	// wrong is set.
	arguments string
	// wrong is the correction that answers a malformed action. It is nil for a well-formed one.
	wrong *correction
}

// A correction is a text from templates/answers.tmpl. It names no tool except the one that the
// model wrote.
type correction struct {
	name string
	data any
}

func wrong(id, name string, data any) action {
	return action{id: id, wrong: &correction{name, data}}
}

// actions returns the actions of a reply, in order.
func (e *episode) actions(reply *assay.Message) []action {
	if e.trial.Protocol == assay.Tags {
		return tagActions(reply.Content)
	}
	actions := make([]action, len(reply.Calls))
	for i, c := range reply.Calls {
		actions[i] = nativeAction(e.trial.Tools, c)
	}
	return actions
}

// nativeAction reads the call of a function.
func nativeAction(tools string, c assay.ToolCall) action {
	args, ok := parseArguments(c.Arguments)
	switch {
	case !ok:
		return wrong(c.ID, "no object", nil)
	case tools == assay.Listed:
		return action{act: call, id: c.ID, text: c.Name, arguments: c.Arguments}
	}
	switch c.Name {
	case toolSearch:
		return wellFormed(action{act: search, id: c.ID, text: stringOf(args["query"])})
	case toolInfo:
		return wellFormed(action{act: info, id: c.ID, text: stringOf(args["tool"])})
	case toolCall:
		return wellFormed(action{
			act: call, id: c.ID, text: stringOf(args["tool"]), arguments: string(args["arguments"]),
		})
	}
	return wrong(c.ID, "no discover function", spec.Clip(c.Name))
}

// wellFormed returns the action, or a malformed one if it lacks something.
func wellFormed(a action) action {
	a.text = strings.TrimSpace(a.text)
	if a.text == "" {
		if a.act == search {
			return wrong(a.id, "no query", nil)
		}
		return wrong(a.id, noName(a.id), a.act.String())
	}
	if _, ok := parseArguments(a.arguments); !ok {
		return wrong(a.id, "no object", nil)
	}
	return a
}

// noName returns the correction of an action without a tool. Actions in the protocol tags
// have no ID, so the correction shows the expected form.
func noName(id string) string {
	if id == "" {
		return "no name in tag"
	}
	return "no name"
}

// parseArguments parses a model's arguments and reports whether they are a JSON object. An empty
// text and null count as no arguments.
func parseArguments(s string) (args map[string]json.RawMessage, ok bool) {
	if strings.TrimSpace(s) == "" {
		return nil, true
	}
	err := json.Unmarshal([]byte(s), &args)
	return args, err == nil
}

// stringOf returns the value of a JSON string. It returns "" for any other value.
func stringOf(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return ""
	}
	return s
}
