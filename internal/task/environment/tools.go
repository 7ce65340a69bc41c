package environment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
)

// maxTools limits the tools of an environment.
const maxTools = 1000

// An Error is the answer of a tool that failed, for the one who called it.
type Error struct{ Text string }

func (e *Error) Error() string { return e.Text }

// Tools asks for the tools that can be called now.
func (s *Session) Tools(ctx context.Context) ([]assay.Tool, error) {
	const doing = "list the tools"
	o, err := s.act(ctx, doing, map[string]any{
		"type": "step", "data": map[string]any{"type": "list_tools"},
	})
	if err != nil {
		return nil, err
	}
	var list struct {
		Tools []Tool
		Error *observedError
	}
	err = json.Unmarshal(o.Observation, &list)
	switch {
	case err == nil && list.Error != nil:
		err = errors.New(list.Error.Message)
	case err == nil && len(list.Tools) > maxTools:
		err = fmt.Errorf("it has more than %d tools", maxTools)
	}
	var tools []assay.Tool
	for _, t := range list.Tools {
		tools = append(tools, t.Tool())
	}
	if err != nil {
		return nil, s.server.fault(ctx, s.program, doing, err)
	}
	return tools, nil
}

// A Tool is a tool as OpenEnv describes it.
type Tool struct {
	Name        string `json:"name" yaml:"name"`
	Description string `json:"description" yaml:"description"`
	Schema      any    `json:"input_schema" yaml:"input_schema"`
}

// Tool returns the tool in Assay's words. Equal schemas have equal texts, because members are sorted.
func (t *Tool) Tool() assay.Tool {
	schema, err := json.Marshal(t.Schema)
	if err != nil {
		panic("environment: " + err.Error()) // it was read from JSON or YAML
	}
	return assay.Tool{
		Name: t.Name, Description: cmp.Or(t.Description, t.Name), Schema: schema,
		Parameters: []assay.Parameter{},
		Returns:    []assay.Return{}, Errors: []assay.ToolError{}, Dependencies: []string{},
	}
}

// An observedError is an error in an observation.
type observedError struct {
	Type    string `json:"error_type"`
	Message string
}

// Call calls a tool. It returns the tool's result as JSON, or an [*Error] if the tool answered that
// it failed. Any other error is a fault of the server.
func (s *Session) Call(ctx context.Context, tool string, arguments json.RawMessage) (
	json.RawMessage, error,
) {
	result, _, err := s.call(ctx, tool, arguments, map[string]any{})
	return result, err
}

// Inject is like Call, and asks for the words of the task's attacker in the result. It returns
// whether they are there: a task may have no attacker, and a result no place for him.
func (s *Session) Inject(ctx context.Context, tool string, arguments json.RawMessage) (
	result json.RawMessage, injected bool, err error,
) {
	return s.call(ctx, tool, arguments, map[string]any{"injected": true})
}

// call takes the action that calls a tool, which may have other members already.
func (s *Session) call(
	ctx context.Context, tool string, arguments json.RawMessage, action map[string]any,
) (result json.RawMessage, injected bool, err error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	action["type"], action["tool_name"], action["arguments"] = "call_tool", tool, arguments
	doing := "call " + tool
	o, err := s.step(ctx, doing, action)
	if err != nil {
		return nil, false, err
	}
	var answer struct {
		Result   json.RawMessage
		Error    *observedError
		Injected bool
	}
	switch err = json.Unmarshal(o.Observation, &answer); {
	case err != nil:
		err = s.server.fault(ctx, s.program, doing, err)
	case answer.Error == nil:
		result, err = resultOf(answer.Result, o.Observation)
	case answer.Error.Type == "transport_error" || answer.Error.Type == "timeout":
		err = fmt.Errorf("%s: %s", answer.Error.Type, answer.Error.Message)
		err = s.server.fault(ctx, s.program, doing, err)
	default:
		err = &Error{answer.Error.Message}
	}
	return result, answer.Injected, err
}

// resultOf returns a result as JSON: the data of a result of MCP, or its text, and other results as
// they are. A text that is a JSON object or array is that value. Without a result, it returns the
// observation.
func resultOf(result, observation json.RawMessage) (json.RawMessage, error) {
	if len(result) == 0 {
		return observation, nil
	}
	var r struct {
		Content []struct{ Text *string }
		Data    json.RawMessage
		Value   json.RawMessage `json:"structured_content"`
		IsError bool            `json:"is_error"`
	}
	var text string
	switch {
	case json.Unmarshal(result, &text) == nil:
		return asJSON(text)
	case json.Unmarshal(result, &r) != nil || r.Content == nil:
		return result, nil
	}
	var lines []string
	for _, c := range r.Content {
		if c.Text != nil {
			lines = append(lines, *c.Text)
		}
	}
	text = strings.Join(lines, "\n")
	switch {
	case r.IsError:
		return nil, &Error{text}
	case len(r.Data) > 0 && string(r.Data) != "null":
		return r.Data, nil
	case len(r.Value) > 0 && string(r.Value) != "null":
		return r.Value, nil
	}
	return asJSON(text)
}

// asJSON returns a text that is a JSON object or array as it is, and any other text as a string.
func asJSON(text string) (json.RawMessage, error) {
	if t := strings.TrimSpace(text); t != "" && strings.Contains("{[", t[:1]) && json.Valid([]byte(t)) {
		return json.RawMessage(t), nil
	}
	return json.Marshal(text)
}

// Messages returns what the user and the system say in an observation.
func (o *Observation) Messages() (system, user string) {
	var m struct {
		Messages []struct{ Role, Content string }
	}
	if json.Unmarshal(o.Observation, &m) != nil {
		return "", "" // other environments may call something else messages
	}
	var systems, users []string
	for _, message := range m.Messages {
		switch message.Role {
		case "system":
			systems = append(systems, message.Content)
		case "user":
			users = append(users, message.Content)
		}
	}
	return strings.Join(systems, "\n\n"), strings.Join(users, "\n\n")
}
