package episode

import (
	"testing"

	"github.com/assay-eval/assay"
)

// A call is changed if it differs from the model's, and unasked if the model made no such call.
func TestChangedCalls(t *testing.T) {
	t.Parallel()
	const said = `{"n": 9007199254740993, "x": 1.0, "s": "a"}`
	for got, want := range map[[2]string][2]int{ // changed, unasked
		{"add", said}: {0, 0},
		{"add", `{"s":"a","x":1,"n":9007199254740993}`}:          {0, 0},
		{"add", `{"s":"a","x":1,"n":9007199254740992}`}:          {1, 0},
		{"add", `{"s":"a","x":1,"n":9007199254740993,"y":null}`}: {1, 0},
		{"add", ""}:               {1, 0},
		{"plus", said}:            {1, 0},
		{"plus", "{}"}:            {0, 1},
		{"named_in_a_text", "{}"}: {0, 0},
	} {
		var k askedFor
		k.hear(1, &assay.Message{Content: "named_in_a_text", Calls: []assay.ToolCall{
			{Name: "mcp__assay__add", Arguments: said},
		}}, nil)
		_, asked := k.arrive(got[0], got[1])
		if k.changed != want[0] || k.unasked != want[1] || asked != (want[0] > 0) {
			t.Errorf("%v: %d changed, %d unasked, %v", got, k.changed, k.unasked, asked)
		}
	}
}

// TestUnnested checks that the wrapping that a framework puts around the arguments of a call is
// taken off, and that the model's own text stays.
func TestUnnested(t *testing.T) {
	t.Parallel()
	const (
		call   = `{"tool":"a","arguments":{"x":1}}`
		spaced = `{"arguments": {"x": 1.0}, "tool": "a"}`
		nested = `{"tool":"a","arguments":` + spaced + `}`
	)
	for _, c := range []struct{ reply, sent, want string }{
		{call, call, call},
		{call, nested, spaced},
		{call, `{"tool":"a","arguments":{"tool":"b","arguments":{}}}`, ""}, // not the model's text
		{nested, nested, nested},
		{nested, `{"tool":"a","arguments":` + nested + `}`, nested},
		{`{"x":1}`, `{"tool":"a","arguments":{"x":1}}`, ""}, // no call within
		{call, `{"tool":"a"}`, ""},
		{call, `[]`, ""},
	} {
		if c.want == "" {
			c.want = c.sent
		}
		var k askedFor
		k.hear(1, &assay.Message{Calls: []assay.ToolCall{{Name: "assay-tool_call", Arguments: c.reply}}}, nil)
		if got := k.unnested(c.sent); got != c.want {
			t.Errorf("the model wrote %s, the agent sent %s: %s", c.reply, c.sent, got)
		}
	}
}
