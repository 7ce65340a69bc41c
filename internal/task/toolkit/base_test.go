package toolkit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
)

const shop = `
def sell(state, id):
    order = state["orders"][id]
    order["items"].pop(0)
    order["log"].append({"n": len(order["log"])})
    state["sold"] = state.get("sold", 0) + 1
    return order

def drop(state, id):
    return state["orders"].pop(id)

def fill(state):
    for i in range(300):
        state["orders"]["new %d" % i] = "x" * 3000

def right(state, calls, answer):
    return state["sold"] == 1 and sorted(state["orders"]) == ["a", "c/d"]

def meddles(state, calls, answer):
    state["sold"] = 7
`

// TestBase checks that a task's state is what it adds to the base of its library, that sessions
// return the changes of the base, and that states are read back from these.
func TestBase(t *testing.T) {
	t.Parallel()
	const base = `{"orders":{"a":{"items":["x","y"],"log":[]},"b":1}}`
	kit, err := toolkit.New(assay.NewCatalog(nil).With(
		assay.Script{Name: "t.star", Source: shop, Base: json.RawMessage(base)}, nil))
	if err != nil {
		t.Fatal(err)
	}
	start := json.RawMessage(`{"orders":{"c/d":{"items":[1,2],"log":[]}},"note":null}`)
	s := kit.Begin(start)
	for _, call := range []struct{ tool, arguments, output string }{
		{"sell", `{"id":"c/d"}`, `{"items":[2],"log":[{"n":0}]}`},
		{"drop", `{"id":"b"}`, `1`},
		{"drop", `{"id":"b"}`, ``}, // changes nothing
	} {
		output, err := s.Call(t.Context(), call.tool, json.RawMessage(call.arguments))
		if fault := (*assay.Fault)(nil); string(output) != call.output || (err != nil) !=
			(call.output == "") || err != nil && !errors.As(err, &fault) {
			t.Errorf("%s: %s, %v", call.tool, output, err)
		}
	}
	state, err := s.State()
	want := `[{"op":"add","path":"/note","value":null},{"op":"add","path":"/sold","value":1},` +
		`{"op":"remove","path":"/orders/b"},` +
		`{"op":"add","path":"/orders/c~1d","value":{"items":[2],"log":[{"n":0}]}}]`
	if err != nil || string(state) != want {
		t.Errorf("the state is %s, %v\nwant %s", state, err, want)
	}
	final, err := kit.After(state)
	if err != nil {
		t.Fatal(err)
	}
	part, err := final.Part(json.RawMessage(`{"orders":{"a":{"items":1,"gone":1},"b":1},"sold":2}`))
	if err != nil || string(part) != `{"orders":{"a":{"items":["x","y"]}},"sold":1}` {
		t.Errorf("a part of the state: %s, %v", part, err)
	}
	since, err := final.Since(kit.Begin(start))
	wantSince := `[sold]: → 1; [orders b]: 1 → ; ` +
		`[orders c/d]: {"items":[1,2],"log":[]} → {"items":[2],"log":[{"n":0}]}; `
	got := ""
	for _, d := range since {
		got += strings.TrimSpace(fmt.Sprintf("%v: %s", d.Path, d.Before)) + fmt.Sprintf(" → %s; ", d.After)
	}
	if err != nil || got != wantSince {
		t.Errorf("since the start: %s, %v\nwant %s", got, err, wantSince)
	}
	for check, want := range map[string]string{
		"right": "full_success, <nil>", "meddles": "frozen",
	} {
		level, _, err := kit.Judge(check, state, nil, "")
		if got := fmt.Sprintf("%s, %v", level, err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", check, got, want)
		}
	}
	for _, broken := range []string{`{}`, `[{"op":"add","path":"/x/y","value":1}]`, `[{"op":"remove"}]`} {
		if _, err := kit.After(json.RawMessage(broken)); err == nil {
			t.Errorf("%s can be read", broken)
		}
	}
	if _, err := s.Call(t.Context(), "fill", nil); err != nil {
		t.Error(err)
	}
	_, err = s.Call(t.Context(), "sell", json.RawMessage(`{"id":"a"}`))
	if err != nil {
		t.Error(err)
	}
}

// TestChangesAreLimited checks that an attempt cannot fill the memory, however its calls divide what
// they write, and that it can write the same value again and again.
func TestChangesAreLimited(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"", `{"orders":{}}`} {
		kit, err := toolkit.New(assay.NewCatalog(nil).With(assay.Script{
			Name: "t.star", Base: json.RawMessage(base), Source: `
def write(state, name):
    state[name] = "x" * 300000

def push(state, name):
    state.setdefault("list", []).append("x" * 300000)
`,
		}, nil))
		if err != nil {
			t.Fatal(err)
		}
		s := kit.Begin(nil)
		for i := range 5 {
			if _, err := s.Call(t.Context(), "write", json.RawMessage(`{"name":"same"}`)); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		for _, name := range []string{"a", "b"} {
			if _, err := s.Call(t.Context(), "write", json.RawMessage(`{"name":"`+name+`"}`)); err != nil {
				t.Fatal(err)
			}
		}
		for _, tool := range []string{"write", "push"} {
			_, err = s.Call(t.Context(), tool, json.RawMessage(`{"name":"c"}`))
			if err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes as JSON") {
				t.Errorf("%s with base %s: %v", tool, base, err)
			}
		}
		if state, err := s.State(); err != nil || strings.Contains(string(state), `"c"`) {
			t.Errorf("the state has %d bytes, %v", len(state), err)
		}
	}
}
