package openai_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
)

// recorder sends reply to every request and keeps the last request.
type recorder struct {
	t       testing.TB
	reply   string
	method  string
	uri     string
	header  http.Header
	body    map[string]any
	rawBody []byte
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.method, r.uri, r.header = req.Method, req.RequestURI, req.Header.Clone()
	dec := json.NewDecoder(req.Body)
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		r.t.Errorf("the request is not JSON: %v", err)
	}
	r.rawBody, r.body = raw, nil
	if err := json.Unmarshal(raw, &r.body); err != nil {
		r.t.Error(err)
	}
	writeJSON(w, 200, r.reply)
}

func writeJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// record starts a recorder and returns a provider for it.
func record(t testing.TB, reply string, cfg wire.Config) (*recorder, *wire.Provider) {
	t.Helper()
	r := &recorder{t: t, reply: reply}
	p := serve(t, r, cfg)
	return r, p
}

// serve starts a server with h and returns a provider for it.
func serve(t testing.TB, h http.Handler, cfg wire.Config) *wire.Provider {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	cfg.BaseURL = server.URL + cfg.BaseURL
	return newProvider(t, cfg)
}

func newProvider(t testing.TB, cfg wire.Config) *wire.Provider {
	t.Helper()
	if cfg.Deployment == "" {
		cfg.Deployment = "small"
	}
	if cfg.Client == nil {
		cfg.Client = wire.NewClient(wire.ClientOptions{})
		t.Cleanup(cfg.Client.CloseIdleConnections)
	}
	kind := openai.Protocol
	if cfg.APIVersion != "" {
		kind = openai.Azure
	}
	p, err := kind.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ptr[T any](v T) *T { return &v }

const hello = `{"id":"c1","object":"chat.completion","created":1,"model":"small-2025","choices":[
	{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}],
	"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}`

func hi() assay.Request {
	return assay.Request{Model: "small", Messages: []assay.Message{{Role: assay.User, Content: "hi"}}}
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"z":{},"a":{"maximum":12345678901234567890}}}`
	rec, p := record(t, hello, wire.Config{
		BaseURL: "/v1/", Key: wire.NewSecret("sk-0123456789"), Deployment: "small-east",
	})
	req := assay.Request{
		Model: "small",
		Messages: []assay.Message{
			{Role: assay.System, Content: "be good"},
			{Role: assay.User, Content: "two files"},
			{Role: assay.Assistant, Reasoning: "never sent", Calls: []assay.ToolCall{
				{ID: "a", Name: "read", Arguments: `{"p": 1}`},
				{ID: "b", Name: "read", Arguments: ``},
				{ID: "c", Name: "read file!", Arguments: `{"p": `},
				{ID: "d", Name: "", Arguments: `["p"]`},
			}},
			{Role: assay.ToolRole, CallID: "a", Content: "one"},
			{Role: assay.ToolRole, CallID: "b", Content: "two"},
			{Role: assay.ToolRole, CallID: "c", Content: "three"},
			{Role: assay.ToolRole, CallID: "d", Content: "four"},
			{Role: assay.Assistant},
			{Role: assay.Assistant, Content: "done"},
			{Role: assay.User, Content: "thanks"},
		},
		Functions: []assay.Function{{
			Name: "read", Description: "reads", Parameters: json.RawMessage(schema),
		}, {Name: "bare"}},
		Sampling: assay.Sampling{Temperature: ptr(0.0), MaxTokens: ptr(100)},
	}
	resp, err := p.Chat(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	want := &assay.Response{
		Message:     assay.Message{Role: assay.Assistant, Content: "hello"},
		ServedModel: "small-2025",
		Usage:       assay.Usage{InputTokens: 11, OutputTokens: 3},
		Finish:      "stop",
	}
	if d := cmp.Diff(want, resp); d != "" {
		t.Errorf("Chat() differs (-want +got):\n%s", d)
	}
	if got, want := rec.method+" "+rec.uri, "POST /v1/chat/completions"; got != want {
		t.Errorf("request line = %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer sk-0123456789",
		"Content-Type":  "application/json",
		"Accept":        "application/json",
		"User-Agent":    "assay",
	} {
		if got := rec.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	const wantBody = `{"model":"small-east","messages":[
		{"role":"system","content":"be good"},
		{"role":"user","content":"two files"},
		{"role":"assistant","content":null,"tool_calls":[
			{"id":"a","type":"function","function":{"name":"read","arguments":"{\"p\": 1}"}},
			{"id":"b","type":"function","function":{"name":"read","arguments":"{}"}},
			{"id":"c","type":"function","function":{"name":"read_file_","arguments":"{}"}},
			{"id":"d","type":"function","function":{"name":"unnamed","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"a","content":"one"},
		{"role":"tool","tool_call_id":"b","content":"two"},
		{"role":"tool","tool_call_id":"c","content":"three"},
		{"role":"tool","tool_call_id":"d","content":"four"},
		{"role":"assistant","content":"(empty reply)"},
		{"role":"assistant","content":"done"},
		{"role":"user","content":"thanks"}],
		"tools":[
			{"type":"function","function":{
				"name":"read","description":"reads","parameters":` + schema + `}},
			{"type":"function","function":{"name":"bare"}}],
		"temperature":0,"max_tokens":100}`
	var body map[string]any
	if err := json.Unmarshal([]byte(wantBody), &body); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(body, rec.body); d != "" {
		t.Errorf("body differs (-want +got):\n%s", d)
	}
	if !json.Valid(rec.rawBody) || !strings.Contains(string(rec.rawBody), schema) {
		t.Errorf("the text of the schema was changed: %s", rec.rawBody)
	}
}

func TestAzureOnTheWire(t *testing.T) {
	t.Parallel()
	rec, p := record(t, hello, wire.Config{
		APIVersion: "2025-04-01-preview",
		Deployment: "DeepSeek V3/2", Key: wire.NewSecret("azure-key-1234"),
	})
	if _, err := p.Chat(t.Context(), new(hi())); err != nil {
		t.Fatal(err)
	}
	const want = "/openai/deployments/DeepSeek%20V3%2F2/chat/completions?api-version=2025-04-01-preview"
	if rec.uri != want {
		t.Errorf("URI = %q, want %q", rec.uri, want)
	}
	if got := rec.header.Get("Api-Key"); got != "azure-key-1234" {
		t.Errorf("api-key = %q", got)
	}
	if got, ok := rec.header["Authorization"]; ok {
		t.Errorf("Authorization = %q, want none", got)
	}
}

// TestEnvironmentIsNotRead checks that settings for the SDK in the environment are ignored.
func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org-from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/")
	rec, p := record(t, hello, wire.Config{})
	if _, err := p.Chat(t.Context(), new(hi())); err != nil {
		t.Fatal(err)
	}
	for name, values := range rec.header {
		for _, v := range values {
			if strings.Contains(v, "from-the-environment") {
				t.Errorf("%s: %s was sent", name, v)
			}
		}
	}
}

// TestRequestHasFactors checks that everything under which results are filed is sent.
func TestRequestHasFactors(t *testing.T) {
	t.Parallel()
	rec, p := record(t, hello, wire.Config{Header: http.Header{"X-Route": {"b"}}})
	req := hi()
	req.Sampling = assay.Sampling{
		Seed: ptr(int64(-7)), Effort: "high", Thinking: ptr(8000), ToolChoice: "required",
		Extra: ` {"top_k": 40, "deep": {"a": [1]}} `,
	}
	for _, functions := range [][]assay.Function{nil, {{Name: "read"}}} {
		req.Functions = functions
		if _, err := p.Chat(t.Context(), &req); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"model": "small", "seed": -7., "reasoning_effort": "high", "top_k": 40.,
			"deep":     map[string]any{"a": []any{1.}},
			"thinking": map[string]any{"type": "enabled", "budget_tokens": 8000.},
		}
		if functions != nil {
			want["tool_choice"] = "required"
		}
		delete(rec.body, "messages")
		delete(rec.body, "tools")
		if diff := cmp.Diff(want, rec.body); diff != "" {
			t.Errorf("body (-want +got):\n%s", diff)
		}
	}
	if got := rec.header.Get("X-Route"); got != "b" {
		t.Errorf("header X-Route = %q", got)
	}
	req.Sampling = assay.Sampling{Thinking: ptr(0)}
	if _, err := p.Chat(t.Context(), &req); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"type": "disabled"}, rec.body["thinking"]); diff != "" {
		t.Errorf("without thinking (-want +got):\n%s", diff)
	}
}
