package openai_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// canned is a transport that always returns the same response.
type canned struct {
	status int
	header http.Header
	body   string
}

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: c.status, Header: c.header.Clone(),
		Body: io.NopCloser(strings.NewReader(c.body)),
	}, nil
}

func FuzzReply(f *testing.F) {
	f.Add(200, hello, "")
	f.Add(200, `{"choices":[{"message":{"content":[{"text":"a"}],"tool_calls":[{"function":{}}]}}]}`, "")
	f.Add(200, `{"choices":[{"message":{"reasoning_content":"x","refusal":1}}],"error":null}`, "")
	f.Add(200, `{"error":{"code":429,"message":"slow"}}`, "1")
	f.Add(200, `{"choices":{"0":[]},"usage":{"prompt_tokens":1e99}}`, "")
	f.Add(400, `{"error":{"message":"Unsupported parameter: 'temperature'","param":"temperature"}}`, "")
	f.Add(429, `[{"error":{}}]`, "Mon, 02 Jan 2006 15:04:05 GMT")
	f.Add(503, `<html>`, "1e999")
	f.Fuzz(func(t *testing.T, status int, body, retryAfter string) {
		p, err := openai.Protocol.New(wire.Config{
			Deployment: "m",
			Client: &http.Client{Transport: canned{status, http.Header{
				"Content-Type": {"application/json"}, "Retry-After": {retryAfter},
			}, body}},
		})
		if err != nil {
			t.Fatal(err)
		}
		req := wiretest.Hi()
		req.Sampling = all()
		resp, err := p.Chat(t.Context(), &req)
		var fault *assay.Fault
		switch {
		case err == nil:
			m := resp.Message
			empty := strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0
			spent := resp.Finish != "" || resp.Usage.OutputTokens > 0
			if m.Role != assay.Assistant || empty && !spent {
				t.Errorf("Chat() = %+v, want a message", m)
			}
			for _, c := range resp.Message.Calls {
				if c.ID == "" {
					t.Error("a call without an ID")
				}
			}
		case !errors.As(err, &fault) || err != error(fault):
			t.Errorf("Chat() = %v (%T), want a fault", err, err)
		case len(fault.Detail) > 300 || fault.RetryAfter < 0:
			t.Errorf("fault = %+v", fault)
		}
	})
}

func BenchmarkChat(b *testing.B) {
	p, err := openai.Protocol.New(wire.Config{
		Deployment: "m",
		Client:     &http.Client{Transport: canned{200, headers(), hello}},
		Key:        wire.NewSecret("sk-0123456789"),
	})
	if err != nil {
		b.Fatal(err)
	}
	read := assay.Function{Name: "read", Parameters: []byte(`{"type":"object"}`)}
	req := assay.Request{Model: "m", Functions: []assay.Function{read}}
	for range 10 {
		message := assay.Message{Role: assay.User, Content: strings.Repeat("word ", 100)}
		req.Messages = append(req.Messages, message)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Chat(b.Context(), &req); err != nil {
			b.Fatal(err)
		}
	}
}
