package openai

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/model/gateway"
)

// Events sends the role first, then the text, and each call in chunks of its own: its name, then
// its arguments. The usage comes last, in a chunk without a choice, if the request asks for it.
func (c Dialect) Events(p *gateway.Prompt, r gateway.Reply) []gateway.Event {
	s := chatStream{whole: newChatCompletion(r, c.Thinking), counted: p.Counted}
	for _, one := range s.whole.Choices {
		s.message(&one.Message)
		s.send(chatChoice{Delta: struct{}{}, Finish: &one.FinishReason})
	}
	if p.Counted {
		s.chunk([]chatChoice{}, &s.whole.Usage)
	}
	return append(s.events, gateway.Event{Data: []byte("[DONE]")})
}

// chatStream collects the chunks of a completion.
type chatStream struct {
	whole   chatCompletion
	counted bool
	events  []gateway.Event
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
	Extra json.RawMessage `json:"extra_content,omitempty"`
}

func (s *chatStream) chunk(choices []chatChoice, usage *usage) {
	doc := map[string]any{
		"id": s.whole.ID, "object": "chat.completion.chunk", "created": s.whole.Created,
		"model": s.whole.Model, "choices": choices,
	}
	if s.counted {
		doc["usage"] = usage // null until the last chunk
	}
	s.events = append(s.events, gateway.Event{Data: gateway.Encode(doc)})
}

func (s *chatStream) send(c chatChoice)  { s.chunk([]chatChoice{c}, nil) }
func (s *chatStream) delta(d *chatDelta) { s.send(chatChoice{Delta: d}) }

func (s *chatStream) message(m *chatReply) {
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

func (s *chatStream) call(i int, c call) {
	first := callDelta{Index: i, ID: c.ID, Type: c.Type, Extra: c.Extra}
	first.Function.Name = c.Function.Name
	s.delta(&chatDelta{Calls: []callDelta{first}})
	for _, piece := range gateway.Pieces(c.Function.Arguments) {
		next := callDelta{Index: i}
		next.Function.Arguments = piece
		s.delta(&chatDelta{Calls: []callDelta{next}})
	}
}
