package gemini_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/gemini"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// TestMain keeps the tests away from the machine's proxy.
func TestMain(m *testing.M) {
	if err := os.Setenv("NO_PROXY", "*"); err != nil {
		panic(err)
	}
	const ofSDK = "go.opencensus.io/stats/view.(*worker).start"
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(ofSDK))
}

// serve starts an endpoint and returns a provider for it.
func serve(
	t testing.TB, deployment string, replies ...string,
) (*wiretest.Endpoint, *wire.Provider) {
	t.Helper()
	e := &wiretest.Endpoint{Replies: replies, Status: status}
	p, err := gemini.Protocol.New(e.Serve(t, "/v1beta", deployment))
	if err != nil {
		t.Fatal(err)
	}
	return e, p
}

// status returns the status of a reply.
func status(reply string) int {
	var failure struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(reply), &failure)
	return cmp.Or(failure.Error.Code, http.StatusOK)
}

const hello = `{"candidates":[{"content":{"parts":[{"text":"hello"}],"role":"model"},
"finishReason":"STOP","index":0}],"modelVersion":"gemini-x","responseId":"r1"}`

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

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	e, p := serve(t, "gemini-x", hello)
	chat(t, p, assay.Request{
		Model: "small",
		Messages: []assay.Message{
			{Role: assay.System, Content: "be brief"},
			{Role: assay.User, Content: "hi"},
			{Role: assay.Assistant, Content: "well", Calls: []assay.ToolCall{
				{ID: "c1", Name: "read", Arguments: `{"path": "a<b"}`},
				{ID: "call_2_1", Name: "2 reads!", Arguments: `{"path":`},
			}},
			{Role: assay.ToolRole, CallID: "c1", Content: "1"},
			{Role: assay.ToolRole, CallID: "call_2_1", Content: "no"},
			{Role: assay.User, Content: "go on"},
			{Role: assay.Assistant},
			{Role: assay.System, Content: "do"},
		},
		Functions: []assay.Function{
			{Name: "read", Description: "reads", Parameters: json.RawMessage(`{"type":"object"}`)},
			{Name: "stop"},
		},
		Sampling: assay.Sampling{
			Temperature: new(0.5), TopP: new(0.9), MaxTokens: new(64), Seed: new(int64(7)),
			Effort: "high", Thinking: new(99), ToolChoice: "required",
			Extra: `{"generationConfig":{"topK":5},"labels":{"a":"b"}}`,
		},
	})
	const want = `{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[
	{"role":"user","parts":[{"text":"hi"}]},
	{"role":"model","parts":[{"text":"well"},
		{"functionCall":{"id":"c1","name":"read","args":{"path":"a<b"}}},
		{"functionCall":{"name":"_2_reads_","args":{}}}]},
	{"role":"user","parts":[
		{"functionResponse":{"id":"c1","name":"read","response":{"output":"1"}}},
		{"functionResponse":{"name":"_2_reads_","response":{"output":"no"}}},
		{"text":"go on"}]},
	{"role":"model","parts":[{"text":"(empty reply)"}]},
	{"role":"user","parts":[{"text":"do"}]}],
	"generationConfig":{"temperature":0.5,"topP":0.9,"maxOutputTokens":64,"seed":7,"topK":5,
		"thinkingConfig":{"includeThoughts":true,"thinkingBudget":99,"thinkingLevel":"HIGH"}},
	"labels":{"a":"b"},"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},
	"tools":[{"functionDeclarations":[
		{"name":"read","description":"reads","parametersJsonSchema":{"type":"object"}},
		{"name":"stop"}]}]}`
	if d := gocmp.Diff(object(t, want), e.Last()); d != "" {
		t.Errorf("body differs (-want +got):\n%s", d)
	}
	if got := e.Header.Get("X-Goog-Api-Key"); got != "sk-canary/0123" {
		t.Errorf("key = %q", got)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	for deployment, want := range map[string]string{
		"gemini-x":        "/v1beta/models/gemini-x:generateContent",
		"models/gemini-x": "/v1beta/models/gemini-x:generateContent",
		"tunedModels/x-1": "/v1beta/tunedModels/x-1:generateContent",
		"a/b c":           "/v1beta/models/a%2Fb%20c:generateContent",
	} {
		e, p := serve(t, deployment, hello)
		if chat(t, p, hi()); e.URI != want {
			t.Errorf("%s is requested at %s, want %s", deployment, e.URI, want)
		}
	}
}

func TestThinking(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]assay.Sampling{
		`{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`: {Effort: "low"},
		`{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":512}}`:  {Thinking: new(512)},
		`{"thinkingConfig":{"thinkingBudget":0}}`:                           {Thinking: new(0)},
	} {
		e, p := serve(t, "gemini-x", hello)
		req := hi()
		req.Sampling = s
		chat(t, p, req)
		got, _ := e.Last()["generationConfig"].(map[string]any)
		if d := gocmp.Diff(object(t, want), got); d != "" {
			t.Errorf("configuration differs (-want +got):\n%s", d)
		}
	}
}

func TestSeedWithoutRoomIsLeftOut(t *testing.T) {
	t.Parallel()
	e, p := serve(t, "gemini-x", hello)
	req := hi()
	req.Sampling.Seed = new(int64(1) << 40)
	resp := chat(t, p, req)
	if d := gocmp.Diff([]string{"no seed"}, resp.Deviations); d != "" {
		t.Errorf("deviations differ (-want +got):\n%s", d)
	}
	if config := e.Last()["generationConfig"]; config != nil {
		t.Errorf("sent the configuration %v", config)
	}
}

const (
	thought = `{"text":"hm","thought":true}`
	call    = `{"functionCall":{"name":"read","args":{"x":1}},"thoughtSignature":"Ab+/<1>="}`
	call2   = `{"functionCall":{"name":"re ad","id":"f2"}}`
	say     = `{"text":"well","thoughtSignature":"Cd=="}`
)

func reply(parts ...string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") +
		`]},"finishReason":"STOP"}]}`
}

func contents(t *testing.T, all string) []any {
	t.Helper()
	return object(t, `{"x":[`+all+`]}`)["x"].([]any)
}

func TestReplyGoesBackAsItCame(t *testing.T) {
	t.Parallel()
	const (
		answered = `{"role":"user","parts":[` +
			`{"functionResponse":{"name":"read","response":{"output":"1"}}},` +
			`{"functionResponse":{"id":"f2","name":"re ad","response":{"output":"1"}}}]}`
		rebuilt = `{"role":"model","parts":[{"functionCall":{"name":"read","args":{"x":1}},` +
			`"thoughtSignature":"skip_thought_signature_validator"},` +
			`{"functionCall":{"id":"f2","name":"re_ad","args":{}}}]},` +
			`{"role":"user","parts":[` +
			`{"functionResponse":{"name":"read","response":{"output":"1"}}},` +
			`{"functionResponse":{"id":"f2","name":"re_ad","response":{"output":"1"}}}]}`
	)
	same := func(*assay.Message) {}
	tests := []struct {
		name, reply string
		adapt       func(*assay.Message)
		want        string
	}{
		{
			"Calls", reply(thought, call, call2), same,
			`{"role":"model","parts":[` + thought + "," + call + "," + call2 + `]},` + answered,
		},
		{
			"Text", reply(thought, say), same,
			`{"role":"model","parts":[` + thought + "," + say + `]}`,
		},
		{
			"UnknownPart", reply(`{"text":"a"}`, `{"executableCode":{"code":"1"}}`), same,
			`{"role":"model","parts":[{"text":"a"},{"executableCode":{"code":"1"}}]}`,
		},
		{
			"NoState", reply(thought, `{"text":"a"}`, `{"text":"b"}`), same,
			`{"role":"model","parts":[{"text":"ab"}]}`,
		},
		{
			"OtherEndpoint", reply(call, call2),
			func(m *assay.Message) { m.State.Origin = "gemini elsewhere.example" }, rebuilt,
		},
		{
			"DamagedState", reply(call, call2),
			func(m *assay.Message) { m.State.Data = []byte(`{}`) }, rebuilt,
		},
		{
			"OtherCalls", reply(call, call2),
			func(m *assay.Message) { m.State.Data = []byte(`[` + call + `]`) }, rebuilt,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e, p := serve(t, "gemini-x", test.reply, hello)
			req := hi()
			resp := chat(t, p, req)
			req.Messages = append(req.Messages, resp.Message)
			test.adapt(&req.Messages[1])
			for _, c := range resp.Message.Calls {
				m := assay.Message{Role: assay.ToolRole, CallID: c.ID, Content: "1"}
				req.Messages = append(req.Messages, m)
			}
			chat(t, p, req)
			got := e.Last()["contents"].([]any)[1:]
			if d := gocmp.Diff(contents(t, test.want), got); d != "" {
				t.Errorf("contents differ (-want +got):\n%s", d)
			}
		})
	}
}

func TestThoughtsAreNotTheAnswer(t *testing.T) {
	t.Parallel()
	_, p := serve(t, "gemini-x", reply(thought, say))
	m := chat(t, p, hi()).Message
	if m.Content != "well" || m.Reasoning != "hm" || m.State == nil {
		t.Errorf("message = %+v", m)
	}
}

// TestUsage checks that thoughts and the prompts of tools are counted, although candidates and
// prompts don't include them.
func TestUsage(t *testing.T) {
	t.Parallel()
	_, p := serve(t, "gemini-x", strings.Replace(hello, `"modelVersion"`, `"usageMetadata":{
	"promptTokenCount":100,"toolUsePromptTokenCount":10,"cachedContentTokenCount":64,
	"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":160},"modelVersion"`, 1))
	got := chat(t, p, hi())
	want := &assay.Response{
		Message:     assay.Message{Role: assay.Assistant, Content: "hello"},
		ServedModel: "gemini-x", Finish: "STOP",
		Usage: assay.Usage{
			InputTokens: 110, CachedTokens: 64, OutputTokens: 50, ReasoningTokens: 30,
		},
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("response differs (-want +got):\n%s", d)
	}
}

func TestUnfinishedReplies(t *testing.T) {
	t.Parallel()
	ended := func(reason, parts string) string {
		return `{"candidates":[{"content":{"parts":[` + parts + `]},"finishReason":"` + reason +
			`","finishMessage":"Malformed function call: read(x"}],` +
			`"usageMetadata":{"promptTokenCount":9}}`
	}
	const text = `{"text":"par"}`
	tests := []struct {
		name, reply string
		want        assay.FaultKind
		content     string
	}{
		{"Truncated", ended("MAX_TOKENS", text), "", "par"},
		{"TruncatedThoughts", ended("MAX_TOKENS", ""), "", ""},
		{
			"MalformedCall", ended("MALFORMED_FUNCTION_CALL", ""), "",
			"Malformed function call: read(x",
		},
		{"UnexpectedCall", ended("UNEXPECTED_TOOL_CALL", text), "", "par"},
		{"Safety", ended("SAFETY", text), assay.ContentFilter, ""},
		{"Recitation", ended("RECITATION", text), assay.ContentFilter, ""},
		{"Other", ended("OTHER", text), assay.Server, ""},
		{"MissingSignature", ended("MISSING_THOUGHT_SIGNATURE", text), assay.Server, ""},
		{"Unknown", ended("BOREDOM", text), assay.Malformed, ""},
		{"Empty", ended("STOP", ""), assay.Malformed, ""},
		{
			"Blocked",
			`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},` +
				`"usageMetadata":{"promptTokenCount":9}}`,
			assay.ContentFilter, "",
		},
		{"Chat", `{"choices":[{"message":{"content":"x"}}]}`, assay.Malformed, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, p := serve(t, "gemini-x", test.reply)
			resp, err := p.Chat(t.Context(), new(hi()))
			var got assay.FaultKind
			if f := assay.AsFault(err); f != nil {
				got = f.Kind
			}
			if got != test.want || resp.Message.Content != test.content {
				t.Errorf("Chat() = %q, %v, want a fault of kind %q",
					resp.Message.Content, err, test.want)
			}
			if strings.Contains(test.reply, `"usageMetadata"`) && resp.Usage.InputTokens != 9 {
				t.Errorf("usage = %+v, want 9 tokens of input", resp.Usage)
			}
		})
	}
}

// TestErrors checks the errors that Gemini documents.
func TestErrors(t *testing.T) {
	t.Parallel()
	failure := func(code, status, message, details string) string {
		return `{"error":{"code":` + code + `,"message":"` + message + `","status":"` + status +
			`","details":[` + details + `]}}`
	}
	quota := func(id, delay string) string {
		return `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":
		"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"` + id +
			`","quotaValue":"15"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo",
			"retryDelay":"` + delay + `"}`
	}
	const exceeded = "You exceeded your current quota, please check your plan and billing details."
	tests := []struct {
		name, reply string
		want        assay.Fault
	}{
		{
			"InvalidKey",
			failure("400", "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.",
				`{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`),
			assay.Fault{Kind: assay.Auth, Status: 400},
		},
		{
			"Forbidden", failure("403", "PERMISSION_DENIED", "Your key was leaked.", ""),
			assay.Fault{Kind: assay.Auth, Status: 403},
		},
		{
			"NoModel", failure("404", "NOT_FOUND", "models/x is not found", ""),
			assay.Fault{Kind: assay.NotFound, Status: 404},
		},
		{
			"Signature",
			failure("400", "INVALID_ARGUMENT", "Function call is missing a thought_signature.", ""),
			assay.Fault{Kind: assay.BadRequest, Status: 400},
		},
		{
			"PerMinute",
			failure("429", "RESOURCE_EXHAUSTED", exceeded,
				quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "37s")),
			assay.Fault{
				Kind: assay.RateLimited, Status: 429, Bucket: assay.Requests,
				RetryAfter: 37 * time.Second,
			},
		},
		{
			"PerDay",
			failure("429", "RESOURCE_EXHAUSTED", exceeded,
				quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "12.5s")),
			assay.Fault{
				Kind: assay.RateLimited, Status: 429, Bucket: assay.RequestsPerDay,
				RetryAfter: 12500 * time.Millisecond,
			},
		},
		{
			"Overloaded", failure("503", "UNAVAILABLE", "The model is overloaded.", ""),
			assay.Fault{Kind: assay.Overloaded, Status: 503},
		},
		{
			"Internal", failure("500", "INTERNAL", "An internal error has occurred.", ""),
			assay.Fault{Kind: assay.Server, Status: 500},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, p := serve(t, "gemini-x", test.reply)
			_, err := p.Chat(t.Context(), new(hi()))
			f := assay.AsFault(err)
			if f == nil {
				t.Fatal("Chat() succeeds")
			}
			got := assay.Fault{
				Kind: f.Kind, Status: f.Status, Bucket: f.Bucket, RetryAfter: f.RetryAfter,
			}
			if got != test.want {
				t.Errorf("fault = %+v, want %+v", f, test.want)
			}
		})
	}
}

func TestEchoedKeyNeverAppears(t *testing.T) {
	t.Parallel()
	const key = `\u0073k-canary\/0123`
	echo := strings.NewReplacer("hm", key, "Ab", key, "read", key, `"x"`, `"`+key+`"`)
	_, p := serve(t, "gemini-x", echo.Replace(reply(thought, call)))
	doc, err := json.Marshal(chat(t, p, hi()))
	text := string(doc)
	if err != nil || strings.Contains(text, "canary") || !strings.Contains(text, "redacted") {
		t.Errorf("response = %s, %v", doc, err)
	}
}
