package openai_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A stranger is a reply of an endpoint that follows the protocol in its own way.
type stranger struct {
	name        string
	contentType string // "none" for no header
	encoding    string
	body        string
}

func (s stranger) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if s.contentType != "" {
		w.Header().Set("Content-Type", s.contentType)
	}
	if s.contentType == "none" {
		w.Header()["Content-Type"] = nil
	}
	if s.encoding != "" {
		w.Header().Set("Content-Encoding", s.encoding)
	}
	_, _ = io.WriteString(w, s.body)
}

// deflated returns text in deflate, with the header of zlib or without it.
func deflated(t testing.TB, text string, header bool) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser = zlib.NewWriter(&b)
	if !header {
		raw, err := flate.NewWriter(&b, flate.DefaultCompression)
		if err != nil {
			t.Fatal(err)
		}
		w = raw
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// helloStream is [hello] as a stream of events.
const helloStream = ": OPENROUTER PROCESSING\n\n" +
	`data: {"id":"c1","object":"chat.completion.chunk","model":"small-2025","choices":[` +
	`{"index":0,"delta":{"role":"assistant","content":"hel"}}]}` + "\n\n" +
	`data: {"id":"c1","model":"small-2025","choices":[{"index":0,"delta":{"content":"lo"},` +
	`"finish_reason":null}]}` + "\r\n\r\n" +
	`data: {"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":11,"completion_tokens":3}}` + "\n\n" +
	"data: [DONE]\n\n"

// TestReadableReplies plays replies that mean the same as hello.
func TestReadableReplies(t *testing.T) {
	t.Parallel()
	unread := strings.Replace(hello, `"created":1`, `"created":NaN,"p":[-Infinity,Infinity]`, 1)
	for _, s := range []stranger{
		{name: "ByteOrderMark", body: "\ufeff" + hello},
		{name: "WhiteSpace", body: "\n\n \t\r\n" + hello + "\n"},
		{name: "Comments", body: ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\n" + hello},
		{name: "PlainText", contentType: "text/plain; charset=utf-8", body: hello},
		{name: "Bytes", contentType: "application/octet-stream", body: hello},
		{name: "NoContentType", contentType: "none", body: hello},
		{name: "PageType", contentType: "text/html", body: hello},
		{name: "Deflate", encoding: "deflate", body: deflated(t, hello, true)},
		{name: "RawDeflate", encoding: "deflate", body: deflated(t, hello, false)},
		{name: "NaN", body: unread},
		{name: "Stream", contentType: "text/event-stream", body: helloStream},
		{name: "StreamNamedJSON", body: helloStream},
		{name: "EventWithWholeReply", body: "event: x\ndata: " + strings.ReplaceAll(hello, "\n", "")},
		{name: "VoidError", body: strings.Replace(hello, "{", `{"error":{},`, 1)},
		{name: "ErrorOfCodeZero", body: strings.Replace(hello, "{",
			`{"error":{"code":0,"message":"success"},`, 1)},
		{name: "VoidErrorOfChoice", body: strings.Replace(hello, `"index":0`, `"error":{}`, 1)},
	} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			got, err := serve(t, s, wire.Config{}).Chat(t.Context(), new(hi()))
			if err != nil {
				t.Fatal(err)
			}
			want := &assay.Response{
				Message:     assay.Message{Role: assay.Assistant, Content: "hello"},
				ServedModel: "small-2025",
				Usage:       assay.Usage{InputTokens: 11, OutputTokens: 3},
				Finish:      "stop",
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("response differs (-want +got):\n%s", d)
			}
		})
	}
}

// TestCallsOfStrangers plays calls in other forms than OpenAI's of today.
func TestCallsOfStrangers(t *testing.T) {
	t.Parallel()
	read := func(id, args string) assay.ToolCall {
		return assay.ToolCall{ID: id, Name: "read", Arguments: args}
	}
	for _, test := range []struct {
		name, body string
		want       []assay.ToolCall
	}{
		{
			"FunctionCall", `{"choices":[{"finish_reason":"function_call","message":{"content":null,
			"function_call":{"name":"read","arguments":"{}"}}}]}`,
			[]assay.ToolCall{read("call_1_0", "{}")},
		},
		{
			"FunctionCallWithObject", `{"choices":[{"message":{"content":null,
			"function_call":{"name":"read","arguments":{"p": 1}}}}]}`,
			[]assay.ToolCall{read("call_1_0", `{"p": 1}`)},
		},
		{
			"FunctionCallBesideCalls", `{"choices":[{"message":{"content":null,
			"function_call":{"name":"read","arguments":"{}"},
			"tool_calls":[{"id":"a","function":{"name":"read","arguments":"{}"}}]}}]}`,
			[]assay.ToolCall{read("a", "{}")},
		},
		{
			"Stream", `data: {"choices":[{"index":0,"delta":{"tool_calls":[` +
				`{"index":0,"id":"a","function":{"name":"read","arguments":""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"p\""}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"","function":{"arguments":":1}"}},` +
				`{"index":1,"id":"b","function":{"name":"read","arguments":"{}"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}
`,
			[]assay.ToolCall{read("a", `{"p":1}`), read("b", "{}")},
		},
		{
			"StreamWithoutIndexes", `data: {"choices":[{"index":0,"delta":{"tool_calls":[` +
				`{"index":0,"id":"a","function":{"name":"read","arguments":"{}"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[` +
				`{"index":0,"id":"b","function":{"name":"read","arguments":"{}"}}]},"finish_reason":"stop"}]}
`,
			[]assay.ToolCall{read("a", "{}"), read("b", "{}")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, stranger{body: test.body}, wire.Config{})
			got, err := p.Chat(t.Context(), new(hi()))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, got.Message.Calls); d != "" {
				t.Errorf("calls differ (-want +got):\n%s", d)
			}
		})
	}
}

// choiceOf returns a completion with usage and one choice.
func choiceOf(fields string) string {
	return `{"model":"m","choices":[{` + fields +
		`}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`
}

// TestFailureInsideReply plays failures of an endpoint with status 200. They are not the model's
// failures, and their tokens are paid for all the same.
func TestFailureInsideReply(t *testing.T) {
	t.Parallel()
	const part = `"message":{"role":"assistant","content":"I will first"}`
	cutOff := `"message":{"content":null,"tool_calls":[{"id":"a","function":{"name":"read",` +
		`"arguments":"{\"path\":\"/a"}}]}`
	for _, test := range []struct {
		name, body string
		want       assay.FaultKind
	}{
		{
			"ErrorOfChoice", choiceOf(`"finish_reason":"error","error":{"code":502,` +
				`"message":"Upstream error"},` + part), assay.Server,
		},
		{
			"ErrorOfChoiceThatStopped", choiceOf(`"finish_reason":"stop","error":{"code":429,` +
				`"message":"Slow down"},` + part), assay.RateLimited,
		},
		{
			"ErrorOfChoiceInCalls", choiceOf(`"finish_reason":"error","error":{"code":503,` +
				`"message":"Gone"},` + cutOff), assay.Overloaded,
		},
		{"Error", choiceOf(`"finish_reason":"error",` + part), assay.Server},
		{"CutOffCall", choiceOf(`"finish_reason":null,` + cutOff), assay.Malformed},
		{
			"ErrorBesideChoices", `{"error":{"message":"Provider returned error","code":502},` +
				choiceOf(`"finish_reason":"stop",` + part)[1:], assay.Server,
		},
		{
			"TextBesideChoices", `{"error":"The server is overloaded",` +
				choiceOf(`"finish_reason":"stop",` + part)[1:], assay.Overloaded,
		},
		{"Abort", choiceOf(`"finish_reason":"abort",` + part), assay.Server},
		{
			"Resources", choiceOf(`"finish_reason":"insufficient_system_resource",` + part),
			assay.Overloaded,
		},
		{"Network", choiceOf(`"finish_reason":"network_error",` + part), assay.Server},
		{"Safety", choiceOf(`"finish_reason":"SAFETY",` + part), assay.ContentFilter},
		{
			"Prefixed", choiceOf(`"finish_reason":"content_filter: RECITATION",` + part),
			assay.ContentFilter,
		},
		{"Unknown", choiceOf(`"finish_reason":"moon_phase",` + part), assay.Malformed},
		{
			"ErrorInStream", `data: {"model":"m","choices":[{"index":0,"delta":{"content":"I"}}],` +
				`"usage":{"prompt_tokens":5,"completion_tokens":2}}` + "\n\n" +
				`data: {"error":{"code":502,"message":"Lost"},"choices":[{"index":0,` +
				`"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n", assay.Server,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, stranger{body: test.body}, wire.Config{})
			resp, f := chatFault(t, t.Context(), p)
			if f.Kind != test.want {
				t.Errorf("fault %v, want %s", f, test.want)
			}
			if want := (assay.Usage{InputTokens: 5, OutputTokens: 2}); resp.Usage != want {
				t.Errorf("usage %+v, want %+v", resp.Usage, want)
			}
		})
	}
}

// TestRequestLargerThanTheLimit plays refusals of a request that no wait makes acceptable.
func TestRequestLargerThanTheLimit(t *testing.T) {
	t.Parallel()
	const message = "Request too large for model `m` on tokens per minute (TPM): Limit 6000, " +
		"Requested 7012, please reduce your message size and try again."
	for _, status := range []int{413, 429} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, status, openaiError(message, "tokens", "", "rate_limit_exceeded"))
		})
		_, f := chatFault(t, t.Context(), serve(t, h, wire.Config{}))
		if f.Kind != assay.BadRequest || !strings.Contains(f.Detail, "waiting does not help") {
			t.Errorf("status %d: fault %v, want a bad request that explains itself", status, f)
		}
	}
	fits := strings.Replace(message, "7012", "5999", 1)
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, 429, openaiError(fits, "tokens", "", "rate_limit_exceeded"))
	})
	if _, f := chatFault(t, t.Context(), serve(t, h, wire.Config{})); f.Kind != assay.RateLimited {
		t.Errorf("fault %v of a request within the limit, want rate_limited", f)
	}
}

// TestRequestLongerThanTheContext checks that endpoints' refusals of a long conversation are
// distinguished from other bad requests.
func TestRequestLongerThanTheContext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		message, code string
		want          bool
	}{
		{"Your input exceeds the context window of this model.", "context_length_exceeded", true},
		{"This model's maximum context length is 8192 tokens.", "BadRequestError", true},
		{"prompt is too long: 210211 tokens > 200000 maximum", "invalid_request_error", true},
		{"The input token count (40000) exceeds the maximum number of tokens allowed (32768).", "", true},
		{"the request exceeds the available context size", "exceed_context_size_error", true},
		{"Invalid schema for function 'f'", "invalid_function_parameters", false},
		{"The request is invalid.", "", false},
	} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, 400, openaiError(tc.message, "invalid_request_error", "", tc.code))
		})
		_, f := chatFault(t, t.Context(), serve(t, h, wire.Config{}))
		if f.Kind != assay.BadRequest || f.TooLong != tc.want {
			t.Errorf("%s: fault %v, too long %v, want %v", tc.message, f.Kind, f.TooLong, tc.want)
		}
	}
}

// TestStreamThatBreaksOff checks that a stream without an end is not a reply.
func TestStreamThatBreaksOff(t *testing.T) {
	t.Parallel()
	events := strings.SplitAfter(helloStream, "\n\n")
	for n := range 2 {
		p := serve(t, stranger{body: strings.Join(events[:n+1], "")}, wire.Config{})
		if _, f := chatFault(t, t.Context(), p); f.Kind != assay.Malformed {
			t.Errorf("fault %v after %d events, want malformed", f, n+1)
		}
	}
}

// TestModelEndsReply checks that a reply counts if the model is the reason for its end, even if
// it is empty.
func TestModelEndsReply(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{
		"length", "max_tokens", "MAX_TOKENS", "malformed_function_call",
		"function_call_filter: MALFORMED_FUNCTION_CALL", "refusal", "stop", "end_turn",
	} {
		body := choiceOf(`"finish_reason":"` + reason + `","message":{"content":null}`)
		resp, err := serve(t, stranger{body: body}, wire.Config{}).Chat(t.Context(), new(hi()))
		if err != nil || resp.Finish != reason || resp.Message.Role != assay.Assistant {
			t.Errorf("%s: Chat() = %+v, %v; want an empty reply", reason, resp, err)
		}
	}
}

func TestTransientStatuses(t *testing.T) {
	t.Parallel()
	for _, status := range []int{408, 409, 423, 425, 498, 499, 500, 502, 503, 504, 520, 524, 529} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, status, `{"error":{"message":"later"}}`)
		})
		if _, f := chatFault(t, t.Context(), serve(t, h, wire.Config{})); !f.Kind.Retryable() {
			t.Errorf("status %d: fault %v is not retried", status, f)
		}
	}
}
