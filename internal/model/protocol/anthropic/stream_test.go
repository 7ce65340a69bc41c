package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/protocol/anthropic"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// TestStream checks that a reply that arrives as events is read like the whole reply.
func TestStream(t *testing.T) {
	t.Parallel()
	const whole = `{"type":"message","role":"assistant","model":"claude-x","content":[
		{"type":"thinking","thinking":"I look <here>","signature":"Eq+/=="},
		{"type":"text","text":"Reading."},
		{"type":"tool_use","id":"x","name":"read","input":{"b":1.0,"a":"é"}}],
		"stop_reason":"tool_use",
		"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":9}}`
	piece := func(index int, delta string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{%s}}`, index, delta)
	}
	begin := func(index int, block string) string {
		const format = `{"type":"content_block_start","index":%d,"content_block":{%s}}`
		return fmt.Sprintf(format, index, block)
	}
	events := []string{
		`{"type":"message_start","message":{"type":"message","role":"assistant",` +
			`"model":"claude-x","content":[],"stop_reason":null,` +
			`"usage":{"input_tokens":5,"cache_read_input_tokens":7,"output_tokens":1}}}`,
		begin(0, `"type":"thinking","thinking":"","signature":""`),
		`{"type":"ping"}`,
		piece(0, `"type":"thinking_delta","thinking":"I look"`),
		piece(0, `"type":"thinking_delta","thinking":" <here>"`),
		piece(0, `"type":"signature_delta","signature":"Eq+/=="`),
		`{"type":"content_block_stop","index":0}`,
		begin(1, `"type":"text","text":"Read"`),
		piece(1, `"type":"text_delta","text":"ing."`),
		begin(2, `"type":"tool_use","id":"x","name":"read","input":{}`),
		piece(2, `"type":"input_json_delta","partial_json":"{\"b\":1.0,"`),
		piece(2, `"type":"input_json_delta","partial_json":"\"a\":\"é\"}"`),
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}`,
		`{"type":"message_stop"}`,
	}
	want, err := always(whole).Provider(t, anthropic.Protocol).Chat(t.Context(), new(wiretest.Hi()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := always(stream(events)).Provider(t, anthropic.Protocol).Chat(t.Context(), new(wiretest.Hi()))
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

	for _, n := range []int{3, 10, len(events) - 2} {
		_, err := always(stream(events[:n])).Provider(t, anthropic.Protocol).Chat(t.Context(), new(wiretest.Hi()))
		if f := assay.AsFault(err); f == nil || f.Kind != assay.Malformed {
			t.Errorf("after %d events, Chat() = %v, want a malformed reply", n, err)
		}
	}
	const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Busy"}}`
	broken := stream(append(events[:5:5], overloaded))
	_, err = always(broken).Provider(t, anthropic.Protocol).Chat(t.Context(), new(wiretest.Hi()))
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

func always(body string) *wiretest.Canned { return &wiretest.Canned{Body: body} }
