package responses_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire"
)

type function struct {
	Type  string     `json:"type"`
	Name  string     `json:"name"`
	Tools []function `json:"tools,omitempty"`
}

// FuzzNamespaces checks that every function of a namespace has a name of its own, that a call of it comes
// back as the client declared it, and that the client's copy of the call has that name again. The words
// are names of functions, and with a slash, of functions in a namespace.
func FuzzNamespaces(f *testing.F) {
	long := strings.Repeat("x", 70)
	f.Add("read mcp__assay/read mcp__assay/write")
	f.Add("a__b a/b a__/b a__b__c a/b__c a__b/c a__b_2")
	f.Add(long + "/a " + long + "/b " + long + "c/a a/" + long + " b/" + long + " a/ü a/ö")
	f.Add("a/b a/b a/b_2 a__b b/b /c c")
	f.Fuzz(func(t *testing.T, words string) {
		var tools []function
		var plain []string
		for _, word := range strings.Fields(strings.ToValidUTF8(words, "?")) {
			namespace, name, grouped := strings.Cut(word, "/")
			switch {
			case grouped && namespace != "" && name != "":
				inner := []function{{Type: "function", Name: name}}
				tools = append(tools, function{Type: "namespace", Name: namespace, Tools: inner})
			case !grouped && !slices.Contains(plain, word):
				tools = append(tools, function{Type: "function", Name: word})
				plain = append(plain, word)
			}
		}
		declared := make(map[[2]string]bool)
		for _, tool := range tools {
			if tool.Type == "namespace" {
				declared[[2]string{tool.Name, tool.Tools[0].Name}] = true
			} else {
				declared[[2]string{"", tool.Name}] = true
			}
		}
		prompt := decoded(t, tools)
		var calls []assay.ToolCall
		offered := make(map[string]bool)
		for _, f := range prompt.Functions {
			if offered[f.Name] {
				t.Errorf("two functions are offered as %q", f.Name)
			}
			if !slices.Contains(plain, f.Name) && f.Name != wire.SendableName(f.Name) {
				t.Errorf("%q is offered, which endpoints refuse", f.Name)
			}
			offered[f.Name] = true
			calls = append(calls, assay.ToolCall{ID: f.Name, Name: f.Name, Arguments: "{}"})
		}
		reply := gateway.Reply{Members: prompt.Members}
		reply.Message.Calls = calls
		var body struct{ Output []json.RawMessage }
		if err := json.Unmarshal(gateway.Encode(responses.Dialect{}.Encode(reply)), &body); err != nil {
			t.Fatal(err)
		}
		for _, raw := range body.Output {
			var call struct{ Type, Namespace, Name string }
			if json.Unmarshal(raw, &call) == nil && call.Type == "function_call" {
				delete(declared, [2]string{call.Namespace, call.Name})
			}
		}
		if len(declared) > 0 {
			t.Errorf("no call of %v came back", declared)
		}
		if back := decoded(t, tools, body.Output...).Messages; len(calls) > 0 && !slices.Equal(back[0].Calls, calls) {
			t.Errorf("the calls came back as %v, want %v", back[0].Calls, calls)
		}
	})
}

// decoded returns the prompt in a request.
func decoded(t *testing.T, tools []function, input ...json.RawMessage) gateway.Prompt {
	t.Helper()
	body := gateway.Encode(map[string]any{"model": "m", "input": input, "tools": tools})
	p, e := responses.Dialect{}.Decode(body)
	if e != nil {
		t.Fatalf("%s: %s", body, e.Message)
	}
	return p
}

// A call of a function that is no longer offered keeps its namespace.
func TestCallOfAFormerMember(t *testing.T) {
	t.Parallel()
	call := json.RawMessage(`{"type":"function_call","call_id":"c","namespace":"mcp__assay","name":"read","arguments":"{}"}`)
	if calls := decoded(t, nil, call).Messages[0].Calls; calls[0].Name != "mcp__assay__read" {
		t.Errorf("the call came back as %v", calls)
	}
}
