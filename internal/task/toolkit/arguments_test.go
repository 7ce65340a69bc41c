package toolkit_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
)

// TestNamesOfArguments lets a model name arguments that a tool does not offer. They reach neither a
// hidden parameter nor the script, which would break.
func TestNamesOfArguments(t *testing.T) {
	t.Parallel()
	const source = `
def pay(state, euros, admin = False):
    return {"admin": admin}

def any(state, euros, *rest, **more):
    return more
`
	const listed = `"type": "object", "properties": {"euros": {"type": "number"}}`
	for _, c := range []struct {
		tool, schema, name string
		environment, taken bool
	}{
		{"pay", `{` + listed + `}`, "admin", false, false},
		{"pay", `{` + listed + `}`, "state", false, false},
		{"pay", `{` + listed + `}`, "nobody", false, false},
		{"pay", `{` + listed + `, "additionalProperties": true}`, "nobody", false, false},
		{"pay", `{` + listed + `, "additionalProperties": true}`, "admin", false, true},
		{"pay", `{"allOf": [{"properties": {"admin": {}}}]}`, "admin", false, true},
		{"any", `{` + listed + `}`, "nobody", false, false},
		{"any", `{` + listed + `, "additionalProperties": true}`, "nobody", false, true},
		{"any", `{` + listed + `, "additionalProperties": true}`, "state", false, false},
		{"any", `{` + listed + `, "patternProperties": {"^x_": {}}}`, "x_1", false, true},
		{"any", `{` + listed + `, "patternProperties": {"^x_": {}}}`, "y_1", false, false},
		{"pay", `{` + listed + `}`, "nobody", true, true},
		{"pay", `{` + listed + `, "additionalProperties": false}`, "nobody", true, false},
		{"pay", `{` + listed + `, "additionalProperties": false, "patternProperties": {"^x_": {}}}`, "x_1", true, true},
	} {
		script, server := assay.Script{Name: "t.star", Source: source}, (*assay.MCPServer)(nil)
		if c.environment {
			script, server = assay.Script{}, &assay.MCPServer{OpenEnv: true}
		}
		kit, err := toolkit.New(assay.NewCatalog([]assay.Tool{
			{Name: c.tool, Schema: json.RawMessage(c.schema)},
		}).With(script, server))
		if err != nil {
			t.Fatal(err)
		}
		args, err := kit.ReadArguments(c.tool, `{"euros": 1, "`+c.name+`": 2}`)
		if (err == nil) != c.taken || err != nil && !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s with %s, %s: %v", c.tool, c.schema, c.name, err)
		}
		if err != nil || c.environment {
			continue
		}
		if _, err := kit.Begin(nil).Call(t.Context(), c.tool, args); err != nil {
			t.Errorf("%s with %s, %s breaks: %v", c.tool, c.schema, c.name, err)
		}
	}
}

// TestArgumentsThatNothingHolds has arguments that scripts cannot hold. They are a mistake, never a
// script that broke, and the check of the episode can still be made.
func TestArgumentsThatNothingHolds(t *testing.T) {
	t.Parallel()
	const source = `
def put(state, x):
    state["x"] = 1

def checked(state, calls, answer):
    return [c["arguments"] for c in calls] != []
`
	kit, err := toolkit.New(assay.NewCatalog([]assay.Tool{
		{Name: "put", Schema: json.RawMessage(`{"type": "object", "properties": {"x": {}}}`)},
	}).With(assay.Script{Name: "t.star", Source: source}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 120 {
		value := strings.Repeat("[", n) + strings.Repeat("]", n)
		if n == 0 {
			value = "1e999"
		}
		call := assay.CallRecord{Tool: "put", Arguments: `{"x": ` + value + `}`}
		args, err := kit.ReadArguments("put", call.Arguments)
		if call.OK = err == nil; call.OK {
			_, err = kit.Begin(nil).Call(t.Context(), "put", args)
		}
		if fault := (*assay.Fault)(nil); errors.As(err, &fault) || call.OK != (n > 0 && n <= 98) {
			t.Errorf("x is nested %d times: %t, %v", n, call.OK, err)
		}
		level, _, err := kit.Judge("checked", nil, []assay.CallRecord{call}, "")
		if level != assay.FullSuccess || err != nil {
			t.Errorf("x is nested %d times: the check says %s, %v", n, level, err)
		}
	}
}
