package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// defaultMaxTokens limits a reply, apart from a budget for thinking, if the experiment does not.
// The protocol requires a limit.
const defaultMaxTokens = 16384

// wireRequest is a request's body without its tools.
type wireRequest struct {
	Model     string        `json:"model"`
	MaxTokens int           `json:"max_tokens"`
	System    []block       `json:"system,omitempty"`
	Messages  []wireMessage `json:"messages"`
	wire.Sampling
	Thinking   *wireThinking   `json:"thinking,omitempty"`
	Output     *wireOutput     `json:"output_config,omitempty"`
	ToolChoice *wireToolChoice `json:"tool_choice,omitempty"`
}

type wireThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type wireOutput struct {
	Effort string `json:"effort"`
}

type wireToolChoice struct {
	Type string `json:"type"`
}

// wireMessage is a message. Its blocks are of type block or, as they came, [json.RawMessage].
type wireMessage struct {
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

// block is a content block of a request.
type block struct {
	Type string `json:"type"`
	// Text is the content of a text block.
	Text string `json:"text,omitempty"`
	// ID, Name and Input are those of a tool_use block.
	ID    string          `json:"id,omitempty"`
	Name  string          `json:"name,omitempty"`
	Input json.RawMessage `json:"input,omitempty"`
	// CallID and Content are those of a tool_result block.
	CallID  string        `json:"tool_use_id,omitempty"`
	Content string        `json:"content,omitempty"`
	Cache   *cacheControl `json:"cache_control,omitempty"`
}

// The types of blocks.
const (
	textBlock     = "text"
	toolUse       = "tool_use"
	toolResult    = "tool_result"
	thinkingBlock = "thinking"
)

// cacheControl asks the endpoint to cache everything up to a block.
type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{"ephemeral"}

type wireTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
}

// encode returns the request's body without the parameters in unsent, and the parameters that it
// contains.
//
// It asks for caching three times: after the tools and after the system prompt, which trials share,
// and after the conversation, which the next turn repeats.
func (p *Provider) encode(
	req *assay.Request, unsent wire.ParamSet,
) (*wire.Body, wire.ParamSet, error) {
	doc := wireRequest{Model: p.Deployment}
	sent := doc.setSampling(req.Sampling, unsent)
	for i := range req.Messages {
		p.addMessage(&doc, &req.Messages[i])
	}
	if unsent&caching == 0 {
		doc.cache()
		sent |= caching
	}
	if choice := toolChoices[req.Sampling.ToolChoice]; choice != "" && len(req.Functions) > 0 {
		doc.ToolChoice = &wireToolChoice{choice}
	}
	tail := toolsTail
	if sent&caching != 0 {
		tail = `,"cache_control":{"type":"ephemeral"}` + tail
	}
	body, err := p.functions.Body(&doc, req, toolsHead, tail, encodeFunction)
	return body, sent, err
}

// toolsHead and toolsTail enclose the tools in a request's body.
const toolsHead, toolsTail = `,"tools":[`, `}]}`

// toolChoices translates [assay.Sampling.ToolChoice].
var toolChoices = map[string]string{"auto": "auto", "required": "any", "none": "none"}

func encodeFunction(f *assay.Function) any {
	schema := f.Parameters
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`) // it is required
	}
	return &wireTool{Name: f.Name, Description: f.Description, Schema: schema}
}

// setSampling sets the parameters of s that are not in unsent. A model that thinks only accepts the
// default temperature and top_p.
func (r *wireRequest) setSampling(s assay.Sampling, unsent wire.ParamSet) (sent wire.ParamSet) {
	if thinks(s) {
		unsent |= wire.Temperature | wire.TopP
	}
	sent = r.Sampling.Set(s, unsent)
	r.MaxTokens = defaultMaxTokens
	if s.Effort != "" {
		r.Output = &wireOutput{s.Effort}
	}
	switch {
	case thinksFreely(s) && unsent&adaptive == 0:
		r.Thinking = &wireThinking{Type: "adaptive"}
		sent |= adaptive
	case s.Thinking == nil:
	case *s.Thinking > 0:
		r.Thinking = &wireThinking{"enabled", *s.Thinking}
		r.MaxTokens += *s.Thinking
	default:
		r.Thinking = &wireThinking{Type: "disabled"}
	}
	if s.MaxTokens != nil {
		r.MaxTokens = *s.MaxTokens
	}
	return sent
}

// cache marks the ends of the system prompt and of the conversation.
func (r *wireRequest) cache() {
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

// addMessage adds a message. The system prompt has a place of its own, and consecutive messages of
// one role become one.
func (p *Provider) addMessage(r *wireRequest, m *assay.Message) {
	switch m.Role {
	case assay.System:
		if len(r.Messages) > 0 {
			r.add("user", textOr(m.Content, wire.EmptyReply))
		} else if !blank(m.Content) {
			r.System = append(r.System, block{Type: textBlock, Text: m.Content})
		}
	case assay.Assistant:
		r.add("assistant", p.encodeReply(m)...)
	case assay.ToolRole:
		id := wire.SendableName(m.CallID)
		r.add("user", block{Type: toolResult, CallID: id, Content: m.Content})
	default:
		r.add("user", textOr(m.Content, wire.EmptyReply))
	}
}

func (r *wireRequest) add(role string, content ...any) {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == role {
		r.Messages[n-1].Content = append(r.Messages[n-1].Content, content...)
		return
	}
	r.Messages = append(r.Messages, wireMessage{role, content})
}

// textOr returns a text block. Endpoints refuse one that is blank, so it then has another text.
func textOr(text, other string) block {
	if blank(text) {
		text = other
	}
	return block{Type: textBlock, Text: text}
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// encodeReply encodes a model's own reply: as it came, if the endpoint wants that.
func (p *Provider) encodeReply(m *assay.Message) []any {
	if own := stateBlocks(p.StateOf(m), m.Calls); len(own) > 0 {
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
		case b.Type == textBlock && blank(b.Text):
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
func callBlock(raw json.RawMessage, b *replyBlock, c *assay.ToolCall) any {
	call := encodeCall(c)
	if call.ID == b.ID && call.Name == b.Name && string(call.Input) == string(b.Input) {
		return raw
	}
	return call
}
