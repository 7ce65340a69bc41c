package anthropic

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
)

// Events sends the blocks one after the other. Only the end has the tokens of the output, because
// clients may add up the usage of the beginning and of the end.
func (Dialect) Events(_ *gateway.Prompt, r gateway.Reply) []gateway.Event {
	whole, _ := Dialect{}.Encode(r).(reply)
	start := whole
	start.Content, start.StopReason = json.RawMessage("[]"), ""
	start.Usage.Output, start.Usage.OutputDetails.Thinking = 0, 0
	type fields map[string]any
	var events []gateway.Event
	send := func(name string, f fields) {
		if f == nil {
			f = fields{}
		}
		f["type"] = name
		events = append(events, gateway.Event{Name: name, Data: gateway.Encode(f)})
	}
	message := fields{}
	_ = json.Unmarshal(gateway.Encode(start), &message)
	message["stop_reason"] = nil
	send("message_start", fields{"message": message})
	for i, b := range contentOf(&r) {
		opening, deltas := b.parts()
		send("content_block_start", fields{"index": i, "content_block": opening})
		for _, d := range deltas {
			send("content_block_delta", fields{"index": i, "delta": d})
		}
		send("content_block_stop", fields{"index": i})
	}
	send("message_delta", fields{
		"delta": fields{"stop_reason": whole.StopReason, "stop_sequence": nil},
		"usage": whole.Usage,
	})
	send("message_stop", nil)
	return events
}

// parts returns a block as it begins in a stream, and the parts that are added to it.
func (b block) parts() (opening any, deltas []map[string]any) {
	switch b.Type {
	case "tool_use":
		opening = map[string]any{
			"type": b.Type, "id": b.ID, "name": b.Name, "input": struct{}{},
		}
		for _, piece := range gateway.Pieces(string(b.Input)) {
			deltas = append(deltas,
				map[string]any{"type": "input_json_delta", "partial_json": piece})
		}
		return opening, deltas
	case "thinking":
		deltas = []map[string]any{{"type": "thinking_delta", "thinking": b.Thinking}}
		if b.Signature != "" {
			deltas = append(deltas,
				map[string]any{"type": "signature_delta", "signature": b.Signature})
		}
		return map[string]any{"type": b.Type, "thinking": "", "signature": ""}, deltas
	}
	return map[string]any{"type": "text", "text": ""},
		[]map[string]any{{"type": "text_delta", "text": b.Text}}
}
