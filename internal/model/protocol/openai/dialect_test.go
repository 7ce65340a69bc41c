package openai_test

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

func all() assay.Sampling {
	return assay.Sampling{Temperature: new(0.7), TopP: new(0.9), MaxTokens: new(64)}
}

func TestDialects(t *testing.T) {
	t.Parallel()
	full := map[string]any{"temperature": 0.7, "top_p": 0.9, "max_tokens": 64.0}
	bare := map[string]any{"max_completion_tokens": 64.0}
	tests := []struct {
		model, deployment string
		want              map[string]any
		omits             []string
	}{
		{"gpt-4o-mini", "gpt-4o-mini", full, nil},
		{"gpt-5-mini", "gpt-5-mini", bare, []string{"temperature", "top_p"}},
		{"gpt-5.1", "openai/GPT-5.1", bare, []string{"temperature", "top_p"}},
		{"gpt-5-mini", "my-deployment", bare, []string{"temperature", "top_p"}},
		{
			"gpt-5-chat-latest", "gpt-5-chat-latest",
			map[string]any{"temperature": 0.7, "top_p": 0.9, "max_completion_tokens": 64.0},
			nil,
		},
		{"o3", "o3-0416-global", bare, []string{"temperature", "top_p"}},
		{"o1", "o1", bare, []string{"temperature", "top_p"}},
		{"o4-mini", "o4-mini-0416-global", bare, []string{"temperature", "top_p"}},
		{"o3dd", "gpt-50", full, nil},
	}
	for _, test := range tests {
		t.Run(test.deployment, func(t *testing.T) {
			t.Parallel()
			rec, p := record(t, hello, wire.Config{Deployment: test.deployment})
			req := wiretest.Hi()
			req.Model, req.Sampling = test.model, all()
			if _, err := p.Chat(t.Context(), &req); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(test.want, sampling(rec.body)); d != "" {
				t.Errorf("sampling differs (-want +got):\n%s", d)
			}
			if d := cmp.Diff(test.omits, p.Omits(req)); d != "" {
				t.Errorf("Omits() differs (-want +got):\n%s", d)
			}
		})
	}
}

// sampling returns the sampling parameters of a request's body.
func sampling(body map[string]any) map[string]any {
	got := map[string]any{}
	for _, name := range []string{"temperature", "top_p", "max_tokens", "max_completion_tokens"} {
		if v, ok := body[name]; ok {
			got[name] = v
		}
	}
	return got
}

// picky is an endpoint that refuses some parameters.
type picky struct {
	refuses []string
	message func(param string) string

	mu       sync.Mutex
	requests []map[string]any // guarded by mu
}

func (h *picky) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	_ = json.NewDecoder(r.Body).Decode(&body)
	h.mu.Lock()
	h.requests = append(h.requests, sampling(body))
	h.mu.Unlock()
	for _, name := range h.refuses {
		if _, ok := body[name]; ok {
			writeJSON(w, 400, h.message(name))
			return
		}
	}
	writeJSON(w, 200, hello)
}

func TestRefusedParameterIsLearned(t *testing.T) {
	t.Parallel()
	messages := map[string]func(string) string{
		"Message": func(p string) string {
			return `{"error":{"message":"Unsupported parameter: '` + p + `' is not supported ` +
				`with this model. Use 'max_completion_tokens' instead.",` +
				`"type":"invalid_request_error","param":null,"code":null}}`
		},
		"Param": func(p string) string {
			return `{"error":{"message":"Only the default (1) is possible here.",` +
				`"type":"invalid_request_error","param":"` + p + `","code":"unsupported_value"}}`
		},
		"Argument": func(p string) string {
			return `{"error":{"message":"Unrecognized request argument supplied: ` + p + `"}}`
		},
	}
	for name, message := range messages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &picky{refuses: []string{"temperature", "max_tokens"}, message: message}
			p := serve(t, h, wire.Config{})
			req := wiretest.Hi()
			req.Sampling = all()
			for range 2 {
				if _, err := p.Chat(t.Context(), &req); err != nil {
					t.Fatal(err)
				}
			}
			last := map[string]any{"top_p": 0.9, "max_completion_tokens": 64.0}
			want := []map[string]any{
				{"temperature": 0.7, "top_p": 0.9, "max_tokens": 64.0},
				{"top_p": 0.9, "max_tokens": 64.0},
				last,
				last,
			}
			if d := cmp.Diff(want, h.requests); d != "" {
				t.Errorf("requests differ (-want +got):\n%s", d)
			}
			if d := cmp.Diff([]string{"temperature"}, p.Omits(req)); d != "" {
				t.Errorf("Omits() differs (-want +got):\n%s", d)
			}
		})
	}
}

// TestOtherBadRequestsTeachNothing checks that a bad request that only resembles a refused
// parameter is not repeated forever, and that no refusal is remembered.
func TestOtherBadRequestsTeachNothing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body     string
		requests int
	}{
		"BadValue": {
			`{"error":{"message":"temperature must be at most 2",
			"param":"temperature","code":"decimal_above_max_value"}}`,
			1,
		},
		"OtherParam": {
			`{"error":{"message":"Unsupported parameter in schema: 'temperature'","param":"tools[0]"}}`,
			1,
		},
		"NoParameter": {
			`{"error":{"message":"unknown tool for the temperature of rooms"}}`,
			1,
		},
		"RefusesAnyway": {
			`{"error":{"message":"Unsupported parameter: 'temperature'","param":"temperature"}}`,
			2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &picky{
				refuses: []string{"messages", "model"},
				message: func(string) string { return test.body },
			}
			p := serve(t, h, wire.Config{})
			req := wiretest.Hi()
			req.Sampling.Temperature = new(0.7)
			_, err := p.Chat(t.Context(), &req)
			if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest {
				t.Errorf("Chat() = %v, want a bad request", err)
			}
			if got := len(h.requests); got != test.requests {
				t.Errorf("%d requests, want %d", got, test.requests)
			}
			if got := p.Omits(req); got != nil {
				t.Errorf("Omits() = %q, want none", got)
			}
		})
	}
}
