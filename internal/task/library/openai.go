package library

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
)

// A listedTool is a tool of a list as OpenAI's APIs have it: of Chat Completions, in which the
// function stands apart, or of Responses.
type listedTool struct {
	Type        string          `json:"type"`
	Function    *listedTool     `json:"function"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      any             `json:"strict"`
}

// isToolList reports whether a JSON text is a list.
func isToolList(b []byte) bool { return bytes.HasPrefix(bytes.TrimSpace(b), []byte("[")) }

// listedTools returns the tools of a list, and what is wrong with it. Such tools declare no errors,
// so they fail by chance with those that any tool can have.
func listedTools(list []listedTool) (tools []assay.Tool, problems []problem) {
	for i, e := range list {
		wrong := func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			problems = append(problems, problem{place: strconv.Itoa(i + 1), text: text})
		}
		if e.Function != nil {
			e = *e.Function
		}
		name := e.Name
		if name == "" {
			wrong("tool %d of the list has no name", i+1)
			continue
		}
		if slices.ContainsFunc(tools, func(t assay.Tool) bool { return t.Name == name }) {
			wrong("tool %s: defined more than once; remove or rename the others", name)
			continue
		}
		t := assay.Tool{
			Name: name, Description: e.Description, Schema: compact(e.Parameters),
			Returns: []assay.Return{}, Errors: []assay.ToolError{}, Dependencies: []string{},
			Category: beforeLast(name),
		}
		t.Operation = operationOf(name, t.Category)
		if _, err := toolkit.CompileSchema(t.Schema); err != nil {
			wrong("tool %s: %v", name, err)
			continue
		}
		var err error
		if t.Parameters, err = parametersOf(t.Schema); err != nil {
			wrong("tool %s: %v", name, err)
		}
		tools = append(tools, t)
	}
	if len(list) == 0 {
		problems = []problem{{text: noTools}}
	}
	return tools, problems
}

// compact returns a schema without white space. A missing one allows no arguments.
func compact(schema json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(schema) == 0 || string(schema) == "null" || json.Compact(&b, schema) != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return b.Bytes()
}
