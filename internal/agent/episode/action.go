package episode

import (
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// An act is what a model can do in a reply, under whatever protocol.
type act int

const (
	search act = iota // look for tools by what they do
	info              // read about one tool
	call              // execute one tool
)

func (a act) String() string { return [...]string{toolSearch, toolInfo, toolCall}[a] }

// An action is one act of a reply, or a wish for one that is not well formed.
type action struct {
	act act
	// id is the ID of a native call; empty under tags.
	id string
	// text is a search's query, or the name of a tool.
	text string
	// arguments of a call: the text that the model wrote, a JSON object where
	// wrong is nil.
	arguments string
	// wrong is the correction that answers an action which is not well formed;
	// nil for one that is.
	wrong *correction
}

// A correction is a text of templates/answers.tmpl. It names no tool but the
// one that the model wrote.
type correction struct {
	name string
	data any
}

func wrong(id, name string, data any) action {
	return action{id: id, wrong: &correction{name, data}}
}

// actions reads what a reply wants done, in order.
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

// nativeAction reads a call of a function.
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
		return wellFormed(action{act: call, id: c.ID, text: stringOf(args["tool"]), arguments: string(args["arguments"])})
	}
	return wrong(c.ID, "no discover function", spec.Clip(c.Name))
}

// wellFormed returns the action, or a wrong one where it lacks what it needs.
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

// noName is the correction of an action without a tool: under tags, whose
// actions have no ID, it shows the form.
func noName(id string) string {
	if id == "" {
		return "no name in tag"
	}
	return "no name"
}

// parseArguments reads what a model wrote as arguments, and reports whether
// that is a JSON object. Nothing at all counts as no arguments, as does null.
func parseArguments(s string) (args map[string]json.RawMessage, ok bool) {
	if strings.TrimSpace(s) == "" {
		return nil, true
	}
	err := json.Unmarshal([]byte(s), &args)
	return args, err == nil
}

// stringOf returns a JSON string's value, "" for anything else.
func stringOf(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return ""
	}
	return s
}
