package openai

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Outline implements [wire.Document].
func (c *completion) Outline() (id, model string, used assay.Usage) {
	u := &c.Usage
	tokens := wire.Tokens{
		Input: max(u.Input, u.CacheHit+u.CacheMiss), Output: u.Output, Total: u.Total,
		Cached:     max(u.InputDetails.Cached, u.Cached, u.CacheHit),
		CacheWrite: max(u.InputDetails.CacheWrite, u.CacheWrite),
	}
	if n := u.OutputDetails.Reasoning; n != nil {
		tokens.Reasoning, tokens.Details = *n, true
	}
	return string(c.ID), string(c.Model), tokens.Usage()
}

// textIn returns the text of a content. If a gateway sends parts, their texts are joined. Mistral
// has parts with thinking, which has its own parts.
func textIn(content json.RawMessage) (text, thinking string) {
	var parts []struct {
		Text     string          `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if json.Unmarshal(content, &parts) != nil || parts == nil {
		return wire.TextOf(content), ""
	}
	for _, part := range parts {
		text += part.Text
		if part.Thinking != nil {
			thought, _ := textIn(part.Thinking)
			thinking += thought
		}
	}
	return text, thinking
}

// Read implements [wire.Document] with the first choice.
func (c *completion) Read(
	p *wire.Provider, from *wire.Reply, turn int, resp *assay.Response,
) error {
	if len(c.Choices) == 0 {
		return p.Unreadable("the completion has no choices", from)
	}
	choice := &c.Choices[0]
	resp.Finish = p.Clean(string(choice.FinishReason))
	if f := p.ErrorFault(from, choice.Error); f != nil {
		return f
	}
	m := decodeMessage(p, &choice.Message, turn)
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	resp.Message = m
	if c.Tier != "" {
		resp.Reported = map[string]string{"service_tier": p.Clean(string(c.Tier))}
	}
	return nil
}

func decodeMessage(p *wire.Provider, m *reply, turn int) assay.Message {
	if len(m.Calls) == 0 && m.Call != nil && m.Call.Name != "" {
		m.Calls = []call{{Function: *m.Call}}
	}
	text, thinking := textIn(m.Content)
	var parts json.RawMessage
	if thinking != "" {
		parts = m.Content
	}
	out := assay.Message{
		Role:      assay.Assistant,
		Content:   p.Clean(text),
		Reasoning: p.Clean(cmp.Or(thinking, m.text())),
		State:     newState(p, m, parts),
	}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, assay.ToolCall{
			ID:        p.CallID(string(c.ID), out.Calls, turn),
			Name:      p.Clean(string(c.Function.Name)),
			Arguments: p.CleanArguments(string(c.Function.Arguments)),
		})
	}
	if m.Refusal != nil && strings.TrimSpace(out.Content) == "" && len(out.Calls) == 0 {
		out.Content = p.Clean(string(*m.Refusal))
	}
	return out
}
