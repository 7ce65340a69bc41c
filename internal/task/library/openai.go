package library

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

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

// list reads the tools of a list. Such tools declare no errors, so they fail by chance with those
// that any tool can have.
func (r *registry) list() (tools []assay.Tool, err error) {
	n := 0
	for p := range parts(r.file.text, 0) {
		n++
		var e listedTool
		if err := r.decode(p, &e); err != nil {
			return nil, err
		}
		r.unused.add(unknownFields(p.text, reflect.TypeFor[listedTool]()))
		if e.Function != nil {
			var inner struct{ Function json.RawMessage }
			_ = json.Unmarshal(p.text, &inner) // it was decoded before
			r.unused.add(unknownFields(inner.Function, reflect.TypeFor[listedTool]()))
			e = *e.Function
		}
		if t, why := e.tool(tools); why == "" {
			tools = append(tools, t)
		} else if e.Name == "" {
			r.add(p.at, "tool %d of the list %s", n, why)
		} else {
			r.add(p.at, "tool %s: %s", e.Name, why)
		}
	}
	if n == 0 {
		r.add(0, noTools)
	}
	return tools, nil
}

// tool returns the tool of an entry that follows others, or describes the error in it.
func (e *listedTool) tool(before []assay.Tool) (_ assay.Tool, wrong string) {
	switch {
	case e.Name == "":
		return assay.Tool{}, "has no name"
	case slices.ContainsFunc(before, func(t assay.Tool) bool { return t.Name == e.Name }):
		return assay.Tool{}, "defined more than once; remove or rename the others"
	}
	t := assay.Tool{
		Name: e.Name, Description: e.Description, Schema: compact(e.Parameters),
		Returns: []assay.Return{}, Errors: []assay.ToolError{}, Dependencies: []string{},
		Category: beforeLast(e.Name),
	}
	t.Operation = operationOf(e.Name, t.Category)
	_, err := toolkit.CompileSchema(t.Schema)
	if err == nil {
		t.Parameters, err = parametersOf(t.Schema)
	}
	if err != nil {
		return t, err.Error()
	}
	return t, ""
}

// compact returns a schema without white space. A missing one allows no arguments.
func compact(schema json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(schema) == 0 || string(schema) == "null" || json.Compact(&b, schema) != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return b.Bytes()
}
