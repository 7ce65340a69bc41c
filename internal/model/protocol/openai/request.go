package openai

import (
	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// encode returns a request without the parameters in unsent, and the parameters that it contains.
func encode(p *wire.Provider, req *assay.Request, unsent wire.ParamSet) (any, wire.ParamSet) {
	unsent |= dialectOf(p.Deployment) | dialectOf(req.Model)
	doc := &request{Model: p.Deployment, Messages: make([]message, len(req.Messages))}
	doc.setFactors(req)
	sent := doc.setSampling(req.Sampling, unsent)
	for i := range req.Messages {
		m := &req.Messages[i]
		doc.Messages[i] = encodeMessage(m)
		sent |= restore(&doc.Messages[i], p.StateOf(m), unsent)
	}
	return doc, sent | doc.adapt(unsent)
}

func encodeTools(functions []assay.Function, _ wire.ParamSet) any {
	var tools []tool
	for _, f := range functions {
		tools = append(tools, tool{Type: "function", Function: function(f)})
	}
	return tools
}

// setFactors sets the settings that are never left out, because results are filed under them. An
// endpoint that refuses one refuses the request.
func (r *request) setFactors(req *assay.Request) {
	s := &req.Sampling
	r.Seed, r.Effort = s.Seed, s.Effort
	r.Format = gateway.NewFormat(req.Form)
	if f := r.Format; f.Type == assay.BySchema {
		r.Format = gateway.Format{Type: f.Type, Inner: &f.Schema}
	}
	if s.ToolChoice != "" && len(req.Functions) > 0 {
		r.ToolChoice = s.ToolChoice
	}
	switch {
	case s.Thinking == nil:
	case *s.Thinking == 0:
		r.Thinking = &gateway.Thinking{Type: "disabled"}
	default:
		r.Thinking = &gateway.Thinking{Type: "enabled", Budget: *s.Thinking}
	}
}

// setSampling sets the parameters of s that are not in unsent. The token limit has
// two names, and the one that is not in unsent is used.
func (r *request) setSampling(s assay.Sampling, unsent wire.ParamSet) (sent wire.ParamSet) {
	sent = r.Sampling.Set(s, unsent)
	switch {
	case s.MaxTokens == nil:
	case unsent&maxTokens == 0:
		r.MaxTokens = s.MaxTokens
		sent |= maxTokens
	case unsent&maxCompletionTokens == 0:
		r.MaxCompletionTokens = s.MaxTokens
		sent |= maxCompletionTokens
	}
	return sent
}

func encodeMessage(m *assay.Message) message {
	switch m.Role {
	case assay.System:
		return message{Role: "system", Content: m.Content}
	case assay.ToolRole:
		return message{Role: "tool", Content: m.Content, CallID: &m.CallID}
	case assay.Assistant:
		return encodeAssistant(m)
	}
	return message{Role: "user", Content: m.Content}
}

// encodeAssistant encodes a model's own reply.
func encodeAssistant(m *assay.Message) message {
	out := message{Role: "assistant"}
	switch {
	case m.Content != "":
		out.Content = m.Content
	case len(m.Calls) > 0:
		// Send null, because some endpoints require the field and others refuse "".
	default:
		out.Content = wire.EmptyReply
	}
	for _, c := range m.Calls {
		name, arguments := wire.SendableName(c.Name), wire.SendableArguments(c.Arguments)
		out.Calls = append(out.Calls, newCall(c.ID, name, arguments))
	}
	return out
}

func newCall(id, name, arguments string) call {
	return call{
		ID: wire.Text(id), Type: "function",
		Function: functionCall{wire.Text(name), wire.Text(arguments)},
	}
}
