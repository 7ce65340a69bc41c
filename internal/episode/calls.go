package episode

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
)

// call answers one call of the model. Refused means that the call was not well
// formed: nothing was executed, and the answer is a correction that names no
// tool but the one that the model wrote.
func (e *episode) call(turn int, call assay.ToolCall, rec *assay.TurnRecord) (answer map[string]any, refused bool) {
	args, ok := parseArguments(call.Arguments)
	if !ok {
		return refusal("no object", nil), true
	}
	if e.trial.Tools == Listed {
		return e.execute(turn, call.Name, call.Arguments)
	}
	switch call.Name {
	case toolSearch:
		query := strings.TrimSpace(text(args["query"]))
		if query == "" {
			return refusal("no query", nil), true
		}
		rec.Lookups++
		return e.found(query), false
	case toolInfo:
		name := text(args["tool"])
		tool, ok := e.catalog.Tool(name)
		if !ok {
			return noTool(toolInfo, name), true
		}
		rec.Lookups++
		return map[string]any{"tool": details(tool)}, false
	case toolCall:
		inner := "{}"
		if raw, ok := args["arguments"]; ok {
			inner = string(raw)
		}
		return e.execute(turn, text(args["tool"]), inner)
	}
	return refusal("no discover function", clip(call.Name)), true
}

func (e *episode) execute(turn int, tool, arguments string) (answer map[string]any, refused bool) {
	rec, err := e.world.Call(turn, tool, arguments)
	if err != nil {
		if e.trial.Tools == Listed {
			return refusal("no listed function", clip(tool)), true
		}
		return noTool(toolCall, tool), true
	}
	answer = map[string]any{"tool": rec.Tool, "success": rec.OK}
	if rec.OK {
		answer["output"] = json.RawMessage(rec.Output)
	} else {
		answer["error"] = rec.Error
	}
	return answer, false
}

func (e *episode) found(query string) map[string]any {
	tools := e.search.Tools(query)
	if len(tools) == 0 {
		return map[string]any{"tools": []any{}, "note": render("no match", nil)}
	}
	list := make([]any, len(tools))
	for i, t := range tools {
		list[i] = details(t)
	}
	return map[string]any{"tools": list}
}

// details is a tool as a model sees it.
func details(t assay.Tool) any {
	return struct {
		Name        string            `json:"name"`
		Description string            `json:"description"`
		Parameters  json.RawMessage   `json:"parameters"`
		Returns     []assay.Return    `json:"returns"`
		Errors      []assay.ToolError `json:"errors"`
		Needs       []string          `json:"needs"`
	}{t.Name, t.Description, schema(t), t.Returns, t.Errors, append([]string{}, t.Dependencies...)}
}

// refusal is the correction of that name in templates/answers.tmpl.
func refusal(name string, data any) map[string]any {
	return map[string]any{"refused": render(name, data)}
}

// noTool refuses a call of a function with a name that no tool has.
func noTool(function, name string) map[string]any {
	if name == "" {
		return refusal("no name", function)
	}
	return refusal("no tool", clip(name))
}

// clip keeps a name that a model made up from filling the conversation.
func clip(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// withLeft adds how many replies are left and encodes the answer.
func withLeft(answer map[string]any, left int) string {
	answer["replies_left"] = left
	return string(encode(answer))
}

// encode returns v as JSON in which <, > and & stand as themselves, for a
// model reads it as text. What cannot be encoded is a bug of ours.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("episode: encode: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
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

// text returns a JSON string's value, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return ""
	}
	return s
}
