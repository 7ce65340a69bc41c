package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

func (u *usage) total() assay.Usage {
	read, written := max(u.CacheRead, 0), max(u.CacheWrite, 0)
	return wire.Tokens{
		Input:      wire.Count(max(u.Input, 0) + read + written),
		Output:     wire.Count(u.Output),
		Cached:     wire.Count(read),
		CacheWrite: wire.Count(written),
		Reasoning:  wire.Count(u.OutputDetails.Thinking),
	}.Usage()
}

// parseBlock parses a block. A field of an unexpected type counts as missing.
func parseBlock(raw json.RawMessage) block {
	var b block
	_ = json.Unmarshal(raw, &b)
	return b
}

// value returns a text, or "" if there is none.
func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// read classifies a reply and copies it to resp. turn is part of the IDs given to calls that have
// none. A reply that ends in a fault may have been paid for, so its usage is read too.
func (p *Provider) read(from *wire.Reply, turn int, resp *assay.Response) error {
	if from.Status < 300 && wire.IsStream(from.Body) {
		body, err := assemble(wire.Events(from.Body))
		if err != nil {
			return p.Unreadable(err.Error(), from)
		}
		from.Body = body
	}
	fault := p.Fault(from)
	doc := new(reply[json.RawMessage])
	err := wire.Unmarshal(from.Body, doc)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		err = nil // the field counts as missing
	}
	if err == nil {
		resp.ServedModel = p.Clean(doc.Model)
		resp.Usage = doc.Usage.total()
		resp.Finish = p.Clean(doc.StopReason)
	}
	switch {
	case fault != nil:
		return fault
	case err != nil:
		why := fmt.Sprintf("the body of %d bytes is not valid JSON", len(from.Body))
		return p.Unreadable(why, from)
	}
	var content []json.RawMessage
	if json.Unmarshal(doc.Content, &content) != nil || content == nil {
		return p.Unreadable("the reply has no content", from)
	}
	m := p.decode(content, turn)
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	if wantsBack(content) {
		m.State = p.State(doc.Content)
	}
	resp.Message = m
	if tier := doc.Usage.ServiceTier; tier != "" {
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

func (p *Provider) decode(content []json.RawMessage, turn int) assay.Message {
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
			m.Calls = append(m.Calls, p.decodeCall(&b, m.Calls, turn))
		}
	}
	m.Content = p.Clean(m.Content)
	m.Reasoning = p.Clean(strings.Join(thoughts, "\n\n"))
	return m
}

// decodeCall returns the call after others.
func (p *Provider) decodeCall(b *block, others []assay.ToolCall, turn int) assay.ToolCall {
	id := p.Clean(b.ID)
	for _, c := range others {
		if c.ID == id {
			id = ""
		}
	}
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", turn, len(others))
	}
	return assay.ToolCall{ID: id, Name: p.Clean(b.Name), Arguments: p.Clean(arguments(b.Input))}
}

// arguments returns the text of a call's input, which some gateways send as a string.
func arguments(input json.RawMessage) string {
	var s string
	if json.Unmarshal(input, &s) == nil {
		return s
	}
	return string(input)
}
