package bridge_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// caller calls the last function that it is offered, and notes the calls that it is shown again.
type caller struct{ shown []string }

func (c *caller) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	for _, m := range req.Messages {
		for _, call := range m.Calls {
			c.shown = append(c.shown, call.Name)
		}
	}
	r := assay.Response{Usage: assay.Usage{InputTokens: 20, OutputTokens: 3}}
	name := req.Functions[len(req.Functions)-1].Name
	r.Message = assay.Message{Role: assay.Assistant, Calls: []assay.ToolCall{{
		ID: fmt.Sprintf("call_%d", len(req.Messages)), Name: name, Arguments: "{}",
	}}}
	return &r, nil
}

// Codex declares the tools of a server as a namespace, and carries out only calls that name it. It
// streams, and sends calls back as they came or by reference.
func TestToolsInANamespace(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := new(caller)
	tool := func(name string) map[string]any {
		return map[string]any{"type": "function", "name": name, "parameters": map[string]any{"type": "object"}}
	}
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		env := bodyOf(r)
		url := env["model_url"] + "/v1/responses"
		input := []any{map[string]any{"role": "user", "content": "hi"}}
		doc := map[string]any{"model": "m", "tools": []any{
			tool("read"), map[string]any{"type": "web_search"}, map[string]any{
				"type": "namespace", "name": "mcp__assay", "description": "tools", "tools": []any{tool("read")},
			},
		}}
		for turn := range 3 {
			doc["input"] = input
			reply, _ := ask(r, url, env["token"], doc)
			item := reply["output"].([]any)[0].(map[string]any)
			if item["namespace"] != "mcp__assay" || item["name"] != "read" {
				t.Errorf("the call is %v", item)
			}
			var sent any = item
			if turn == 1 {
				sent = map[string]any{"type": "item_reference", "id": item["id"]}
			}
			input = append(input, sent, map[string]any{
				"type": "function_call_output", "call_id": item["call_id"],
				"output": []any{map[string]any{"type": "input_text", "text": "Output:"}},
			})
		}
		doc["input"], doc["stream"] = input, true
		body, _ := json.Marshal(doc)
		_, stream := request(t, url, env["token"], string(body))
		if !strings.Contains(stream, `"namespace":"mcp__assay","name":"read"`) {
			t.Errorf("the stream is %s", stream)
		}
		fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
	})
	trial, task := s.trial(0, assay.Discover)
	a, _ := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", URL: service, Model: "m", Timeout: time.Minute,
	}).Run(t.Context(), p, trial, task)
	other := func(name string) bool { return name != "mcp__assay__read" }
	if a.Outcome.Turns != 4 || len(p.shown) != 1+2+3 || slices.ContainsFunc(p.shown, other) {
		t.Errorf("%d turns; the model was shown calls of %q", a.Outcome.Turns, p.shown)
	}
}
