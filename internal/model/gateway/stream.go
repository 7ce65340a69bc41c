package gateway

import (
	"encoding/json"
	"slices"
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

// pieceLength is the length of a piece of arguments, in characters.
const pieceLength = 24

// pieces cuts a text into the pieces that a stream sends.
func pieces(text string) []string {
	var all []string
	for part := range slices.Chunk([]rune(text), pieceLength) {
		all = append(all, string(part))
	}
	return all
}

// Events sends the role first, then the text, and each call in chunks of its own: its name, then
// its arguments. The usage comes last, in a chunk without a choice, if the request asks for it.
func (c chat) Events(p *Prompt, r Reply) []Event {
	s := chatStream{whole: newCompletion(r, c.thinking), counted: p.Counted}
	for _, one := range s.whole.Choices {
		s.message(&one.Message)
		s.send(chatChoice{Delta: struct{}{}, Finish: &one.FinishReason})
	}
	if p.Counted {
		s.chunk([]chatChoice{}, &s.whole.Usage)
	}
	return append(s.events, Event{Data: []byte("[DONE]")})
}

// chatStream collects the chunks of a completion.
type chatStream struct {
	whole   completion
	counted bool
	events  []Event
}

type chatChoice struct {
	Index    int       `json:"index"`
	Delta    any       `json:"delta"`
	Logprobs *struct{} `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
}

// chatDelta is what a chunk adds to a message.
type chatDelta struct {
	Role      string       `json:"role,omitempty"`
	Content   any          `json:"content,omitempty"`
	Reasoning string       `json:"reasoning_content,omitempty"`
	Details   []chatDetail `json:"reasoning_details,omitempty"`
	Refusal   *string      `json:"refusal,omitempty"`
	Calls     []callDelta  `json:"tool_calls,omitempty"`
}

// callDelta is the beginning of a call, or a piece of its arguments.
type callDelta struct {
	Index    int    `json:"index"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Extra *chatExtra `json:"extra_content,omitempty"`
}

func (s *chatStream) chunk(choices []chatChoice, usage *completionUsage) {
	doc := map[string]any{
		"id": s.whole.ID, "object": "chat.completion.chunk", "created": s.whole.Created,
		"model": s.whole.Model, "choices": choices,
	}
	if s.counted {
		doc["usage"] = usage // null until the last chunk
	}
	s.events = append(s.events, Event{Data: encode(doc)})
}

func (s *chatStream) send(c chatChoice)  { s.chunk([]chatChoice{c}, nil) }
func (s *chatStream) delta(d *chatDelta) { s.send(chatChoice{Delta: d}) }

func (s *chatStream) message(m *replyMessage) {
	s.send(chatChoice{Delta: map[string]any{
		"role": m.Role, "content": opening(m.Content), "refusal": nil,
	}})
	if m.Reasoning != "" || len(m.Details) > 0 {
		s.delta(&chatDelta{Reasoning: m.Reasoning, Details: m.Details})
	}
	if m.Content != nil && m.Content != "" {
		s.delta(&chatDelta{Content: m.Content})
	}
	if m.Refusal != nil {
		s.delta(&chatDelta{Refusal: m.Refusal})
	}
	for i, call := range m.ToolCalls {
		s.call(i, call)
	}
}

// opening returns the content of the first chunk: null if there is no text.
func opening(content any) any {
	if content == nil {
		return nil
	}
	return ""
}

func (s *chatStream) call(i int, call chatCall) {
	first := callDelta{Index: i, ID: call.ID, Type: call.Type, Extra: call.Extra}
	first.Function.Name = call.Function.Name
	s.delta(&chatDelta{Calls: []callDelta{first}})
	for _, piece := range pieces(call.Function.Arguments) {
		next := callDelta{Index: i}
		next.Function.Arguments = piece
		s.delta(&chatDelta{Calls: []callDelta{next}})
	}
}

// Events sends the blocks one after the other. Only the end has the tokens of the output, because
// clients may add up the usage of the beginning and of the end.
func (anthropic) Events(_ *Prompt, r Reply) []Event {
	whole, _ := anthropic{}.Encode(r).(anthropicReply)
	start := whole
	start.Content, start.StopReason = []anthropicBlock{}, ""
	start.Usage.Output, start.Usage.Details.Thinking = 0, 0
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
		for _, piece := range pieces(string(b.Input)) {
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

// Events sends the items one after the other.
func (responses) Events(_ *Prompt, r Reply) []Event {
	whole, _ := responses{}.Encode(r).(responsesReply)
	s := &responsesStream{}
	begun := whole
	begun.Output, begun.Status = []responsesItem{}, "in_progress"
	begun.Usage, begun.Incomplete = nil, nil
	s.send("created", map[string]any{"response": begun})
	s.send("in_progress", map[string]any{"response": begun})
	for i := range whole.Output {
		s.item(i, &whole.Output[i])
	}
	s.send(whole.Status, map[string]any{"response": whole})
	return s.events
}

// responsesStream numbers the events of a stream.
type responsesStream struct{ events []Event }

func (s *responsesStream) send(name string, fields map[string]any) {
	name = "response." + name
	fields["type"], fields["sequence_number"] = name, len(s.events)
	s.events = append(s.events, Event{name, encode(fields)})
}

func (s *responsesStream) item(i int, item *responsesItem) {
	open := *item
	if open.Status != "" {
		open.Status = "in_progress"
	}
	switch item.Type {
	case "message":
		open.Content = []responsesText{}
	case "function_call":
		open.Arguments = new(string)
	}
	s.send("output_item.added", map[string]any{"output_index": i, "item": open})
	send := func(name string, more map[string]any) {
		more["output_index"], more["item_id"] = i, item.ID
		s.send(name, more)
	}
	parts, _ := item.Content.([]responsesText)
	for j := range parts {
		part := &parts[j]
		part.stream(func(name string, more map[string]any) {
			more["content_index"] = j
			send(name, more)
		})
	}
	if item.Arguments != nil {
		for _, piece := range pieces(*item.Arguments) {
			send("function_call_arguments.delta", map[string]any{"delta": piece})
		}
		send("function_call_arguments.done", map[string]any{
			"arguments": *item.Arguments, "name": item.Name,
		})
	}
	s.send("output_item.done", map[string]any{"output_index": i, "item": item})
}

// stream sends the events of a part of a message.
func (t *responsesText) stream(send func(name string, more map[string]any)) {
	kind, field, text, empty := "output_text", "text", t.Text, responsesOutputText("")
	if t.Refusal != nil {
		kind, field, text = "refusal", "refusal", t.Refusal
		empty = responsesText{Type: kind, Refusal: new(string)}
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

// Events sends the whole reply in one event.
func (gemini) Events(_ *Prompt, r Reply) []Event {
	return []Event{{Data: encode(gemini{}.Encode(r))}}
}
