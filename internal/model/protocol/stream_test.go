package protocol_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
)

const longArguments = `{"text":"three äöü and more than a piece"}`

// twoCalls is a reply with a text and two parallel calls.
func twoCalls() gateway.Reply {
	r := gateway.Reply{ID: 10, Model: "m"}
	r.Usage = assay.Usage{InputTokens: 20, OutputTokens: 3}
	r.Message = assay.Message{Role: assay.Assistant, Content: "Look.", Calls: []assay.ToolCall{
		{ID: "c1", Name: "find", Arguments: longArguments},
		{ID: "c2", Name: "list", Arguments: "{}"},
	}}
	return r
}

// eventsOf returns the events of a stream, decoded.
func eventsOf(t *testing.T, d gateway.Dialect, r gateway.Reply) (all []map[string]any) {
	t.Helper()
	for _, e := range d.Events(&gateway.Prompt{Counted: true}, r) {
		if string(e.Data) == "[DONE]" {
			continue
		}
		doc := make(map[string]any)
		if err := json.Unmarshal(e.Data, &doc); err != nil {
			t.Fatalf("%s: %v", e.Data, err)
		}
		if e.Name != "" && e.Name != doc["type"] {
			t.Errorf("event %s has type %v", e.Name, doc["type"])
		}
		all = append(all, doc)
	}
	return all
}

// A client that reads the first call of each chunk reads all calls, as with OpenAI.
func TestChatStreamsOneCallAChunk(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range eventsOf(t, protocol.Dialects("")[0], twoCalls()) {
		for _, c := range e["choices"].([]any) {
			b, _ := json.Marshal(c.(map[string]any)["delta"])
			got = append(got, string(b))
		}
	}
	want := []string{
		`{"content":"","refusal":null,"role":"assistant"}`,
		`{"content":"Look."}`,
		`{"tool_calls":[{"function":{"arguments":"","name":"find"},"id":"c1","index":0,` +
			`"type":"function"}]}`,
		`{"tool_calls":[{"function":{"arguments":"{\"text\":\"three äöü and m"},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":"ore than a piece\"}"},"index":0}]}`,
		`{"tool_calls":[{"function":{"arguments":"","name":"list"},"id":"c2","index":1,` +
			`"type":"function"}]}`,
		`{"tool_calls":[{"function":{"arguments":"{}"},"index":1}]}`,
		`{}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("deltas (-want +got):\n%s", diff)
	}
}

// Messages names each block, fills it, and closes it before the next.
func TestMessagesStreamBlockByBlock(t *testing.T) {
	t.Parallel()
	var got []string
	for _, e := range eventsOf(t, protocol.Dialects("")[3], twoCalls()) {
		line := e["type"].(string)
		for _, part := range []string{"index", "content_block", "delta", "usage"} {
			if e[part] != nil {
				b, _ := json.Marshal(e[part])
				line += " " + string(b)
			}
		}
		got = append(got, line)
		if m, _ := e["message"].(map[string]any); m != nil {
			u := m["usage"].(map[string]any)
			if u["input_tokens"] != 20.0 || u["output_tokens"] != 0.0 {
				t.Errorf("the usage of the beginning is %v, want the input alone", u)
			}
		}
	}
	got[len(got)-2], _, _ = strings.Cut(got[len(got)-2], ` {"cache`)
	want := []string{
		`message_start`,
		`content_block_start 0 {"text":"","type":"text"}`,
		`content_block_delta 0 {"text":"Look.","type":"text_delta"}`,
		`content_block_stop 0`,
		`content_block_start 1 {"id":"c1","input":{},"name":"find","type":"tool_use"}`,
		`content_block_delta 1 {"partial_json":"{\"text\":\"three äöü and m",` +
			`"type":"input_json_delta"}`,
		`content_block_delta 1 {"partial_json":"ore than a piece\"}","type":"input_json_delta"}`,
		`content_block_stop 1`,
		`content_block_start 2 {"id":"c2","input":{},"name":"list","type":"tool_use"}`,
		`content_block_delta 2 {"partial_json":"{}","type":"input_json_delta"}`,
		`content_block_stop 2`,
		`message_delta {"stop_reason":"tool_use","stop_sequence":null}`,
		`message_stop`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Responses adds an empty item or part, to which clients append the rest, and repeats it whole in
// the end.
func TestResponsesStreamItemByItem(t *testing.T) {
	t.Parallel()
	events := eventsOf(t, protocol.Dialects("")[2], twoCalls())
	var got []string
	for i, e := range events {
		if e["sequence_number"] != float64(i) {
			t.Errorf("event %d has number %v", i, e["sequence_number"])
		}
		line := strings.TrimPrefix(e["type"].(string), "response.")
		for _, part := range []string{
			"output_index", "item_id", "item", "part", "delta", "text", "name", "arguments",
		} {
			if e[part] != nil {
				b, _ := json.Marshal(e[part])
				line += " " + string(b)
			}
		}
		got = append(got, line)
	}
	begun := events[0]["response"].(map[string]any)
	if begun["status"] != "in_progress" || begun["usage"] != nil {
		t.Errorf("the beginning is %v, want it without usage", begun)
	}
	want := []string{
		`created`, `in_progress`,
		`output_item.added 0 {"content":[],"id":"msg_a","role":"assistant",` +
			`"status":"in_progress","type":"message"}`,
		`content_part.added 0 "msg_a" {"annotations":[],"text":"","type":"output_text"}`,
		`output_text.delta 0 "msg_a" "Look."`,
		`output_text.done 0 "msg_a" "Look."`,
		`content_part.done 0 "msg_a" {"annotations":[],"text":"Look.","type":"output_text"}`,
		`output_item.done 0 {"content":[{"annotations":[],"text":"Look.","type":"output_text"}],` +
			`"id":"msg_a","role":"assistant","status":"completed","type":"message"}`,
		`output_item.added 1 {"arguments":"","call_id":"c1","id":"fc_a0","name":"find",` +
			`"status":"in_progress","type":"function_call"}`,
		`function_call_arguments.delta 1 "fc_a0" "{\"text\":\"three äöü and m"`,
		`function_call_arguments.delta 1 "fc_a0" "ore than a piece\"}"`,
		`function_call_arguments.done 1 "fc_a0" "find" ` + quoted(longArguments),
		`output_item.done 1 {"arguments":` + quoted(longArguments) + `,"call_id":"c1",` +
			`"id":"fc_a0","name":"find","status":"completed","type":"function_call"}`,
		`output_item.added 2 {"arguments":"","call_id":"c2","id":"fc_a1","name":"list",` +
			`"status":"in_progress","type":"function_call"}`,
		`function_call_arguments.delta 2 "fc_a1" "{}"`,
		`function_call_arguments.done 2 "fc_a1" "list" "{}"`,
		`output_item.done 2 {"arguments":"{}","call_id":"c2","id":"fc_a1","name":"list",` +
			`"status":"completed","type":"function_call"}`,
		`completed`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// A refusal is a refusal in the stream, too.
func TestResponsesStreamRefusal(t *testing.T) {
	t.Parallel()
	r := gateway.Reply{ID: 10, Model: "m"}
	r.Message.Content, r.Finish = "I won't.", "refusal"
	for _, e := range eventsOf(t, protocol.Dialects("")[2], r) {
		if e["type"] == "response.refusal.done" {
			if e["refusal"] != "I won't." {
				t.Errorf("the refusal is %v", e)
			}
			return
		}
	}
	t.Error("there is no refusal")
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
