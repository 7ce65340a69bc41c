package openai_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/openai"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
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

const hello = `{"id":"c1","object":"chat.completion","created":1,"model":"small-2025","choices":[
	{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}],
	"usage":{"prompt_tokens":11,"completion_tokens":3,"total_tokens":14}}`

// TestEnvironmentIsNotRead checks that settings for the SDK in the environment are ignored.
func TestEnvironmentIsNotRead(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "org-from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://elsewhere.invalid/")
	rec, p := record(t, hello, wire.Config{})
	if _, err := p.Chat(t.Context(), new(wiretest.Hi())); err != nil {
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

// TestChangedFunctionIsSent checks that a function that was modified in place is not taken
// from the cache.
func TestChangedFunctionIsSent(t *testing.T) {
	t.Parallel()
	rec, p := record(t, hello, wire.Config{})
	req := wiretest.Hi()
	req.Functions = []assay.Function{{Name: "a", Parameters: json.RawMessage(`{"x":1}`)}}
	for _, want := range []string{`{"x":1}`, `{"x":2}`} {
		copy(req.Functions[0].Parameters, want)
		if _, err := p.Chat(t.Context(), &req); err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(rec.rawBody, []byte(want)) {
			t.Errorf("sent %s, want the parameters %s", rec.rawBody, want)
		}
	}
}

// TestInvalidFunctionIsAHarnessFault checks that a request that cannot be encoded is not the
// endpoint's fault.
func TestInvalidFunctionIsAHarnessFault(t *testing.T) {
	t.Parallel()
	_, p := record(t, hello, wire.Config{})
	req := wiretest.Hi()
	req.Functions = []assay.Function{{Name: "a", Parameters: json.RawMessage(`{"x":`)}}
	_, err := p.Chat(t.Context(), &req)
	if f := assay.AsFault(err); f == nil || f.Kind != assay.Harness {
		t.Errorf("Chat() = %v, want a fault of kind harness", err)
	}
}
