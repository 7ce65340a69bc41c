package responses

import (
	"encoding/json"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// clientRequest is a request of the client.
type clientRequest = request[[]any]

// encode returns a request without the parameters in unsent, and the parameters that it contains.
func encode(p *wire.Provider, req *assay.Request, unsent wire.ParamSet) (any, wire.ParamSet) {
	doc := clientRequest{
		Model: p.Deployment, Input: make([]any, 0, len(req.Messages)), Store: new(false),
	}
	messages := req.Messages
	if len(messages) > 0 && messages[0].Role == assay.System {
		doc.Instructions = &messages[0].Content
		messages = messages[1:]
	}
	for i := range messages {
		doc.Input = appendItems(doc.Input, &messages[i], p.StateOf(&messages[i]))
	}
	if choice := req.Sampling.ToolChoice; choice != "" && len(req.Functions) > 0 {
		doc.ToolChoice = choice
	}
	doc.Text.Format = gateway.NewFormat(req.Form)
	return &doc, setSampling(&doc, req.Sampling, unsent)
}

func encodeTools(functions []assay.Function, _ wire.ParamSet) any {
	var tools []tool
	for _, f := range functions {
		tools = append(tools, tool{
			Type: "function", Name: f.Name, Description: f.Description, Parameters: f.Parameters,
		})
	}
	return tools
}

// setSampling sets the parameters of s that are not in unsent.
func setSampling(r *clientRequest, s assay.Sampling, unsent wire.ParamSet) (sent wire.ParamSet) {
	sent = r.Sampling.Set(s, unsent)
	if unsent&include == 0 {
		r.Include = []string{"reasoning.encrypted_content"}
		sent |= include
	}
	r.MaxTokens = s.MaxTokens
	r.Reasoning.Effort = s.Effort
	return sent
}

// appendItems appends the input items of a message with a state.
func appendItems(items []any, m *assay.Message, state json.RawMessage) []any {
	switch m.Role {
	case assay.ToolRole:
		return append(items, item{
			Type: "function_call_output", CallID: m.CallID, Output: m.Content,
		})
	case assay.Assistant:
		return appendReply(items, m, state)
	case assay.System:
		return append(items, item{Role: "system", Content: m.Content})
	}
	return append(items, item{Role: "user", Content: m.Content})
}

// appendReply appends the items of a model's own reply: as they came, if the endpoint wants that.
func appendReply(items []any, m *assay.Message, state json.RawMessage) []any {
	if own := stateItems(state, m.Calls); len(own) > 0 {
		return append(items, own...)
	}
	switch {
	case m.Content != "":
		items = append(items, item{Role: "assistant", Content: m.Content})
	case len(m.Calls) == 0:
		items = append(items, item{Role: "assistant", Content: wire.EmptyReply})
	}
	for i := range m.Calls {
		items = append(items, encodeCall(&m.Calls[i]))
	}
	return items
}

func encodeCall(c *assay.ToolCall) item {
	return item{
		Type: functionCall, CallID: c.ID, Name: wire.SendableName(c.Name),
		Arguments: wire.Encode(wire.SendableArguments(c.Arguments)),
	}
}

// stateItems returns the items in data as they came, except for calls that had to be given an ID or
// are not sendable. An endpoint refuses reasoning at the end, so that is left out.
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
	call := encodeCall(c)
	if call.CallID == it.CallID && call.Name == it.Name &&
		wire.TextOf(call.Arguments) == wire.TextOf(it.Arguments) {
		return raw
	}
	return call
}
