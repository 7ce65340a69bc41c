package responses

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// response is a reply as the client reads it.
type response = reply[json.RawMessage]

func (u *usage) total() assay.Usage {
	if u == nil {
		return assay.Usage{}
	}
	return wire.Tokens{
		Input: wire.Count(u.Input), Output: wire.Count(u.Output), Total: wire.Count(u.Total),
		Cached:     wire.Count(u.InputDetails.Cached),
		CacheWrite: wire.Count(u.InputDetails.CacheWrite),
		Reasoning:  wire.Count(u.OutputDetails.Reasoning), Details: true,
	}.Usage()
}

// The types of output items that a client understands.
const (
	message      = "message"
	functionCall = "function_call"
	reasoning    = "reasoning"
)

// item is an output item of any type.
type item struct {
	Type      string          `json:"type"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Phase     string          `json:"phase"`
}

// parse parses a body. The error says that it is not valid JSON. A field of an unexpected type
// counts as missing.
func parse(body []byte) (*response, error) {
	doc := new(response)
	err := wire.Unmarshal(body, doc)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		err = nil
	}
	return doc, err
}

// assemble returns the response in a stream: the one in the last event that has a response.
func assemble(events [][]byte) []byte {
	var last json.RawMessage
	for _, event := range events {
		var doc struct {
			Response json.RawMessage `json:"response"`
		}
		if wire.Unmarshal(event, &doc) == nil && doc.Response != nil {
			last = doc.Response
		}
	}
	return last
}

// parseItem parses an output item. A field of an unexpected type counts as missing.
func parseItem(raw json.RawMessage) item {
	var it item
	_ = json.Unmarshal(raw, &it)
	return it
}

// decode copies a response to resp, whose usage is set. If it returns a fault, it has set only the
// finish reason.
func (p *Provider) decode(
	from *wire.Reply, doc *response, turn int, resp *assay.Response,
) error {
	var raw []json.RawMessage
	_ = json.Unmarshal(doc.Output, &raw)
	items := make([]item, len(raw))
	for i := range raw {
		items[i] = parseItem(raw[i])
	}
	m := p.decodeMessage(items, turn)
	resp.Finish = p.Clean(cmp.Or(cmp.Or(doc.Incomplete, new(reason)).Reason, doc.Status))
	if f := p.FinishFault(resp.Finish, &m, resp.Usage); f != nil {
		return f
	}
	if len(items) == 0 {
		return p.Unreadable("the response has no output", from)
	}
	if wantsBack(items) {
		m.State = p.State(doc.Output)
	}
	resp.Message, resp.Reported = m, p.reported(doc)
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

func (p *Provider) decodeMessage(items []item, turn int) assay.Message {
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
			for _, raw := range []json.RawMessage{it.Summary, it.Content} {
				if text, _ := texts(raw, paragraph); text != "" {
					thoughts = append(thoughts, text)
				}
			}
		case functionCall:
			m.Calls = append(m.Calls, p.decodeCall(it, m.Calls, turn))
		}
	}
	m.Content = p.Clean(m.Content)
	if strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0 {
		m.Content = p.Clean(refusal)
	}
	m.Reasoning = p.Clean(strings.Join(thoughts, paragraph))
	return m
}

// decodeCall returns the call after others.
func (p *Provider) decodeCall(it item, others []assay.ToolCall, turn int) assay.ToolCall {
	id := p.Clean(it.CallID)
	for _, c := range others {
		if c.ID == id {
			id = ""
		}
	}
	if id == "" {
		id = fmt.Sprintf("call_%d_%d", turn, len(others))
	}
	return assay.ToolCall{
		ID: id, Name: p.Clean(it.Name), Arguments: p.Clean(textOf(p.CleanJSON(it.Arguments))),
	}
}

func (p *Provider) reported(doc *response) map[string]string {
	all := map[string]string{
		"effort": p.Clean(doc.Reasoning.Effort), "service_tier": p.Clean(doc.ServiceTier),
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return all
}

// paragraph separates the parts of a model's thinking.
const paragraph = "\n\n"

// texts returns the texts of content parts with a separator between them, and the refusals among
// them. Some gateways send a string.
func texts(raw json.RawMessage, separator string) (text, refusal string) {
	var parts []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if len(raw) > 0 && raw[0] == '"' {
		return textOf(raw), ""
	}
	_ = json.Unmarshal(raw, &parts)
	for _, part := range parts {
		if text != "" && part.Text != "" {
			text += separator
		}
		text += part.Text
		refusal += part.Refusal
	}
	return text, refusal
}

// textOf returns the text of a string, "" for null, and the JSON of any other value.
func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return string(raw)
	}
	return s
}
