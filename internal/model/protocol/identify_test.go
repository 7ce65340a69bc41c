package protocol_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/model/protocol/responses"
)

// Calls and results without IDs are accepted if only one pairing is possible.
func TestCallsWithoutIDs(t *testing.T) {
	t.Parallel()
	chat, gemini := protocol.Dialects("")[0], protocol.Dialects("")[4]
	call := func(name string) string {
		return `{"type":"function","function":{"name":"` + name + `","arguments":"{}"}}`
	}
	talk := func(calls, results string) string {
		return `{"model":"m","messages":[{"role":"user","content":"go"},
			{"role":"assistant","content":"","tool_calls":[` + calls + `]},` + results + `]}`
	}
	google := func(calls, results string) string {
		return `{"contents":[{"role":"user","parts":[{"text":"go"}]},
			{"role":"model","parts":[` + calls + `]},{"role":"user","parts":[` + results + `]}]}`
	}
	for name, tc := range map[string]struct {
		dialect gateway.Dialect
		body    string
		want    []string // the results in the order of the calls; nil if they are refused
	}{
		"one call": {chat, talk(call("f"), `{"role":"tool","content":"1"}`), []string{"1"}},
		"the call alone has an ID": {chat, talk(`{"id":"a",`+call("f")[1:],
			`{"role":"tool","content":"1"}`), []string{"1"}},
		"the ID has another name": {
			chat, talk(`{"id":"a",`+call("f")[1:]+`,{"id":"b",`+call("f")[1:],
				`{"role":"tool","id":"b","content":"2"},{"role":"tool","id":"a","content":"1"}`),
			[]string{"1", "2"},
		},
		"two tools with names": {chat, talk(call("f")+","+call("g"), `{"role":"tool","name":"g",
			"content":"2"},{"role":"tool","name":"f","content":"1"}`), []string{"1", "2"}},
		"two tools without names": {chat, talk(call("f")+","+call("g"),
			`{"role":"tool","content":"1"},{"role":"tool","content":"2"}`), nil},
		"two calls of a tool": {chat, talk(call("f")+","+call("f"), `{"role":"tool","name":"f",
			"content":"1"},{"role":"tool","name":"f","content":"2"}`), nil},
		"Gemini keeps the order": {gemini, google(
			`{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}`,
			`{"functionResponse":{"name":"f","response":{"output":"1"}}},
			{"functionResponse":{"name":"f","response":{"output":"2"}}}`), []string{"1", "2"}},
	} {
		p, e := tc.dialect.Decode([]byte(tc.body))
		if tc.want == nil {
			if e == nil || !strings.Contains(e.Message, "has no ID, and 2 calls wait") {
				t.Errorf("%s: %+v, want a refusal that names the missing ID", name, e)
			}
			continue
		}
		if e == nil {
			e = gateway.CheckDialogue(p.Messages)
		}
		if e != nil {
			t.Errorf("%s: refused: %s", name, e.Message)
			continue
		}
		if diff := cmp.Diff(tc.want, resultsOf(p.Messages)); diff != "" {
			t.Errorf("%s: results (-want +got):\n%s", name, diff)
		}
	}
}

// resultsOf returns the results of the calls in the second message, in their order.
func resultsOf(messages []assay.Message) (all []string) {
	for _, c := range messages[1].Calls {
		for _, m := range messages[2:] {
			if m.CallID == c.ID {
				all = append(all, m.Content)
			}
		}
	}
	return all
}

// References to items of earlier replies stand for the items, and others are named.
func TestReferencesToItems(t *testing.T) {
	t.Parallel()
	d := protocol.Dialects("")[2]
	var items responses.Items
	items.Keep(d, twoCalls())
	body := `{"model":"m","input":[{"role":"user","content":"go"},
		{"type":"item_reference","id":"msg_a"},{"type":"item_reference","id":"fc_a0"},
		{"type":"item_reference","id":"fc_a1"},
		{"type":"function_call_output","call_id":"c1","output":"1"},
		{"type":"function_call_output","call_id":"c2","output":"2"}]}`
	p, e := d.Decode(items.Resolve(d, []byte(body)))
	if e != nil {
		t.Fatalf("refused: %s", e.Message)
	}
	want := []assay.Message{
		{Role: assay.User, Content: "go"},
		twoCalls().Message,
		{Role: assay.ToolRole, CallID: "c1", Content: "1"},
		{Role: assay.ToolRole, CallID: "c2", Content: "2"},
	}
	if diff := cmp.Diff(want, p.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	for item, want := range map[string]string{
		`{"type":"item_reference","id":"fc_z"}`:              "Item with id 'fc_z' not found",
		`{"type":"computer_call","id":"cc"}`:                 "'input[0]' of type 'computer_call'",
		`{"type":"function_call_output"}`:                    "'input[0].output'",
		`{"role":"user","content":[{"type":"input_image"}]}`: "type 'input_image'",
	} {
		_, e := d.Decode(items.Resolve(d, []byte(`{"model":"m","input":[`+item+`]}`)))
		if e == nil || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %+v, want %q", item, e, want)
		}
	}
}
