package bridge_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// ask sends a request to the gateway of an attempt, and returns the reply and its status.
func ask(r *http.Request, url, token string, body any) (reply map[string]any, status string) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err.Error()
	}
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return nil, err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err.Error()
	}
	defer resp.Body.Close()
	_ = json.NewDecoder(resp.Body).Decode(&reply)
	return reply, resp.Status
}

// A client may refer to the items of earlier replies, as the AI SDK does.
func TestRepliesAreKnownByTheirItems(t *testing.T) {
	t.Parallel()
	s := open(t)
	p := new(speaker)
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body := bodyOf(r)
		url := body["model_url"] + "/v1/responses"
		input := []any{map[string]any{"role": "user", "content": "hi"}}
		reply, _ := ask(r, url, body["token"], map[string]any{"model": "m", "input": input})
		for _, item := range reply["output"].([]any) {
			id := item.(map[string]any)["id"]
			input = append(input, map[string]any{"type": "item_reference", "id": id})
		}
		input = append(input, map[string]any{
			"type": "function_call_output", "call_id": "call_1", "output": "found",
		})
		reply, status := ask(r, url, body["token"], map[string]any{"model": "m", "input": input})
		if status != "200 OK" {
			t.Errorf("%s: %v", status, reply)
		}
		fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
	})
	trial, task := s.trial(0, assay.Discover)
	a, _ := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", URL: service, Model: "m", Timeout: time.Minute,
	}).Run(t.Context(), p, trial, task)
	if a.Ended != assay.Finished || a.Outcome.Turns != 2 {
		t.Errorf("ended %q %s with %d turns", a.Ended, a.FaultDetail, a.Outcome.Turns)
	}
}

// speaker replies with a call to the first request and with a text to the second.
type speaker struct{ n int }

func (s *speaker) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	s.n++
	r := assay.Response{Usage: assay.Usage{InputTokens: 20, OutputTokens: 3}}
	if s.n == 1 {
		r.Message.Content = "Let me look."
		r.Message.Calls = []assay.ToolCall{{ID: "call_1", Name: "find", Arguments: `{"query":"ü"}`}}
	} else {
		r.Message.Content = "TASK_COMPLETED"
	}
	r.Message.Role = assay.Assistant
	return &r, nil
}
