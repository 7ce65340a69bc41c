package simserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/simserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo repeats the last message. If that is "call", it calls the first function. If it is
// "fault" and a kind, it returns that fault.
type echo struct{}

func (echo) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	last := req.Messages[len(req.Messages)-1]
	resp := &assay.Response{
		Message: assay.Message{Role: assay.Assistant, Content: req.Model + ": " + last.Content},
		Usage:   assay.Usage{InputTokens: 10, OutputTokens: 5},
	}
	switch {
	case last.Content == "call" && len(req.Functions) > 0:
		resp.Message.Content = ""
		call := assay.ToolCall{ID: "c1", Name: req.Functions[0].Name, Arguments: `{"a":1}`}
		resp.Message.Calls = []assay.ToolCall{call}
	case strings.HasPrefix(last.Content, "fault "):
		kind := assay.FaultKind(last.Content[len("fault "):])
		return &assay.Response{}, &assay.Fault{Kind: kind, Detail: "as requested"}
	}
	return resp, nil
}

const (
	goodKey  = "sk-good-0123456789"
	chatPath = "/v1/chat/completions"
	user     = `{"role":"user","content":"x"}`
	userX    = `"messages":[` + user + `]`
)

// chat returns the body of a request to sim/listed with further fields.
func chat(fields string) string { return `{"model":"sim/listed",` + fields + `}` }

func newServer(t testing.TB, cfg simserver.Config) *simserver.Server {
	t.Helper()
	if cfg.Provider == nil {
		cfg.Provider = echo{}
	}
	if cfg.Models == nil {
		cfg.Models = []string{"sim/listed", "sim/direct"}
	}
	s, err := simserver.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask sends a request to the handler and returns its response.
func ask(s http.Handler, path, key, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	if strings.HasPrefix(path, "/openai/") {
		req.Header.Set("Api-Key", key)
	} else if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w
}

func say(s http.Handler, model, text string) *httptest.ResponseRecorder {
	body := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, model, text)
	return ask(s, chatPath, goodKey, body)
}

func decode(t testing.TB, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		t.Errorf("content type = %q", got)
	}
	var doc map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatalf("%v in %s", err, w.Body)
	}
	return doc
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	s := newServer(t, simserver.Config{})
	doc := decode(t, say(s, "sim/listed", "hello"))
	delete(doc, "created")
	want := map[string]any{
		"id": "chatcmpl-fdaa002ae41d2649", "object": "chat.completion", "model": "sim/listed",
		"choices": []any{map[string]any{
			"index": 0.0, "finish_reason": "stop", "logprobs": nil,
			"message": map[string]any{
				"role": "assistant", "content": "sim/listed: hello", "refusal": nil,
			},
		}},
		"usage": map[string]any{
			"prompt_tokens": 10.0, "completion_tokens": 5.0, "total_tokens": 15.0,
			"prompt_tokens_details":     map[string]any{"cached_tokens": 0.0},
			"completion_tokens_details": map[string]any{"reasoning_tokens": 0.0},
		},
	}
	if d := cmp.Diff(want, doc); d != "" {
		t.Errorf("completion differs (-want +got):\n%s", d)
	}
}

func TestToolCalls(t *testing.T) {
	t.Parallel()
	s := newServer(t, simserver.Config{})
	doc := decode(t, ask(s, chatPath, goodKey, chat(`
		"tools":[{"type":"function","function":{"name":"read","parameters":{}}}],
		"messages":[
			{"role":"developer","content":[{"type":"text","text":"x"}]},
			{"role":"assistant","content":null,"tool_calls":[
				{"id":"a","type":"function","function":{"name":"read","arguments":""}},
				{"id":"b","type":"function","function":{"name":"read","arguments":""}}]},
			{"role":"tool","tool_call_id":"b","content":"1"},
			{"role":"tool","tool_call_id":"a","content":"2"},
			{"role":"user","content":"call"}]`)))
	call := map[string]any{
		"id": "c1", "type": "function",
		"function": map[string]any{"name": "read", "arguments": `{"a":1}`},
	}
	want := []any{map[string]any{
		"index": 0.0, "finish_reason": "tool_calls", "logprobs": nil,
		"message": map[string]any{
			"role": "assistant", "content": nil, "refusal": nil, "tool_calls": []any{call},
		},
	}}
	if d := cmp.Diff(want, doc["choices"]); d != "" {
		t.Errorf("choices differ (-want +got):\n%s", d)
	}
}

func TestDeploymentNames(t *testing.T) {
	t.Parallel()
	s := newServer(t, simserver.Config{Models: []string{"sim/listed", "sim/direct-3"}})
	tests := []struct{ name, want string }{
		{"sim/listed", "sim/listed"},
		{"sim-listed", "sim/listed"},
		{"sim-listed-2", "sim/listed"},
		{"sim/listed-17", "sim/listed"},
		{"sim-direct-3", "sim/direct-3"},
		{"sim-direct-3-2", "sim/direct-3"},
		{"sim-direct", ""},
		{"sim-listed-x", ""},
		{"sim-listed-", ""},
		{"listed", ""},
	}
	for _, test := range tests {
		azure := "/openai/deployments/" + strings.ReplaceAll(test.name, "/", "%2F") +
			"/chat/completions?api-version=1"
		for path, body := range map[string]string{
			chatPath: fmt.Sprintf(`{"model":%q,%s}`, test.name, userX),
			azure:    "{" + userX + "}",
		} {
			t.Run(test.name+" "+path, func(t *testing.T) {
				t.Parallel()
				w := ask(s, path, goodKey, body)
				doc := decode(t, w)
				if test.want == "" {
					e, _ := doc["error"].(map[string]any)
					if w.Code != 404 || e["code"] != "model_not_found" {
						t.Errorf("%d %s, want model_not_found", w.Code, w.Body)
					}
					return
				}
				if got := doc["model"]; got != test.want {
					t.Errorf("model = %v, want %s", got, test.want)
				}
			})
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	messages := func(list string) string { return chat(`"messages":[` + list + `]`) }
	says := func(text string) string { return messages(`{"role":"user","content":"` + text + `"}`) }
	const calls = `{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}`
	tests := []struct {
		name, key, body string
		status          int
		message         string
	}{
		{"NoKey", "", chat(userX), 401, "API key"},
		{"WrongKey", "sk-canary-1234", chat(userX), 401, "key provided: sk-canary-1234."},
		{"BadJSON", goodKey, `{"model":`, 400, "parse"},
		{"TrailingText", goodKey, chat(userX) + "x", 400, "parse"},
		{"NoModel", goodKey, `{` + userX + `}`, 404, "does not exist"},
		{"Typo", goodKey, `{"model":"sim/direkt",` + userX + `}`, 404, "did you mean sim/direct?"},
		{"NoMessages", goodKey, messages(""), 400, "empty"},
		{"Role", goodKey, messages(`{"role":"robot","content":"x"}`), 400, "robot"},
		{"ContentNumber", goodKey, messages(`{"role":"user","content":7}`), 400, "messages[0].content"},
		{"PartNumber", goodKey, messages(`{"role":"user","content":[7]}`), 400, "only text"},
		{
			"Image", goodKey,
			messages(`{"role":"user","content":[{"type":"image_url"}]}`), 400, "image_url",
		},
		{"Stream", goodKey, chat(`"stream":true,` + userX), 400, "stream"},
		{"Choices", goodKey, chat(`"n":2,` + userX), 400, "one choice"},
		{"MaxTokens", goodKey, chat(`"max_tokens":0,` + userX), 400, "max_tokens"},
		{"Tool", goodKey, chat(`"tools":[{"type":"web"}],` + userX), 400, "tools[0]"},
		{
			"AnswerWithoutCall", goodKey,
			messages(user + `,{"role":"tool","tool_call_id":"z","content":"x"}`), 400, "'z'",
		},
		{"CallsUnanswered", goodKey, messages(calls + `,` + user), 400, "must be followed"},
		{"CallsUnansweredAtEnd", goodKey, messages(calls), 400, "must be followed"},
		{"TooLarge", goodKey, chat(`"x":"` + strings.Repeat("x", 8<<20) + `"`), 413, "larger"},
		{"ProviderBusy", goodKey, says("fault rate_limited"), 429, "as requested"},
		{"ProviderDown", goodKey, says("fault server"), 500, "as requested"},
		{"ProviderFilter", goodKey, says("fault content_filter"), 400, "as requested"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, simserver.Config{Keys: []string{goodKey}})
			w := ask(s, chatPath, test.key, test.body)
			e, _ := decode(t, w)["error"].(map[string]any)
			message, _ := e["message"].(string)
			if w.Code != test.status || !strings.Contains(message, test.message) {
				t.Errorf("%d %q, want %d and %q", w.Code, message, test.status, test.message)
			}
			if got := s.Stats().Statuses[test.status]; got != 1 {
				t.Errorf("Stats().Statuses[%d] = %d, want 1", test.status, got)
			}
		})
	}
}

func TestOtherRoutes(t *testing.T) {
	t.Parallel()
	s := newServer(t, simserver.Config{})
	for _, test := range []struct {
		method, path string
		status       int
		body         string
	}{
		{"GET", "/healthz", 200, `{"status":"ok"}`},
		{"GET", "/v1/models", 200, `{"object":"list","data":[` +
			`{"id":"sim/direct","object":"model","created":0,"owned_by":"assay","type":"model",` +
			`"display_name":"sim/direct","created_at":"1970-01-01T00:00:00Z"},` +
			`{"id":"sim/listed","object":"model","created":0,"owned_by":"assay","type":"model",` +
			`"display_name":"sim/listed","created_at":"1970-01-01T00:00:00Z"}],"has_more":false}`},
		{"GET", "/v1beta/models/sim/direct", 200, `{"name":"models/sim/direct",` +
			`"displayName":"sim/direct","supportedGenerationMethods":["generateContent",` +
			`"streamGenerateContent"]}`},
		{"GET", "/v1/models/other", 404, `{"error":{"message":"The model ` + "`other`" +
			` does not exist. Hint: known are sim/direct, sim/listed","type":"invalid_request_error","param":"model","code":"model_not_found"}}`},
		{"GET", "/stats", 200, `{"requests":0,"faults":{},"statuses":{},"over_limit":0,` +
			`"prompt_tokens":0,"completion_tokens":0,"in_flight":0,"max_in_flight":0,` +
			`"busy_seconds":0,"connections":0,"per_lane":[]}`},
		{"POST", "/v1/completions", 404, `{"error":{` +
			`"message":"Unknown request URL: POST /v1/completions",` +
			`"type":"invalid_request_error","param":null,"code":"unknown_url"}}`},
	} {
		t.Run(test.method+" "+test.path, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequest(test.method, test.path, nil)
			req.Header.Set("Authorization", "Bearer k")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, req)
			if w.Code != test.status || w.Body.String() != test.body {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, test.status, test.body)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	ok := simserver.Config{Provider: echo{}, Models: []string{"sim/listed"}}
	limits := func(list ...simserver.Limit) func(*simserver.Config) {
		return func(c *simserver.Config) { c.Limits = list }
	}
	faults := func(list ...simserver.Fault) func(*simserver.Config) {
		return func(c *simserver.Config) { c.Faults = list }
	}
	for _, test := range []struct {
		name   string
		change func(*simserver.Config)
		want   string
	}{
		{"NoProvider", func(c *simserver.Config) { c.Provider = nil }, "needs a provider"},
		{"NoModel", func(c *simserver.Config) { c.Models = nil }, "needs a model"},
		{
			"SameDeploymentName",
			func(c *simserver.Config) { c.Models = []string{"a/b", "a-b"} }, "same deployment name",
		},
		{"LimitOfUnknownModel", limits(simserver.Limit{Model: "sim/lst"}), "did you mean sim/listed?"},
		{"TwoLimits", limits(simserver.Limit{RPM: 1}, simserver.Limit{TPM: 1}), "two limits"},
		{"Headers", func(c *simserver.Config) { c.Headers = "antropic" }, "did you mean anthropic?"},
		{"RetryAfter", func(c *simserver.Config) { c.RetryAfter = "second" }, "did you mean seconds?"},
		{"Fault", faults(simserver.Fault{Kind: "hung", Share: 0.1}), "did you mean hang?"},
		{
			"Shares",
			faults(simserver.Fault{Kind: "hang", Share: 0.6}, simserver.Fault{Kind: "500", Share: 0.5}),
			"add up",
		},
		{"Latency", func(c *simserver.Config) { c.Latency.Sigma = -1 }, "sigma"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := ok
			test.change(&cfg)
			_, err := simserver.New(cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("New() = %v, want %q", err, test.want)
			}
		})
	}
	if _, err := simserver.New(ok); err != nil {
		t.Error(err)
	}
}

func FuzzRequest(f *testing.F) {
	f.Add([]byte(chat(userX)))
	f.Add([]byte(chat(`"messages":[
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"a","function":{"name":"n","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}
	],"max_tokens":9223372036854775807`)))
	s := newServer(f, simserver.Config{Limits: []simserver.Limit{{TPM: 1 << 40}}})
	f.Fuzz(func(t *testing.T, body []byte) {
		w := ask(s, chatPath, goodKey, string(body))
		if !slices.Contains([]int{200, 400, 404, 413, 429, 500}, w.Code) {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("not JSON: %s", w.Body)
		}
	})
}

func BenchmarkRequests(b *testing.B) {
	server := httptest.NewServer(newServer(b, simserver.Config{
		Limits: []simserver.Limit{{RPM: 1 << 30, TPM: 1 << 40}},
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	defer client.CloseIdleConnections()

	long := `{"role":"user","content":"` + strings.Repeat("word ", 100) + `"},`
	body := chat(`"messages":[` + strings.Repeat(long, 9) + user + `]`)
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			req, _ := http.NewRequestWithContext(
				b.Context(), http.MethodPost, server.URL+chatPath, strings.NewReader(body))
			req.Header.Set("Authorization", "Bearer k")
			resp, err := client.Do(req)
			if err != nil {
				b.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 200 {
				b.Errorf("status %d", resp.StatusCode)
			}
		}
	})
}
