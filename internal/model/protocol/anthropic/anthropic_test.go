package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/anthropic"
	"github.com/assay-eval/assay/internal/model/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hello = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-20260101",
	"content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,
	"usage":{"input_tokens":11,"output_tokens":3}}`

func hi() assay.Request {
	return assay.Request{
		Model: "claude", Messages: []assay.Message{{Role: assay.User, Content: "hi"}},
	}
}

// serve starts a server that answers with h and returns a provider for it.
func serve(t testing.TB, path string, h http.HandlerFunc) *wire.Provider {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := wire.NewClient(wire.ClientOptions{})
	t.Cleanup(client.CloseIdleConnections)
	p, err := anthropic.Protocol.New(wire.Config{
		BaseURL: server.URL + path, Key: wire.NewSecret("sk-ant-0123456789"),
		Deployment: "claude-x", Client: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func answer(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// TestRequestOnTheWire checks a whole request, with a base URL that ends in /v1 or not.
func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	const want = `{"model":"claude-x","max_tokens":16384,` +
		`"system":[{"type":"text","text":"be good","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a_b","input":{}}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"<1>"},` +
		`{"type":"text","text":"(empty reply)","cache_control":{"type":"ephemeral"}}]}],` +
		`"tool_choice":{"type":"any"},` +
		`"tools":[{"name":"a","input_schema":{"type":"object"}},` +
		`{"name":"b","description":"B","input_schema":{"z":1,"a":2.0},` +
		`"cache_control":{"type":"ephemeral"}}],"top_k":40}`
	for _, path := range []string{"", "/v1"} {
		var got, uri string
		var header http.Header
		p := serve(t, path, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			got, uri, header = string(body), r.RequestURI, r.Header
			answer(w, 200, hello)
		})
		req := assay.Request{
			Model: "claude",
			Messages: []assay.Message{
				{Role: assay.System, Content: "be good"},
				{Role: assay.User, Content: "hi"},
				{Role: assay.Assistant, Calls: []assay.ToolCall{
					{ID: "x", Name: "a b", Arguments: "no"},
				}},
				{Role: assay.ToolRole, CallID: "x", Content: "<1>"},
				{Role: assay.User, Content: " \n"},
			},
			Functions: []assay.Function{
				{Name: "a"},
				{Name: "b", Description: "B", Parameters: json.RawMessage(`{"z":1,"a":2.0}`)},
			},
			Sampling: assay.Sampling{ToolChoice: "required", Extra: `{"top_k":40}`},
		}
		resp, err := p.Chat(t.Context(), &req)
		if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("sent\n%s\nwant\n%s", got, want)
		}
		if uri != "/v1/messages" || header.Get("X-Api-Key") != "sk-ant-0123456789" ||
			header.Get("Anthropic-Version") != "2023-06-01" || header.Get("Authorization") != "" {
			t.Errorf("sent %s, %v", uri, header)
		}
		wantResp := &assay.Response{
			ServedModel: "claude-x-20260101", Finish: "end_turn", Quotas: resp.Quotas,
			Message: assay.Message{Role: assay.Assistant, Content: "hello"},
			Usage:   assay.Usage{InputTokens: 11, OutputTokens: 3},
		}
		if d := cmp.Diff(wantResp, resp); d != "" {
			t.Errorf("response differs (-want +got):\n%s", d)
		}
	}
}

// TestThinkingGoesBack checks that the blocks of a reply with thinking go back as they came, before
// the calls, and to their own endpoint only.
func TestThinkingGoesBack(t *testing.T) {
	t.Parallel()
	const thinking = `{"type":"thinking","thinking":"a <b> \u00e4","signature":"Eq+/=="},` +
		`{"type":"redacted_thinking","data":"xx"},`
	const call = `{"type":"tool_use","id":"x","name":"read","input":{"b":1.0,"a":2}}`
	reply := `{"content":[` + thinking + `{"type":"text","text":""},` + call + `],` +
		`"stop_reason":"tool_use","usage":{"output_tokens":9}}`
	var sent string
	p := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		sent = string(body)
		answer(w, 200, reply)
	})
	req := hi()
	resp, err := p.Chat(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	if m := resp.Message; m.Reasoning != "a <b> ä" || m.Content != "" || len(m.Calls) != 1 {
		t.Errorf("message = %+v", m)
	}
	req.Messages = append(req.Messages, resp.Message,
		assay.Message{Role: assay.ToolRole, CallID: "x", Content: "1"})
	if _, err := p.Chat(t.Context(), &req); err != nil {
		t.Fatal(err)
	}
	want := `{"role":"assistant","content":[` + thinking + call + `]}`
	if !strings.Contains(sent, want) {
		t.Errorf("sent %s, want %s", sent, want)
	}

	req.Messages[1].State.Origin = "anthropic elsewhere.example.com"
	if _, err := p.Chat(t.Context(), &req); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(sent, "signature") || !strings.Contains(sent, call) {
		t.Errorf("sent the thinking of another endpoint: %s", sent)
	}
}

// TestRefusedParameters checks that a parameter that a model refuses is left out from then on, and
// that replies name the deviation.
func TestRefusedParameters(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		message, field string
		sampling       assay.Sampling
		deviations     []string
	}{
		{
			"`temperature` is deprecated for this model.", `"temperature"`,
			assay.Sampling{Temperature: new(0.5)},
			[]string{"no temperature"},
		},
		{
			"`temperature` and `top_p` cannot both be specified for this model.",
			`"top_p"`,
			assay.Sampling{Temperature: new(0.5), TopP: new(0.9)},
			[]string{"no top_p"},
		},
		{
			"adaptive thinking is not supported on this model", `"adaptive"`,
			assay.Sampling{Effort: "high"},
			[]string{"no adaptive thinking"},
		},
		{
			"system.0.cache_control: Extra inputs are not permitted", `"cache_control"`,
			assay.Sampling{},
			nil,
		},
	} {
		requests := 0
		p := serve(t, "", func(w http.ResponseWriter, r *http.Request) {
			requests++
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if strings.Contains(string(body), test.field) {
				answer(w, 400, `{"type":"error","error":{"type":"invalid_request_error",`+
					`"message":"`+test.message+`"}}`)
				return
			}
			answer(w, 200, hello)
		})
		req := hi()
		req.Sampling = test.sampling
		for range 2 {
			resp, err := p.Chat(t.Context(), &req)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.deviations, resp.Deviations); d != "" {
				t.Errorf("after %q, deviations differ (-want +got):\n%s", test.message, d)
			}
		}
		if requests != 3 {
			t.Errorf("after %q, sent %d requests, want 3", test.message, requests)
		}
	}
}

// TestOmits checks the settings that are known not to be sent before any request.
func TestOmits(t *testing.T) {
	t.Parallel()
	p := serve(t, "", func(http.ResponseWriter, *http.Request) {})
	req := hi()
	req.Sampling = assay.Sampling{
		Temperature: new(0.0), TopP: new(1.0), Seed: new(int64(1)), Thinking: new(2048),
	}
	want := []string{"temperature", "top_p", "seed"}
	if d := cmp.Diff(want, p.Omits(req)); d != "" {
		t.Errorf("Omits() differs (-want +got):\n%s", d)
	}
}

func TestOddReplies(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, body string
		want       assay.Message
		fault      assay.FaultKind
	}{
		{
			"NoContent", `{"type":"message","stop_reason":"end_turn"}`,
			assay.Message{},
			assay.Malformed,
		},
		{
			"Empty", `{"content":[],"stop_reason":"end_turn"}`, assay.Message{}, assay.Malformed,
		},
		{
			"ThinkingOnly",
			`{"content":[{"type":"thinking","thinking":"4"}],"stop_reason":"end_turn"}`,
			assay.Message{},
			assay.Malformed,
		},
		{
			"UnknownReason", `{"content":[{"type":"text","text":"a"}],"stop_reason":"pause_turn"}`,
			assay.Message{},
			assay.Malformed,
		},
		{
			"ErrorInside",
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			assay.Message{},
			assay.Overloaded,
		},
		{
			"OutOfTokens", `{"content":[],"stop_reason":"max_tokens"}`, assay.Message{}, "",
		},
		{
			"Refusal", `{"content":[],"stop_reason":"refusal"}`, assay.Message{}, "",
		},
		{
			"Texts", `{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`,
			assay.Message{Content: "ab"},
			"",
		},
		{
			"EqualIDs", `{"content":[{"type":"tool_use","id":"x","name":"a","input":{}},` +
				`{"type":"tool_use","id":"x","name":"b","input":{}}]}`,
			assay.Message{Calls: []assay.ToolCall{
				{ID: "x", Name: "a", Arguments: "{}"}, {ID: "call_1_1", Name: "b", Arguments: "{}"},
			}},
			"",
		},
		{
			"InputAsText",
			`{"content":[{"type":"tool_use","id":"x","name":"a","input":"{\"p\":1}"}]}`,
			assay.Message{Calls: []assay.ToolCall{{ID: "x", Name: "a", Arguments: `{"p":1}`}}},
			"",
		},
		{
			"OddUsage", `{"content":[{"type":"text","text":"a"}],"usage":{"input_tokens":"many"}}`,
			assay.Message{Content: "a"},
			"",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resp, err := always(test.body).provider(t).Chat(t.Context(), new(hi()))
			var kind assay.FaultKind
			if f := assay.AsFault(err); f != nil {
				kind = f.Kind
			}
			if kind != test.fault {
				t.Fatalf("Chat() = %+v, %v; want a fault of kind %q", resp, err, test.fault)
			}
			if err != nil {
				return
			}
			test.want.Role = assay.Assistant
			if d := cmp.Diff(test.want, resp.Message); d != "" {
				t.Errorf("message differs (-want +got):\n%s", d)
			}
		})
	}
}
