package responses

import (
	"cmp"
	"encoding/json"
	"maps"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Outline implements [wire.Document].
func (r *reply) Outline() (id, model string, used assay.Usage) {
	u := cmp.Or(r.Usage, new(usage))
	return r.ID, r.Model, wire.Tokens{
		Input: u.Input, Output: u.Output, Total: u.Total,
		Cached: u.InputDetails.Cached, CacheWrite: u.InputDetails.CacheWrite,
		Reasoning: u.OutputDetails.Reasoning, Details: true,
	}.Usage()
}

// assemble returns the response in a stream: the one in the last event that has a response.
func assemble(events [][]byte) (last []byte, err error) {
	for _, event := range events {
		var doc struct {
			Response json.RawMessage `json:"response"`
		}
		if wire.Unmarshal(event, &doc) == nil && doc.Response != nil {
			last = doc.Response
		}
	}
	return last, nil
}

// parseItem parses an output item. A field of an unexpected type counts as missing.
func parseItem(raw json.RawMessage) item {
	var it item
	_ = json.Unmarshal(raw, &it)
	return it
}

// Read implements [wire.Document].
func (r *reply) Read(
	p *wire.Provider, from *wire.Reply, turn int, resp *assay.Response,
) error {
	var raw []json.RawMessage
	_ = json.Unmarshal(r.Output, &raw)
	items := make([]item, len(raw))
	for i := range raw {
		items[i] = parseItem(raw[i])
	}
	m := decodeMessage(p, items, turn)
	resp.Finish = p.Clean(cmp.Or(cmp.Or(r.Incomplete, new(finishReason)).Reason, r.Status))
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	if len(items) == 0 {
		return p.Unreadable("the response has no output", from)
	}
	if wantsBack(items) {
		m.State = p.State(r.Output)
	}
	resp.Message, resp.Reported = m, reported(p, r)
	return nil
}

// wantsBack reports whether an endpoint wants the items back as they came: reasoning, a message
// with a phase, and whatever is not known here.
func wantsBack(items []item) bool {
	for _, it := range items {
		if it.Type != message && it.Type != functionCall || it.Phase != "" {
			return true
		}
	}
	return false
}

func decodeMessage(p *wire.Provider, items []item, turn int) assay.Message {
	m := assay.Message{Role: assay.Assistant}
	var refusal string
	var thoughts []string
	for _, it := range items {
		switch it.Type {
		case message:
			text, refused := texts(it.Content, "")
			m.Content += text
			refusal += refused
		case reasoning:
			for _, parts := range []any{it.Summary, it.Content} {
				if text, _ := texts(parts, paragraph); text != "" {
					thoughts = append(thoughts, text)
				}
			}
		case functionCall:
			m.Calls = append(m.Calls, assay.ToolCall{
				ID: p.CallID(it.CallID, m.Calls, turn), Name: p.Clean(it.Name),
				Arguments: p.CleanArguments(wire.TextOf(it.Arguments)),
			})
		}
	}
	m.Content = p.Clean(m.Content)
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
		m.Content = p.Clean(refusal)
	}
	m.Reasoning = p.Clean(strings.Join(thoughts, paragraph))
	return m
}

func reported(p *wire.Provider, r *reply) map[string]string {
	all := map[string]string{
		"effort": p.Clean(r.Reasoning.Effort), "service_tier": p.Clean(r.ServiceTier),
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// paragraph separates the parts of a model's thinking.
const paragraph = "\n\n"

// texts returns the texts of parts with a separator between them, and the refusals among them. Some
// gateways send one text.
func texts(content any, separator string) (text, refusal string) {
	if text, ok := content.(string); ok {
		return text, ""
	}
	parts, _ := content.([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		own, _ := part["text"].(string)
		refused, _ := part["refusal"].(string)
		if text != "" && own != "" {
			text += separator
		}
		text += own
		refusal += refused
	}
	return text, refusal
}
