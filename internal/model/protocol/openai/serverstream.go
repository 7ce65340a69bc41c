package openai

import "github.com/assay-eval/assay/internal/model/gateway"

// Events sends the role first, then the text, and each call in separate chunks: its name, then its
// arguments. The usage comes last, in a chunk without a choice, if the request asks for it.
func (c Dialect) Events(p *gateway.Prompt, r gateway.Reply) []gateway.Event {
	s := chatStream{whole: newCompletion(r, c.Thinking), counted: p.Counted}
	for i := range s.whole.Choices {
		one := &s.whole.Choices[i]
		s.message(&one.Message)
		s.delta(fields{}, one.FinishReason)
	}
	if p.Counted {
		s.chunk([]fields{}, &s.whole.Usage)
	}
	return append(s.events, gateway.Event{Data: []byte("[DONE]")})
}

// chatStream collects the chunks of a completion.
type chatStream struct {
	whole   completion
	counted bool
	events  []gateway.Event
}

type fields map[string]any

func (s *chatStream) chunk(choices []fields, usage *usage) {
	doc := fields{
		"id": s.whole.ID, "object": "chat.completion.chunk", "created": s.whole.Created,
		"model": s.whole.Model, "choices": choices,
	}
	if s.counted {
		doc["usage"] = usage // null until the last chunk
	}
	s.events = append(s.events, gateway.Event{Data: gateway.Encode(doc)})
}

// delta sends the fields that a chunk adds to the message.
func (s *chatStream) delta(d fields, finish any) {
	s.chunk([]fields{{"index": 0, "delta": d, "logprobs": nil, "finish_reason": finish}}, nil)
}

func (s *chatStream) message(m *reply) {
	opening := fields{"role": m.Role, "content": nil, "refusal": nil}
	if m.Content != nil {
		opening["content"] = ""
	}
	s.delta(opening, nil)
	if m.thoughts.Content != nil {
		s.delta(fields{"reasoning_content": m.thoughts.Content}, nil)
	}
	if m.Details != nil {
		s.delta(fields{"reasoning_details": m.Details}, nil)
	}
	if m.Content != nil && string(m.Content) != `""` {
		s.delta(fields{"content": m.Content}, nil)
	}
	if m.Refusal != nil {
		s.delta(fields{"refusal": m.Refusal}, nil)
	}
	for i, call := range m.Calls {
		s.call(i, call)
	}
}

func (s *chatStream) call(i int, c call) {
	send := func(call fields) {
		call["index"] = i
		s.delta(fields{"tool_calls": []fields{call}}, nil)
	}
	first := fields{
		"id": c.ID, "type": c.Type, "function": fields{"name": c.Function.Name, "arguments": ""},
	}
	if c.Extra != nil {
		first["extra_content"] = c.Extra
	}
	send(first)
	for _, piece := range gateway.Pieces(string(c.Function.Arguments)) {
		send(fields{"function": fields{"arguments": piece}})
	}
}
