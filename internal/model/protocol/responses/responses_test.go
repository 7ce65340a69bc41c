package responses_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/responses"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// TestMain keeps the tests away from the machine's proxy.
func TestMain(m *testing.M) {
	if err := os.Setenv("NO_PROXY", "*"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// serve starts an endpoint and returns a provider for it.
func serve(
	t testing.TB, replies ...string,
) (*wiretest.Endpoint, *wire.Provider) {
	t.Helper()
	e := &wiretest.Endpoint{Replies: replies, Status: status}
	p, err := responses.Protocol.New(e.Serve(t, "/v1", "gpt-x"))
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

// status returns the status of a reply.
func status(reply string) int {
	if strings.HasPrefix(reply, `{"error":{`) {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

const hello = `{"id":"resp_1","object":"response","status":"completed","error":null,
"incomplete_details":null,"model":"gpt-x-2026","output":[{"type":"message","id":"msg_1",
"role":"assistant","status":"completed","content":[{"type":"output_text","text":"hello",
"annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":5}}`

func hi() assay.Request {
	return assay.Request{
		Model: "small", Messages: []assay.Message{{Role: assay.User, Content: "hi"}},
	}
}

func chat(t *testing.T, p *wire.Provider, req assay.Request) *assay.Response {
	t.Helper()
	resp, err := p.Chat(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	e, p := serve(t, hello)
	chat(t, p, assay.Request{
		Model: "small",
		Messages: []assay.Message{
			{Role: assay.System, Content: "be brief"},
			{Role: assay.User, Content: "hi"},
			{Role: assay.Assistant, Content: "well", Calls: []assay.ToolCall{
				{ID: "c1", Name: "read", Arguments: `{"path": "a<b"}`},
				{ID: "c2", Name: "re ad!", Arguments: `{"path":`},
			}},
			{Role: assay.ToolRole, CallID: "c1", Content: "1"},
			{Role: assay.ToolRole, CallID: "c2", Content: "no"},
			{Role: assay.Assistant},
			{Role: assay.System, Content: "go on"},
		},
		Functions: []assay.Function{
			{Name: "read", Description: "reads", Parameters: json.RawMessage(`{"type":"object"}`)},
			{Name: "stop"},
		},
		Sampling: assay.Sampling{
			Temperature: new(0.5), TopP: new(0.9), MaxTokens: new(64), Effort: "high",
			ToolChoice: "required", Extra: `{"reasoning":{"summary":"auto"},"user":"u"}`,
		},
	})
	const want = `{"model":"gpt-x","instructions":"be brief","input":[
	{"role":"user","content":"hi"},
	{"role":"assistant","content":"well"},
	{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"path\": \"a<b\"}"},
	{"type":"function_call","call_id":"c2","name":"re_ad_","arguments":"{}"},
	{"type":"function_call_output","call_id":"c1","output":"1"},
	{"type":"function_call_output","call_id":"c2","output":"no"},
	{"role":"assistant","content":"(empty reply)"},
	{"role":"system","content":"go on"}],
	"store":false,"include":["reasoning.encrypted_content"],"temperature":0.5,"top_p":0.9,
	"max_output_tokens":64,"reasoning":{"effort":"high","summary":"auto"},"user":"u",
	"tool_choice":"required","tools":[
	{"type":"function","name":"read","description":"reads","parameters":{"type":"object"},
		"strict":false},
	{"type":"function","name":"stop","parameters":null,"strict":false}]}`
	if d := cmp.Diff(object(t, want), e.Last()); d != "" {
		t.Errorf("body differs (-want +got):\n%s", d)
	}
	if e.URI != "/v1/responses" || e.Header.Get("Authorization") != "Bearer sk-canary/0123" {
		t.Errorf("sent to %s with %v", e.URI, e.Header)
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

const (
	thought = `{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"},` +
		`{"type":"summary_text","text":"so"}],"encrypted_content":"gAAA+/<1>"}`
	call = `{"id":"fc_1","type":"function_call","status":"completed","arguments":"{\"x\": 1}",` +
		`"call_id":"c1","name":"read"}`
	odd = `{"id":"fc_2","type":"function_call","arguments":{"x":2},"call_id":"c1","name":"re ad"}`
)

func reply(status string, items ...string) string {
	return `{"status":` + status + `,"model":"gpt-x","output":[` + strings.Join(items, ",") + `]}`
}

// next asks for another turn after reply, and returns the items that are sent for that reply.
func next(t *testing.T, reply string, adapt func(*assay.Message)) []any {
	t.Helper()
	e, p := serve(t, reply, hello)
	req := hi()
	resp := chat(t, p, req)
	req.Messages = append(req.Messages, resp.Message)
	adapt(&req.Messages[1])
	for _, c := range resp.Message.Calls {
		m := assay.Message{Role: assay.ToolRole, CallID: c.ID, Content: "1"}
		req.Messages = append(req.Messages, m)
	}
	chat(t, p, req)
	input := e.Last()["input"].([]any)
	return input[1 : len(input)-len(resp.Message.Calls)]
}

func items(t *testing.T, all ...string) []any {
	t.Helper()
	return object(t, `{"x":[`+strings.Join(all, ",")+`]}`)["x"].([]any)
}

func TestReplyGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	same := func(*assay.Message) {}
	plain := `{"type":"function_call","call_id":"c1","name":"read","arguments":"{\"x\": 1}"}`
	sayWell := `{"type":"message","id":"msg_1","role":"assistant","phase":"commentary",` +
		`"content":[{"type":"output_text","text":"well","annotations":[]}]}`
	tests := []struct {
		name, reply string
		adapt       func(*assay.Message)
		want        []any
	}{
		{"Reasoning", reply(`"completed"`, thought, call), same, items(t, thought, call)},
		{"Phase", reply(`"completed"`, sayWell, call), same, items(t, sayWell, call)},
		{"NoState", reply(`"completed"`, call), same, items(t, plain)},
		{
			"OddCall", reply(`"completed"`, thought, call, odd), same, items(t, thought, call,
				`{"type":"function_call","call_id":"call_1_1","name":"re_ad",`+
					`"arguments":"{\"x\":2}"}`),
		},
		{
			"OtherEndpoint", reply(`"completed"`, thought, call),
			func(m *assay.Message) { m.State.Origin = "responses elsewhere.example" },
			items(t, plain),
		},
		{
			"DamagedState", reply(`"completed"`, thought, call),
			func(m *assay.Message) { m.State.Data = []byte(`{}`) },
			items(t, plain),
		},
		{
			"CallsOutsideOfState", reply(`"completed"`, thought, call),
			func(m *assay.Message) { m.State.Data = []byte(`[` + thought + `]`) },
			items(t, plain),
		},
		{
			"OnlyReasoning",
			`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},` +
				`"output":[` + thought + `]}`,
			same, items(t, `{"role":"assistant","content":"(empty reply)"}`),
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(test.want, next(t, test.reply, test.adapt)); d != "" {
				t.Errorf("items differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestReasoningIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	_, p := serve(t, reply(`"completed"`, thought, call))
	m := chat(t, p, hi()).Message
	if m.Content != "" || m.Reasoning != "hm\n\nso" || m.State == nil {
		t.Errorf("message = %+v", m)
	}
}

func TestRefusalIsAReply(t *testing.T) {
	t.Parallel()
	_, p := serve(t, reply(`"completed"`, `{"type":"message","content":[{"type":"refusal",`+
		`"refusal":"I can't."}]}`))
	if got := chat(t, p, hi()).Message.Content; got != "I can't." {
		t.Errorf("content = %q", got)
	}
}

func TestUsageAndSettingsReported(t *testing.T) {
	t.Parallel()
	_, p := serve(t, `{"status":"completed","model":"gpt-x-2026","reasoning":{"effort":"low",
	"summary":null},"service_tier":"flex","output":[`+call+`],"usage":{"input_tokens":100,
	"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":16},"output_tokens":50,
	"output_tokens_details":{"reasoning_tokens":40},"total_tokens":150}}`)
	req := hi()
	req.Sampling = assay.Sampling{Seed: new(int64(7)), Thinking: new(99)}
	got := chat(t, p, req)
	want := &assay.Response{
		Message: assay.Message{Role: assay.Assistant, Calls: []assay.ToolCall{
			{ID: "c1", Name: "read", Arguments: `{"x": 1}`},
		}},
		ServedModel: "gpt-x-2026", Finish: "completed",
		Usage: assay.Usage{
			InputTokens: 100, CachedTokens: 64, CacheWriteTokens: 16,
			OutputTokens: 50, ReasoningTokens: 40,
		},
		Deviations: []string{"no seed", "no thinking"},
		Reported:   map[string]string{"effort": "low", "service_tier": "flex"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("response differs (-want +got):\n%s", d)
	}
}

func TestUnfinishedReplies(t *testing.T) {
	t.Parallel()
	text := `"output":[{"type":"message","content":[{"text":"par"}]}],"usage":{"output_tokens":9}`
	tests := []struct {
		name, reply string
		want        assay.FaultKind
	}{
		{
			"Failed",
			`{"status":"failed","error":{"code":"server_error","message":"x"},` + text + `}`,
			assay.Server,
		},
		{
			"RateLimit",
			`{"status":"failed","error":{"code":"rate_limit_exceeded","message":"x"},` + text + `}`,
			assay.RateLimited,
		},
		{"FailedInSilence", `{"status":"failed","error":null,` + text + `}`, assay.Server},
		{"Cancelled", `{"status":"cancelled",` + text + `}`, assay.Server},
		{
			"Filter",
			`{"status":"incomplete","incomplete_details":{"reason":"content_filter"},` + text + `}`,
			assay.ContentFilter,
		},
		{
			"UnknownReason",
			`{"status":"incomplete","incomplete_details":{"reason":"boredom"},` + text + `}`,
			assay.Malformed,
		},
		{"Empty", `{"status":"completed","output":[]}`, assay.Malformed},
		{"Chat", `{"choices":[{"message":{"content":"x"}}]}`, assay.Malformed},
		{"List", `[1]`, assay.Malformed},
		{
			"Truncated",
			`{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},` +
				text + `}`,
			"",
		},
		{"Stream", "event: response.created\ndata: {\"type\":\"response.created\"," +
			"\"response\":{\"status\":\"in_progress\"}}\n\nevent: response.completed\ndata: " +
			`{"type":"response.completed","response":{"status":"completed",` + text + "}}\n\n", ""},
		{"InProgress", `{"status":"in_progress",` + text + `}`, assay.Malformed},
		{"NoStatus", `{` + text + `}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, p := serve(t, test.reply)
			resp, err := p.Chat(t.Context(), new(hi()))
			var got assay.FaultKind
			if f := assay.AsFault(err); f != nil {
				got = f.Kind
			}
			if got != test.want {
				t.Errorf("Chat() = %v, want a fault of kind %q", err, test.want)
			}
			if strings.Contains(test.reply, `"usage"`) && resp.Usage.OutputTokens != 9 {
				t.Errorf("usage = %+v, want 9 tokens of output", resp.Usage)
			}
		})
	}
}

// TestRefusedParametersAreLeftOut checks that each refusal costs one request, once.
func TestRefusedParametersAreLeftOut(t *testing.T) {
	t.Parallel()
	refusal := func(param, message string) string {
		return `{"error":{"message":"` + message + `","type":"invalid_request_error","param":"` +
			param + `","code":null}}`
	}
	e, p := serve(t,
		refusal("temperature", "Unsupported parameter: 'temperature' is not supported."),
		refusal("include", "Encrypted content is not supported with this model."),
		hello)
	req := hi()
	req.Sampling.Temperature = new(0.5)
	for range 2 {
		resp := chat(t, p, req)
		if d := cmp.Diff([]string{"no temperature"}, resp.Deviations); d != "" {
			t.Errorf("deviations differ (-want +got):\n%s", d)
		}
	}
	if len(e.Bodies) != 4 {
		t.Errorf("%d requests, want 4", len(e.Bodies))
	}
	for _, name := range []string{"temperature", "include"} {
		if v, ok := e.Last()[name]; ok {
			t.Errorf("%s = %v is still sent", name, v)
		}
	}
	if d := cmp.Diff([]string{"temperature"}, p.Omits(req)); d != "" {
		t.Errorf("Omits() differs (-want +got):\n%s", d)
	}
}

// TestRefusedEffortIsAFault checks that an experiment's factor is never dropped.
func TestRefusedEffortIsAFault(t *testing.T) {
	t.Parallel()
	e, p := serve(t, `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not `+
		`supported with this model.","param":"reasoning.effort"}}`)
	req := hi()
	req.Sampling.Effort = "high"
	_, err := p.Chat(context.Background(), &req)
	if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest || len(e.Bodies) != 1 {
		t.Errorf("Chat() = %v after %d requests", err, len(e.Bodies))
	}
}

func TestEchoedKeyNeverAppears(t *testing.T) {
	t.Parallel()
	const key = `\u0073k-canary\/0123`
	_, p := serve(t, strings.NewReplacer("gAAA", key, "hm", key, "c1", key, "read", key).
		Replace(reply(`"completed"`, thought, call)))
	doc, err := json.Marshal(chat(t, p, hi()))
	text := string(doc)
	if err != nil || strings.Contains(text, "canary") || !strings.Contains(text, "redacted") {
		t.Errorf("response = %s, %v", doc, err)
	}
}
