package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
)

// TestStream checks that a reply that arrives as events is read like the whole reply.
func TestStream(t *testing.T) {
	t.Parallel()
	const whole = `{"type":"message","role":"assistant","model":"claude-x","content":[
		{"type":"thinking","thinking":"I look <here>","signature":"Eq+/=="},
		{"type":"text","text":"Reading."},
		{"type":"tool_use","id":"x","name":"read","input":{"b":1.0,"a":"é"}}],
		"stop_reason":"tool_use","usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":9}}`
	events := []string{
		`{"type":"message_start","message":{"type":"message","role":"assistant","model":"claude-x",` +
			`"content":[],"stop_reason":null,"usage":{"input_tokens":5,"cache_read_input_tokens":7,` +
			`"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` +
			`{"type":"thinking","thinking":"","signature":""}}`,
		`{"type":"ping"}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"I look"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":" <here>"}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq+/=="}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"Read"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"ing."}}`,
		`{"type":"content_block_start","index":2,"content_block":` +
			`{"type":"tool_use","id":"x","name":"read","input":{}}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"b\":1.0,"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"\"a\":\"é\"}"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	}
	want, err := (&canned{body: whole}).provider(t).Chat(t.Context(), hi())
	if err != nil {
		t.Fatal(err)
	}
	got, err := (&canned{body: stream(events)}).provider(t).Chat(t.Context(), hi())
	if err != nil {
		t.Fatal(err)
	}
	sameJSON := cmp.Transformer("JSON", func(raw json.RawMessage) (v any) {
		_ = json.Unmarshal(raw, &v)
		return v
	})
	if d := cmp.Diff(want, got, sameJSON, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("response differs (-whole +streamed):\n%s", d)
	}

	for n, kind := range map[int]assay.FaultKind{
		3: assay.Malformed, 10: assay.Malformed, len(events) - 2: assay.Malformed,
	} {
		resp, err := (&canned{body: stream(events[:n])}).provider(t).Chat(t.Context(), hi())
		if f := assay.AsFault(err); f == nil || f.Kind != kind {
			t.Errorf("after %d events, Chat() = %+v, %v; want a fault of kind %s", n, resp, err, kind)
		}
	}
	const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`
	_, err = (&canned{body: stream(append(events[:5:5], overloaded))}).provider(t).Chat(t.Context(), hi())
	if f := assay.AsFault(err); f == nil || f.Kind != assay.Overloaded {
		t.Errorf("after an error among the events, Chat() = %v", err)
	}
}

func stream(events []string) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "event: x\ndata: %s\n\n", e)
	}
	return b.String()
}
