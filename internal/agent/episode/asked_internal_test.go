package episode

import (
	"testing"

	"github.com/assay-eval/assay"
)

// What counts as another call than the model asked for, and what as one that it did not ask for.
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
		k.hear(&assay.Message{Content: "named_in_a_text", Calls: []assay.ToolCall{
			{Name: "mcp__assay__add", Arguments: said},
		}})
		asked := k.carryOut(got[0], got[1])
		if k.changed != want[0] || k.unasked != want[1] || (asked != "") != (want[0] > 0) {
			t.Errorf("%v: %d changed, %d unasked, %q", got, k.changed, k.unasked, asked)
		}
	}
}
