package responses

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Events sends the items one after the other.
func (Dialect) Events(_ *gateway.Prompt, r gateway.Reply) []gateway.Event {
	whole, _ := Dialect{}.Encode(r).(reply)
	s := &stream{}
	begun := whole
	begun.Output, begun.Status = json.RawMessage("[]"), "in_progress"
	begun.Usage, begun.Incomplete = nil, nil
	s.send("created", map[string]any{"response": begun})
	s.send("in_progress", map[string]any{"response": begun})
	for i, item := range itemsOf(r) {
		s.item(i, &item)
	}
	s.send(whole.Status, map[string]any{"response": whole})
	return s.events
}

// stream numbers the events of a stream.
type stream struct{ events []gateway.Event }

func (s *stream) send(name string, fields map[string]any) {
	name = "response." + name
	fields["type"], fields["sequence_number"] = name, len(s.events)
	s.events = append(s.events, gateway.Event{Name: name, Data: gateway.Encode(fields)})
}

func (s *stream) item(i int, item *item) {
	open := *item
	if open.Status != "" {
		open.Status = "in_progress"
	}
	switch item.Type {
	case "message":
		open.Content = []contentPart{}
	case "function_call":
		open.Arguments = json.RawMessage(`""`)
	}
	s.send("output_item.added", map[string]any{"output_index": i, "item": open})
	send := func(name string, more map[string]any) {
		more["output_index"], more["item_id"] = i, item.ID
		s.send(name, more)
	}
	parts, _ := item.Content.([]contentPart)
	for j := range parts {
		part := &parts[j]
		part.stream(func(name string, more map[string]any) {
			more["content_index"] = j
			send(name, more)
		})
	}
	if item.Arguments != nil {
		arguments := wire.TextOf(item.Arguments)
		for _, piece := range gateway.Pieces(arguments) {
			send("function_call_arguments.delta", map[string]any{"delta": piece})
		}
		send("function_call_arguments.done", map[string]any{
			"arguments": arguments, "name": item.Name,
		})
	}
	s.send("output_item.done", map[string]any{"output_index": i, "item": item})
}

// stream sends the events of a part of a message.
func (t *contentPart) stream(send func(name string, more map[string]any)) {
	kind, field, text, empty := "output_text", "text", t.Text, outputText("")
	if t.Refusal != nil {
		kind, field, text = "refusal", "refusal", t.Refusal
		empty = contentPart{Type: kind, Refusal: new(string)}
	}
	done := map[string]any{field: text}
	delta := map[string]any{"delta": text}
	if kind == "output_text" {
		done["logprobs"], delta["logprobs"] = []any{}, []any{}
	}
	send("content_part.added", map[string]any{"part": empty})
	send(kind+".delta", delta)
	send(kind+".done", done)
	send("content_part.done", map[string]any{"part": t})
}
