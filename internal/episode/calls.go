package episode

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

var maxCallsText = strconv.Itoa(MaxCallsPerReply)

// call answers one call of the model. Refused means that it was not well
// formed: nothing was executed, and the answer is a correction that names no
// tool but the one that the model wrote.
func (e *episode) call(turn int, call assay.ToolCall, rec *assay.TurnRecord) (answer map[string]any, refused bool) {
	args, err := parseArguments(call.Arguments)
	if err != nil {
		return refusal(err.Error()), true
	}
	if e.trial.Tools == Listed {
		return e.execute(turn, call.Name, call.Arguments)
	}
	switch call.Name {
	case toolSearch:
		query := strings.TrimSpace(text(args["query"]))
		if query == "" {
			return refusal("tool_search needs a query: a string that says what the tool should do"), true
		}
		rec.Lookups++
		return e.found(query), false
	case toolInfo:
		tool, ok := e.catalog.Tool(text(args["tool"]))
		if !ok {
			return refusal(noTool(text(args["tool"]))), true
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
	return refusal(fmt.Sprintf("there is no function %q; the functions are tool_search, tool_info and tool_call", clip(call.Name))), true
}

func (e *episode) execute(turn int, tool, arguments string) (answer map[string]any, refused bool) {
	rec, err := e.world.Call(turn, tool, arguments)
	if err != nil {
		if e.trial.Tools == Listed {
			return refusal(fmt.Sprintf("there is no function %q", clip(tool))), true
		}
		return refusal(noTool(tool)), true
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
		return map[string]any{"tools": []any{}, "note": "no matching tools; try other words"}
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

func refusal(why string) map[string]any { return map[string]any{"refused": why} }

func noTool(name string) string {
	return fmt.Sprintf("no tool is named %q; find names with tool_search", clip(name))
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
	b, err := json.Marshal(answer)
	if err != nil {
		panic("episode: answer: " + err.Error())
	}
	return string(b)
}

// parseArguments reads what a model wrote as arguments. Nothing at all counts
// as no arguments.
func parseArguments(s string) (map[string]json.RawMessage, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s), &args); err != nil {
		return nil, fmt.Errorf("the arguments have to be one JSON object: %v", err)
	}
	return args, nil
}

// text returns a JSON string's value, "" for anything else.
func text(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return ""
	}
	return s
}
