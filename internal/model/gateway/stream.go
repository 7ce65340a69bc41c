package gateway

import (
	"encoding/json"
)

// An Event is one event of a stream. Its name can be empty.
type Event struct {
	Name string
	Data []byte
}

// AppendEvents appends events as a text/event-stream has them.
func AppendEvents(b []byte, events []Event) []byte {
	for _, e := range events {
		if e.Name != "" {
			b = append(append(append(b, "event: "...), e.Name...), '\n')
		}
		b = append(append(append(b, "data: "...), e.Data...), "\n\n"...)
	}
	return b
}

// Events sends the message in one chunk and the end in another. The usage comes last, in a chunk
// without a choice, if the request asks for it.
func (c chat) Events(p *Prompt, r Reply) []Event {
	whole := newCompletion(r, c.thinking)
	type delta struct {
		replyMessage
		Calls []indexedCall `json:"tool_calls,omitempty"`
	}
	type choice struct {
		Index  int     `json:"index"`
		Delta  any     `json:"delta"`
		Finish *string `json:"finish_reason"`
	}
	type chunk struct {
		ID      string           `json:"id"`
		Object  string           `json:"object"`
		Created int64            `json:"created"`
		Model   string           `json:"model"`
		Choices []choice         `json:"choices"`
		Usage   *completionUsage `json:"usage,omitempty"`
	}
	var events []Event
	send := func(usage *completionUsage, choices ...choice) {
		if choices == nil {
			choices = []choice{}
		}
		c := chunk{whole.ID, "chat.completion.chunk", whole.Created, whole.Model, choices, usage}
		events = append(events, Event{Data: encode(c)})
	}
	for _, one := range whole.Choices {
		d := delta{replyMessage: one.Message}
		for i, call := range one.Message.ToolCalls {
			d.Calls = append(d.Calls, indexedCall{i, call})
		}
		send(nil, choice{Delta: d})
		send(nil, choice{Delta: struct{}{}, Finish: &one.FinishReason})
	}
	if p.Counted {
		send(&whole.Usage)
	}
	return append(events, Event{Data: []byte("[DONE]")})
}

// indexedCall is a call in a chunk.
type indexedCall struct {
	Index int `json:"index"`
	chatCall
}

// Events sends each block in one delta.
func (anthropic) Events(_ *Prompt, r Reply) []Event {
	whole, _ := anthropic{}.Encode(r).(anthropicReply)
	start := whole
	start.Content, start.StopReason = []anthropicBlock{}, ""
	type fields map[string]any
	var events []Event
	send := func(name string, f fields) {
		if f == nil {
			f = fields{}
		}
		f["type"] = name
		events = append(events, Event{name, encode(f)})
	}
	message := fields{}
	_ = json.Unmarshal(encode(start), &message)
	message["stop_reason"] = nil
	send("message_start", fields{"message": message})
	for i, b := range whole.Content {
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

// parts returns a block as it begins in a stream, and what is added to it.
func (b anthropicBlock) parts() (opening any, deltas []map[string]any) {
	switch b.Type {
	case "tool_use":
		opening = map[string]any{
			"type": b.Type, "id": b.ID, "name": b.Name, "input": struct{}{},
		}
		return opening, []map[string]any{
			{"type": "input_json_delta", "partial_json": string(b.Input)},
		}
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

// Events sends each item in one delta.
func (responses) Events(_ *Prompt, r Reply) []Event {
	whole, _ := responses{}.Encode(r).(responsesReply)
	s := &responsesStream{}
	begun := whole
	begun.Output, begun.Status = []responsesItem{}, "in_progress"
	s.send("response.created", map[string]any{"response": begun})
	s.send("response.in_progress", map[string]any{"response": begun})
	for i, item := range whole.Output {
		s.item(i, item)
	}
	s.send("response."+whole.Status, map[string]any{"response": whole})
	return s.events
}

// responsesStream numbers the events of a stream.
type responsesStream struct{ events []Event }

func (s *responsesStream) send(name string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = name, len(s.events)
	s.events = append(s.events, Event{name, encode(fields)})
}

func (s *responsesStream) item(i int, item responsesItem) {
	send := func(name string, more map[string]any) {
		more["output_index"], more["item_id"] = i, item.ID
		s.send("response."+name, more)
	}
	open := item
	open.Status = "in_progress"
	switch item.Type {
	case "message":
		open.Content = []responsesText{}
	case "function_call":
		open.Arguments = new(string)
	}
	send("output_item.added", map[string]any{"item": open})
	parts, _ := item.Content.([]responsesText)
	for j, part := range parts {
		kind, empty, text := "output_text", responsesText{Type: part.Type}, part.Text
		if part.Refusal != nil {
			kind, empty.Refusal, text = "refusal", new(string), *part.Refusal
		}
		send("content_part.added", map[string]any{"content_index": j, "part": empty})
		send(kind+".delta", map[string]any{"content_index": j, "delta": text})
		send(kind+".done", map[string]any{"content_index": j, "text": text})
		send("content_part.done", map[string]any{"content_index": j, "part": part})
	}
	if item.Arguments != nil {
		send("function_call_arguments.delta", map[string]any{"delta": *item.Arguments})
		send("function_call_arguments.done", map[string]any{
			"arguments": *item.Arguments, "name": item.Name,
		})
	}
	send("output_item.done", map[string]any{"item": item})
}

// Events sends the whole reply in one event.
func (gemini) Events(_ *Prompt, r Reply) []Event {
	return []Event{{Data: encode(gemini{}.Encode(r))}}
}
