package anthropic_test

import (
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
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const hello = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x-20260101",
	"content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","stop_sequence":null,
	"usage":{"input_tokens":11,"output_tokens":3}}`

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
	req := wiretest.Hi()
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
		req := wiretest.Hi()
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
	req := wiretest.Hi()
	req.Sampling = assay.Sampling{
		Temperature: new(0.0), TopP: new(1.0), Seed: new(int64(1)), Thinking: new(2048),
	}
	want := []string{"temperature", "top_p", "seed"}
	if d := cmp.Diff(want, p.Omits(req)); d != "" {
		t.Errorf("Omits() differs (-want +got):\n%s", d)
	}
}
