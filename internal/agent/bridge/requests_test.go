package bridge_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// A counted provider counts the requests for a reply.
type counted struct {
	assay.Provider
	asked atomic.Int32
}

func (c *counted) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	c.asked.Add(1)
	return c.Provider.Chat(ctx, req)
}

// A request costs money and a turn only if it asks for a reply to a conversation that it has in full.
// Others are answered without the model: a list of models, or a refusal that says what to do.
func TestOnlyWholeConversationsReachTheModel(t *testing.T) {
	t.Parallel()
	const (
		gemini   = "/v1beta/models/sim/listed"
		contents = `"contents": [{"role": "user", "parts": [{"text": "hi"}]}]`
		messages = `"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]`
		input    = `"model": "m", "input": "hi"`
	)
	requests := []struct {
		path, body string // a GET has no body
		status     int
		says       string // a part of the answer
	}{
		{gemini + ":generateContent", "{" + contents + "}", 200, `"candidates"`},
		{gemini + ":streamGenerateContent?alt=sse", "{" + contents + "}", 200, "data: {"},
		{"/v1/messages", "{" + messages + "}", 200, `"end_turn"`},
		{"/v1/responses", "{" + input + "}", 200, `"output"`},

		{gemini + ":countTokens", "{" + contents + "}", 404, "countTokens"},
		{gemini + ":embedContent", "{" + contents + "}", 404, "generateContent"},
		{gemini + ":batchEmbedContents", "{" + contents + "}", 404, "NOT_FOUND"},
		{gemini + ":foo", "{" + contents + "}", 404, "NOT_FOUND"},
		{gemini, "{" + contents + "}", 404, "NOT_FOUND"},
		{"/v1/messages/count_tokens", "{" + messages + "}", 404, "not_found"},
		{"/v1/embeddings", `{"model": "m", "input": "hi"}`, 404, "not_found"},
		{gemini + ":generateContent", "{" + contents + `, "cachedContent": "cachedContents/1"}`, 400, "whole conversation"},
		{"/v1/messages", "{" + messages + `, "thread": {"type": "create"}}`, 400, `"error_code":"thread_unsupported_request"`},
		{"/v1/messages", "{" + messages + `, "thread": {"type": "continue", "previous_message_id": "msg_1"}}`, 400, "whole conversation"},
		{"/v1/responses", "{" + input + `, "previous_response_id": "resp_1"}`, 400, "whole conversation"},
		{"/v1/responses", "{" + input + `, "conversation": "conv_1"}`, 400, "whole conversation"},
		{"/v1/responses", "{" + input + `, "prompt": {"id": "p"}}`, 400, "whole conversation"},

		{"/v1/messages", "{" + messages + `, "thread": null}`, 200, `"end_turn"`},
		{"/v1/models", "", 200, `"id":"m"`},
		{"/v1/models/any/name", "", 200, `"id":"any/name"`},
		{"/v1beta/models", "", 200, `"name":"models/m"`},
		{"/v1beta/models/m", "", 200, `"supportedGenerationMethods"`},
	}
	s := open(t)
	models := &counted{Provider: s.models}
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		env := bodyOf(r)
		for _, q := range requests {
			before := models.asked.Load()
			status, answer := request(t, env["model_url"]+q.path, env["token"], q.body)
			asked := models.asked.Load() - before
			if status != q.status || !strings.Contains(answer, q.says) {
				t.Errorf("%s %s: %d %s, want %d and %s", q.path, q.body, status, answer, q.status, q.says)
			}
			if want := q.body != "" && q.status == 200; (asked == 1) != want || asked > 1 {
				t.Errorf("%s %s: the model was asked %d times", q.path, q.body, asked)
			}
			if status, _ := request(t, env["model_url"]+q.path, "other", q.body); status != 401 && status != 404 {
				t.Errorf("%s with another token: %d", q.path, status)
			}
		}
		fmt.Fprint(w, `{"text": "TASK_COMPLETED"}`)
	})
	trial, task := s.trial(0, assay.Discover)
	a, _ := s.Runner(s.episodes, bridge.Agent{
		Name: "agent", Model: "m", Timeout: time.Minute, URL: service,
	}).Run(t.Context(), models, trial, task)
	if want := int(models.asked.Load()); a.Turns != want || want != 5 {
		t.Errorf("%d turns, %d requests to the model, want 5", a.Turns, want)
	}
}

// request sends a body, or asks with GET if there is none.
func request(t *testing.T, url, token, body string) (status int, answer string) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header = http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Errorf("%s: %v", url, err)
	}
	return resp.StatusCode, string(text)
}
