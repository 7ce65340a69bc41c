package gemini

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Outline implements [wire.Document].
func (r *reply) Outline() (id, model string, used assay.Usage) {
	u := &r.Usage
	return r.ID, r.Model, wire.Tokens{
		Input: u.Prompt + u.ToolPrompt, Cached: u.Cached,
		Output: u.Candidates + u.Thoughts, Reasoning: u.Thoughts, Details: true,
		Total: u.Total,
	}.Usage()
}

// parsePart parses a part. A field of an unexpected type counts as missing.
func parsePart(raw json.RawMessage) part {
	var p part
	_ = json.Unmarshal(raw, &p)
	return p
}

// Read implements [wire.Document] with the first candidate.
func (r *reply) Read(
	p *wire.Provider, from *wire.Reply, turn int, resp *assay.Response,
) error {
	if len(r.Candidates) == 0 {
		if why := r.Feedback.BlockReason; why != "" {
			return &assay.Fault{
				Kind: assay.ContentFilter, Status: http.StatusOK,
				Detail: p.Detail("the endpoint's filter refused the prompt: "+why, ""),
			}
		}
		return p.Unreadable("the reply has no candidates", from)
	}
	c := &r.Candidates[0]
	resp.Finish = p.Clean(c.FinishReason)
	m := decodeMessage(p, c, turn)
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	resp.Message = m
	return nil
}

func decodeMessage(p *wire.Provider, c *candidate, turn int) assay.Message {
	m := assay.Message{Role: assay.Assistant}
	var raw []json.RawMessage
	_ = json.Unmarshal(c.Content.Parts, &raw)
	wantsBack := false
	for _, r := range raw {
		part := parsePart(r)
		switch {
		case part.Call != nil:
			m.Calls = append(m.Calls, assay.ToolCall{
				ID: p.CallID(part.Call.ID, m.Calls, turn), Name: p.Clean(part.Call.Name),
				Arguments: compact(p.CleanJSON(part.Call.Args)),
			})
		case part.Text != nil && part.Thought:
			m.Reasoning += *part.Text
		case part.Text != nil:
			m.Content += *part.Text
		default:
			wantsBack = true // a kind that is not known here
		}
		wantsBack = wantsBack || part.Signature != nil
	}
	m.Content, m.Reasoning = p.Clean(m.Content), p.Clean(m.Reasoning)
	if m.Content == "" && len(m.Calls) == 0 && strings.HasSuffix(c.FinishReason, "_CALL") {
		m.Content = p.Clean(c.FinishMessage) // it quotes a call that is not well formed
	}
	if wantsBack {
		m.State = p.State(c.Content.Parts)
	}
	return m
}

// compact returns the arguments of a call without white space.
func compact(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) != nil || b.String() == "null" {
		return "{}"
	}
	return b.String()
}
