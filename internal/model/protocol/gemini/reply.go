package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

func (u *usage) total() assay.Usage {
	return wire.Tokens{
		Input: wire.Count(max(u.Prompt, 0) + max(u.ToolPrompt, 0)), Cached: wire.Count(u.Cached),
		Output:    wire.Count(max(u.Candidates, 0) + max(u.Thoughts, 0)),
		Reasoning: wire.Count(u.Thoughts), Details: true,
		Total: wire.Count(u.Total),
	}.Usage()
}

// parse parses a body. The error says that it is not valid JSON. A field of an unexpected type
// counts as missing.
func parse(body []byte) (*reply, error) {
	doc := new(reply)
	err := wire.Unmarshal(body, doc)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		err = nil
	}
	return doc, err
}

// parsePart parses a part. A field of an unexpected type counts as missing.
func parsePart(raw json.RawMessage) part {
	var p part
	_ = json.Unmarshal(raw, &p)
	return p
}

// decode copies the first candidate to resp, whose usage is set. If it returns a fault, it has set
// only the finish reason.
func (p *Provider) decode(from *wire.Reply, doc *reply, turn int, resp *assay.Response) error {
	if len(doc.Candidates) == 0 {
		if why := doc.Feedback.BlockReason; why != "" {
			return &assay.Fault{
				Kind: assay.ContentFilter, Status: http.StatusOK,
				Detail: p.Detail("the endpoint's filter refused the prompt: "+why, ""),
			}
		}
		return p.Unreadable("the reply has no candidates", from)
	}
	c := &doc.Candidates[0]
	resp.Finish = p.Clean(c.FinishReason)
	m := p.decodeMessage(c, turn)
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	resp.Message = m
	return nil
}

func (p *Provider) decodeMessage(c *candidate, turn int) assay.Message {
	m := assay.Message{Role: assay.Assistant}
	var raw []json.RawMessage
	_ = json.Unmarshal(c.Content.Parts, &raw)
	wantsBack := false
	for _, r := range raw {
		part := parsePart(r)
		switch {
		case part.Call != nil:
			m.Calls = append(m.Calls, p.decodeCall(&part, m.Calls, turn))
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

// decodeCall returns the call after others.
func (p *Provider) decodeCall(part *part, others []assay.ToolCall, turn int) assay.ToolCall {
	id := p.Clean(part.Call.ID)
	for _, c := range others {
		if c.ID == id {
			id = ""
		}
	}
	if id == "" {
		id = callID(turn, len(others))
	}
	var args bytes.Buffer
	if json.Compact(&args, p.CleanJSON(part.Call.Args)) != nil || args.String() == "null" {
		args.Reset()
		args.WriteString("{}")
	}
	return assay.ToolCall{ID: id, Name: p.Clean(part.Call.Name), Arguments: args.String()}
}
