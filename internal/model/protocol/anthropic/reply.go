package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Outline implements [wire.Document].
func (r *reply) Outline() (id, model string, used assay.Usage) {
	u := &r.Usage
	return r.ID, r.Model, wire.Tokens{
		Input: u.Input + u.CacheRead + u.CacheWrite, Output: u.Output,
		Cached: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.OutputDetails.Thinking,
	}.Usage()
}

// parseBlock parses a block. A field of an unexpected type counts as missing.
func parseBlock(raw json.RawMessage) block {
	var b block
	_ = json.Unmarshal(raw, &b)
	return b
}

// value returns a text, or "" if it is missing.
func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// Read implements [wire.Document].
func (r *reply) Read(
	p *wire.Provider, from *wire.Reply, turn int, resp *assay.Response,
) error {
	resp.Finish = p.Clean(r.StopReason)
	var content []json.RawMessage
	if json.Unmarshal(r.Content, &content) != nil || content == nil {
		return p.Unreadable("the reply has no content", from)
	}
	m := decodeContent(p, content, turn)
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	if wantsBack(content) {
		m.State = p.State(r.Content)
	}
	resp.Message = m
	if tier := r.Usage.ServiceTier; tier != "" {
		resp.Reported = map[string]string{"service_tier": p.Clean(tier)}
	}
	return nil
}

// wantsBack reports whether an endpoint wants the blocks back as they came: thinking, and whatever
// is not known here.
func wantsBack(content []json.RawMessage) bool {
	for _, raw := range content {
		if b := parseBlock(raw); b.Type != textBlock && b.Type != toolUse {
			return true
		}
	}
	return false
}

func decodeContent(p *wire.Provider, content []json.RawMessage, turn int) assay.Message {
	m := assay.Message{Role: assay.Assistant}
	var thoughts []string
	for _, raw := range content {
		switch b := parseBlock(raw); b.Type {
		case textBlock:
			m.Content += value(b.Text)
		case thinkingBlock:
			if text := value(b.Thinking); text != "" {
				thoughts = append(thoughts, text)
			}
		case toolUse:
			m.Calls = append(m.Calls, assay.ToolCall{
				ID: p.CallID(b.ID, m.Calls, turn), Name: p.Clean(b.Name),
				Arguments: p.CleanArguments(wire.TextOf(b.Input)), // some gateways send a text
			})
		}
	}
	m.Content = p.Clean(m.Content)
	m.Reasoning = p.Clean(strings.Join(thoughts, "\n\n"))
	return m
}
