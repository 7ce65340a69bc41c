package protocol_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/model/wire"
)

// A tape is a transport that writes requests down and fails.
type tape struct{ bytes.Buffer }

var errTape = errors.New("no reply")

func (t *tape) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(t, "%s %s\n", r.Method, r.URL)
	err = r.Header.Write(t)
	t.WriteString("\n" + inLines(body) + "\n\n")
	return nil, errors.Join(err, errTape)
}

// inLines breaks a document after each field, and after each entry of its lists.
func inLines(doc []byte) string {
	var b strings.Builder
	depth, quoted := 0, false
	for i, c := range doc {
		b.WriteByte(c)
		switch {
		case c == '"' && doc[i-1] != '\\':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		case c == ',' && depth <= 2:
			b.WriteString("\n" + strings.Repeat("  ", depth))
		}
	}
	return b.String()
}

// send returns the request that a protocol sends, with its settings, as text.
func (c column) send(t *testing.T, cfg wire.Config, req assay.Request) string {
	t.Helper()
	sent := &tape{}
	cfg.Client, cfg.Key = &http.Client{Transport: sent}, wire.NewSecret(key)
	p, err := c.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Chat(t.Context(), &req); !errors.Is(err, errTape) {
		t.Fatalf("Chat() = %v, want the error of the transport", err)
	}
	return sent.String()
}

// full has everything that a request can have, also what no endpoint would accept: calls with
// broken arguments or odd names, and an empty reply.
var full = assay.Request{
	Model: "small",
	Messages: []assay.Message{
		{Role: assay.System, Content: "be brief"},
		{Role: assay.User, Content: "hi"},
		{Role: assay.Assistant, Content: "well", Reasoning: "never sent", Calls: []assay.ToolCall{
			{ID: "a", Name: "read", Arguments: `{"path": "a<b"}`},
			{ID: "b", Name: "read", Arguments: ``},
			{ID: "c", Name: "2 reads!", Arguments: `{"path":`},
			{ID: "call_2_3", Name: "", Arguments: `["path"]`},
		}},
		{Role: assay.ToolRole, CallID: "a", Content: "<1>"},
		{Role: assay.ToolRole, CallID: "b", Content: "2"},
		{Role: assay.ToolRole, CallID: "c", Content: "3"},
		{Role: assay.ToolRole, CallID: "call_2_3", Content: "4"},
		{Role: assay.User, Content: "go on"},
		{Role: assay.Assistant},
		{Role: assay.System, Content: "do"},
		{Role: assay.User, Content: " \n"},
	},
	Functions: []assay.Function{
		{
			Name: "read", Description: "reads",
			Parameters: json.RawMessage(`{"z":{},"type":"object","maximum":12345678901234567890,"a":2.0}`),
		},
		{Name: "stop"},
	},
	Sampling: assay.Sampling{
		Temperature: new(0.5), TopP: new(0.9), MaxTokens: new(64), Seed: new(int64(-7)),
		ToolChoice: "required", Extra: ` {"top_k": 40, "generationConfig": {"topK": 5}, "reasoning": {"summary": "auto"}} `,
	},
}

// TestRequestOnTheWire checks whole requests. The flag -update writes the files.
func TestRequestOnTheWire(t *testing.T) {
	t.Parallel()
	thinking := assay.Request{Messages: full.Messages[1:2], Sampling: full.Sampling}
	thinking.Sampling.Effort, thinking.Sampling.Thinking = "high", new(2048)
	without := thinking
	without.Sampling = assay.Sampling{Thinking: new(0)}
	for _, c := range columns {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			cfg := wire.Config{Deployment: "small-east", Header: http.Header{"X-Route": {"b"}}}
			if c.Versioned {
				cfg.BaseURL, cfg.APIVersion = "https://a.example", "2025-04-01-preview"
			}
			var got string
			for _, req := range []assay.Request{full, thinking, without} {
				got += c.send(t, cfg, req)
			}
			golden.Assert(t, got, "requests/"+c.Name+".txt")
		})
	}
}

// TestAddress checks where requests go.
func TestAddress(t *testing.T) {
	t.Parallel()
	const home = "https://a.example"
	for _, tc := range []struct{ name, base, deployment, want string }{
		{protocol.OpenAI, home + "/v1/", "m", home + "/v1/chat/completions"},
		{
			protocol.Azure, home, "DeepSeek V3/2",
			home + "/openai/deployments/DeepSeek%20V3%2F2/chat/completions?api-version=v",
		},
		{protocol.Responses, home + "/v1", "m", home + "/v1/responses"},
		{protocol.Anthropic, home, "m", home + "/v1/messages"},
		{protocol.Anthropic, home + "/v1", "m", home + "/v1/messages"},
		{protocol.Gemini, home, "gemini-x", home + "/models/gemini-x:generateContent"},
		{protocol.Gemini, home, "models/gemini-x", home + "/models/gemini-x:generateContent"},
		{protocol.Gemini, home, "tunedModels/x-1", home + "/tunedModels/x-1:generateContent"},
		{protocol.Gemini, home, "a/b c", home + "/models/a%2Fb%20c:generateContent"},
	} {
		cfg := wire.Config{BaseURL: tc.base, Deployment: tc.deployment}
		if tc.name == protocol.Azure {
			cfg.APIVersion = "v"
		}
		sent := column{Protocol: find(tc.name)}.send(t, cfg, question())
		if line := "POST " + tc.want + "\n"; sent[:min(len(sent), len(line))] != line {
			t.Errorf("%s: %q at %s is requested with %.99s", tc.name, tc.deployment, tc.base, sent)
		}
	}
}
