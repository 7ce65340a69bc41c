package responses

import (
	"encoding/json"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// wireRequest is a request of the client.
type wireRequest = request[[]any]

type wireMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type wireCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type wireOutput struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output string `json:"output"`
}

// encode returns the request's body without the parameters in unsent, and the parameters that it
// contains.
func (p *Provider) encode(
	req *assay.Request, unsent wire.ParamSet,
) (*wire.Body, wire.ParamSet, error) {
	doc := wireRequest{
		Model: p.Deployment, Input: make([]any, 0, len(req.Messages)), Store: new(false),
	}
	messages := req.Messages
	if len(messages) > 0 && messages[0].Role == assay.System {
		doc.Instructions = &messages[0].Content
		messages = messages[1:]
	}
	for i := range messages {
		doc.Input = p.appendItems(doc.Input, &messages[i])
	}
	sent := setSampling(&doc, req.Sampling, unsent)
	if choice := req.Sampling.ToolChoice; choice != "" && len(req.Functions) > 0 {
		doc.ToolChoice = choice
	}
	body, err := p.functions.Body(&doc, req, toolsHead, toolsTail, encodeFunction)
	return body, sent, err
}

// toolsHead and toolsTail enclose the tools in a request's body.
const toolsHead, toolsTail = `,"tools":[`, `}]}`

func encodeFunction(f *assay.Function) any {
	return &tool{
		Type: "function", Name: f.Name, Description: f.Description, Parameters: f.Parameters,
	}
}

// setSampling sets the parameters of s that are not in unsent.
func setSampling(r *wireRequest, s assay.Sampling, unsent wire.ParamSet) (sent wire.ParamSet) {
	sent = r.Sampling.Set(s, unsent)
	if unsent&include == 0 {
		r.Include = []string{"reasoning.encrypted_content"}
		sent |= include
	}
	r.MaxTokens = s.MaxTokens
	r.Reasoning.Effort = s.Effort
	return sent
}

// appendItems appends the input items of a message.
func (p *Provider) appendItems(items []any, m *assay.Message) []any {
	switch m.Role {
	case assay.ToolRole:
		return append(items, wireOutput{"function_call_output", m.CallID, m.Content})
	case assay.Assistant:
		return p.appendReply(items, m)
	case assay.System:
		return append(items, wireMessage{"system", m.Content})
	}
	return append(items, wireMessage{"user", m.Content})
}

// appendReply appends the items of a model's own reply: as they came, if the endpoint wants that.
func (p *Provider) appendReply(items []any, m *assay.Message) []any {
	if own := stateItems(p.StateOf(m), m.Calls); len(own) > 0 {
		return append(items, own...)
	}
	switch {
	case m.Content != "":
		items = append(items, wireMessage{"assistant", m.Content})
	case len(m.Calls) == 0:
		items = append(items, wireMessage{"assistant", wire.EmptyReply})
	}
	for i := range m.Calls {
		items = append(items, encodeCall(&m.Calls[i]))
	}
	return items
}

func encodeCall(c *assay.ToolCall) wireCall {
	return wireCall{
		"function_call", c.ID, wire.SendableName(c.Name), wire.SendableArguments(c.Arguments),
	}
}

// stateItems returns the items in data as they came, except for calls that had to be given an ID or
// are not sendable. An endpoint refuses reasoning that nothing follows, so that is left out.
func stateItems(data json.RawMessage, calls []assay.ToolCall) []any {
	var all []json.RawMessage
	if data == nil || json.Unmarshal(data, &all) != nil {
		return nil
	}
	var items []any
	end := 0 // after the last item that is not reasoning
	for _, raw := range all {
		it := parseItem(raw)
		switch {
		case it.Type != functionCall:
			items = append(items, raw)
		case len(calls) > 0:
			items = append(items, callItem(raw, it, &calls[0]))
			calls = calls[1:]
		}
		if it.Type != reasoning {
			end = len(items)
		}
	}
	items = items[:end]
	for i := range calls {
		items = append(items, encodeCall(&calls[i]))
	}
	return items
}

// callItem returns raw if it is sendable and describes c, and c otherwise.
func callItem(raw json.RawMessage, it item, c *assay.ToolCall) any {
	own := wireCall{functionCall, it.CallID, it.Name, textOf(it.Arguments)}
	if call := encodeCall(c); call != own {
		return call
	}
	return raw
}
