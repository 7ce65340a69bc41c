package anthropic

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// defaultMaxTokens limits a reply, apart from a budget for thinking, if the experiment does not.
// The protocol requires a limit.
const defaultMaxTokens = 16384

// wireRequest is a request of the client. Its blocks are of type block or, as they came,
// [json.RawMessage].
type wireRequest = request[[]block, []any]

var ephemeral = &cacheControl{"ephemeral"}

// encode returns a request without the parameters in unsent, and the parameters that it contains.
//
// It asks for caching three times: after the tools and after the system prompt, which trials share,
// and after the conversation, which the next turn repeats.
func encode(p *wire.Provider, req *assay.Request, unsent wire.ParamSet) (any, wire.ParamSet) {
	doc := wireRequest{Model: p.Deployment}
	sent := setSampling(&doc, req.Sampling, unsent)
	for i := range req.Messages {
		addMessage(p, &doc, &req.Messages[i])
	}
	if unsent&caching == 0 {
		cache(&doc)
		sent |= caching
	}
	setForm(&doc, req.Form)
	if choice := toolChoices[req.Sampling.ToolChoice]; choice != "" && len(req.Functions) > 0 {
		doc.ToolChoice = &toolChoice{choice}
	}
	return &doc, sent
}

// toolChoices translates [assay.Sampling.ToolChoice].
var toolChoices = map[string]string{"auto": "auto", "required": "any", "none": "none"}

func encodeTools(functions []assay.Function, unsent wire.ParamSet) any {
	var tools []tool
	for _, f := range functions {
		t := tool{Name: f.Name, Description: f.Description, Schema: f.Parameters}
		if len(t.Schema) == 0 {
			t.Schema = json.RawMessage(`{"type":"object"}`) // it is required
		}
		tools = append(tools, t)
	}
	if n := len(tools); n > 0 && unsent&caching == 0 {
		tools[n-1].Cache = ephemeral
	}
	return tools
}

// setSampling sets the parameters of s that are not in unsent. A model that thinks only accepts the
// default temperature and top_p.
func setSampling(r *wireRequest, s assay.Sampling, unsent wire.ParamSet) (sent wire.ParamSet) {
	if thinks(s) {
		unsent |= wire.Temperature | wire.TopP
	}
	sent = r.Sampling.Set(s, unsent)
	most := defaultMaxTokens
	if s.Effort != "" {
		r.Output = &output{Effort: s.Effort}
	}
	switch {
	case thinksFreely(s) && unsent&adaptive == 0:
		r.Thinking = &gateway.Thinking{Type: "adaptive"}
		sent |= adaptive
	case s.Thinking == nil:
	case *s.Thinking > 0:
		r.Thinking = &gateway.Thinking{Type: "enabled", Budget: *s.Thinking}
		most += *s.Thinking
	default:
		r.Thinking = &gateway.Thinking{Type: "disabled"}
	}
	r.MaxTokens = cmp.Or(s.MaxTokens, &most)
	return sent
}

// setForm sets the form of the reply. Any object is one of a schema here, which has nothing else.
func setForm(r *wireRequest, f assay.Form) {
	if f.Type == "" {
		return
	}
	if f.Type == assay.AnyObject {
		f.Schema = json.RawMessage(`{"type":"object"}`)
	}
	r.Output = cmp.Or(r.Output, new(output))
	r.Output.Format = gateway.Format{Type: assay.BySchema, Schema: gateway.Schema{JSON: f.Schema}}
}

// cache marks the ends of the system prompt and of the conversation.
func cache(r *wireRequest) {
	if n := len(r.System); n > 0 {
		r.System[n-1].Cache = ephemeral
	}
	if n := len(r.Messages); n > 0 {
		content := r.Messages[n-1].Content
		if b, ok := content[len(content)-1].(block); ok {
			b.Cache = ephemeral
			content[len(content)-1] = b
		}
	}
}

// addMessage adds a message. The system prompt has its own place, and consecutive messages of one
// role become one.
func addMessage(p *wire.Provider, r *wireRequest, m *assay.Message) {
	switch m.Role {
	case assay.System:
		if len(r.Messages) > 0 {
			add(r, "user", textOr(m.Content, wire.EmptyReply))
		} else if !blank(m.Content) {
			r.System = append(r.System, block{Type: textBlock, Text: &m.Content})
		}
	case assay.Assistant:
		add(r, "assistant", encodeReply(p.StateOf(m), m)...)
	case assay.ToolRole:
		id := wire.SendableName(m.CallID)
		result := block{Type: toolResult, CallID: id}
		if m.Content != "" {
			result.Content = m.Content
		}
		add(r, "user", result)
	default:
		add(r, "user", textOr(m.Content, wire.EmptyReply))
	}
}

func add(r *wireRequest, role string, content ...any) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Content = append(r.Messages[n-1].Content, content...)
		return
	}
	r.Messages = append(r.Messages, turnMessage[[]any]{role, content})
}

// textOr returns a text block. Endpoints refuse one that is blank, so it then has another text.
func textOr(text, other string) block {
	if blank(text) {
		text = other
	}
	return block{Type: textBlock, Text: &text}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// encodeReply encodes a model's own reply: as it came, if the endpoint wants that.
func encodeReply(state json.RawMessage, m *assay.Message) []any {
	if own := stateBlocks(state, m.Calls); len(own) > 0 {
		return own
	}
	var content []any
	if !blank(m.Content) || len(m.Calls) == 0 {
		content = append(content, textOr(m.Content, wire.EmptyReply))
	}
	for i := range m.Calls {
		content = append(content, encodeCall(&m.Calls[i]))
	}
	return content
}

func encodeCall(c *assay.ToolCall) block {
	return block{
		Type: toolUse, ID: wire.SendableName(c.ID), Name: wire.SendableName(c.Name),
		Input: json.RawMessage(wire.SendableArguments(c.Arguments)),
	}
}

// stateBlocks returns the blocks in data as they came. Calls that had to be given an ID or are not
// sendable are replaced, and blank texts are left out.
func stateBlocks(data json.RawMessage, calls []assay.ToolCall) []any {
	var all []json.RawMessage
	if data == nil || json.Unmarshal(data, &all) != nil {
		return nil
	}
	var content []any
	for _, raw := range all {
		b := parseBlock(raw)
		switch {
		case b.Type == textBlock && blank(value(b.Text)):
		case b.Type != toolUse:
			content = append(content, raw)
		case len(calls) > 0:
			content = append(content, callBlock(raw, &b, &calls[0]))
			calls = calls[1:]
		}
	}
	return content
}

// callBlock returns raw if it is sendable and describes c, and c otherwise.
func callBlock(raw json.RawMessage, b *block, c *assay.ToolCall) any {
	call := encodeCall(c)
	if call.ID == b.ID && call.Name == b.Name && string(call.Input) == string(b.Input) {
		return raw
	}
	return call
}
