package simserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/model/simserver"
)

// conversation returns the body of a request with 10 messages, some with line breaks and
// quotes, and 3 functions.
func conversation() string {
	text := strings.Repeat("Read the \"inputs\", then call the tools in order.\n", 10)
	messages := []map[string]any{
		{"role": "system", "content": text}, {"role": "user", "content": text},
	}
	for i := range 4 {
		call := map[string]any{
			"id": fmt.Sprintf("call_%d", i), "type": "function",
			"function": map[string]any{"name": "read", "arguments": `{"path":"a.txt"}`},
		}
		messages = append(messages,
			map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}},
			map[string]any{
				"role": "tool", "tool_call_id": call["id"],
				"content": `{"status":"ok","output":"42"}`,
			})
	}
	path := map[string]any{"type": "string", "description": text[:80]}
	tools := make([]any, 3)
	for i := range tools {
		tools[i] = map[string]any{"type": "function", "function": map[string]any{
			"name": fmt.Sprintf("tool_%d", i), "description": text[:200],
			"parameters": map[string]any{
				"type": "object", "required": []string{"path"},
				"properties": map[string]any{"path": path},
			},
		}}
	}
	body, err := json.Marshal(map[string]any{
		"model": "sim/listed-2", "max_tokens": 512, "messages": messages, "tools": tools,
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// BenchmarkChat measures one exchange without a socket, which is the cost of the server
// itself.
func BenchmarkChat(b *testing.B) {
	s := newServer(b, simserver.Config{Limits: []simserver.Limit{{RPM: 1 << 30, TPM: 1 << 40}}})
	body := conversation()
	header := http.Header{
		"Authorization": {"Bearer " + goodKey}, "Content-Type": {"application/json"},
	}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := http.NewRequestWithContext(
			b.Context(), http.MethodPost, chatPath, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header = header
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			b.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
}
