package simserver

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// anthropic is Anthropic's Messages API.
type anthropic struct{}

func (anthropic) routes() []string { return []string{"POST /v1/messages"} }

func (anthropic) key(h http.Header) string { return h.Get("X-Api-Key") }

// anthropicRequest is the body of a request.
type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   *int               `json:"max_tokens"`
	System      any                `json:"system"` // see text
	Messages    []anthropicMessage `json:"messages"`
	Tools       []anthropicTool    `json:"tools"`
	Temperature *float64           `json:"temperature"`
	TopP        *float64           `json:"top_p"`
	Thinking    chatThinking       `json:"thinking"`
	Output      struct {
		Effort string `json:"effort"`
	} `json:"output_config"`
	ToolChoice struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Stream bool `json:"stream"`
}

type anthropicMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a text or a list of blocks
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

// anthropicBlock is a content block of a request or a reply.
type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature thought         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	CallID    string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // see text
}

func (anthropic) decode(body []byte) (prompt, *apiError) {
	var doc anthropicRequest
	if e := parse(body, &doc); e != nil {
		return prompt{}, e
	}
	req, e := doc.request()
	return prompt{doc.Model, req}, e
}

func (b *anthropicRequest) request() (assay.Request, *apiError) {
	req := assay.Request{Sampling: b.sampling()}
	if e := b.check(); e != nil {
		return req, e
	}
	system, err := text(b.System)
	if err != nil {
		return req, badRequest("", "system: %v", err)
	}
	if system != "" {
		req.Messages = append(req.Messages, assay.Message{Role: assay.System, Content: system})
	}
	for i := range b.Messages {
		all, e := b.Messages[i].messages(i)
		if e != nil {
			return req, e
		}
		req.Messages = append(req.Messages, all...)
	}
	for _, t := range b.Tools {
		req.Functions = append(req.Functions, assay.Function{
			Name: t.Name, Description: t.Description, Parameters: t.Schema,
		})
	}
	return req, nil
}

func (b *anthropicRequest) sampling() assay.Sampling {
	s := assay.Sampling{
		Temperature: b.Temperature, TopP: b.TopP, MaxTokens: b.MaxTokens, Effort: b.Output.Effort,
		Thinking: b.Thinking.tokens(), ToolChoice: b.ToolChoice.Type,
	}
	if s.ToolChoice == "any" {
		s.ToolChoice = "required"
	}
	return s
}

// check checks rules that the real endpoint has.
func (b *anthropicRequest) check() *apiError {
	thinks := b.Thinking.Type == "enabled" || b.Thinking.Type == "adaptive"
	switch {
	case b.Stream:
		return badRequest("", "stream: This server does not stream.")
	case b.MaxTokens == nil:
		return badRequest("", "max_tokens: Field required")
	case *b.MaxTokens < 1:
		return badRequest("", "max_tokens: Input should be greater than or equal to 1")
	case len(b.Messages) == 0:
		return badRequest("", "messages: at least one message is required")
	case b.Thinking.Type == "enabled" && b.Thinking.Budget < 1024:
		return badRequest("",
			"thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case b.Thinking.Type == "enabled" && b.Thinking.Budget >= *b.MaxTokens:
		return badRequest("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
	case thinks && b.Temperature != nil && *b.Temperature != 1:
		return badRequest("", "`temperature` may only be set to 1 when thinking is enabled.")
	case thinks && (b.ToolChoice.Type == "any" || b.ToolChoice.Type == "tool"):
		return badRequest("", "Thinking may not be enabled when tool_choice forces tool use.")
	case b.Temperature != nil && b.TopP != nil:
		return badRequest("", "`temperature` and `top_p` cannot both be specified for this model. "+
			"Please use only one.")
	}
	for i, t := range b.Tools {
		if t.Name == "" || len(t.Schema) == 0 {
			return badRequest("", "tools.%d.custom: Field required", i)
		}
	}
	return nil
}

// messages returns the messages that a message consists of: the answers to calls first.
func (m *anthropicMessage) messages(i int) ([]assay.Message, *apiError) {
	blocks, e := m.blocks(i)
	if e != nil {
		return nil, e
	}
	switch m.Role {
	case "user":
		return userMessages(i, blocks)
	case "assistant":
		own, e := assistantMessage(i, blocks)
		return []assay.Message{own}, e
	}
	return nil, badRequest("", "messages: Unexpected role %q.", m.Role)
}

func (m *anthropicMessage) blocks(i int) ([]anthropicBlock, *apiError) {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return []anthropicBlock{{Type: "text", Text: &s}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(m.Content, &blocks); err != nil {
		return nil, badRequest("", "messages.%d.content: Input should be a valid list", i)
	}
	for j, b := range blocks {
		if b.Type == "text" && (b.Text == nil || strings.TrimSpace(*b.Text) == "") {
			return nil, badRequest("",
				"messages.%d.content.%d: text content blocks must be non-empty", i, j)
		}
	}
	return blocks, nil
}

func userMessages(i int, blocks []anthropicBlock) ([]assay.Message, *apiError) {
	var all []assay.Message
	for j, b := range blocks {
		switch b.Type {
		case "text":
			all = append(all, assay.Message{Role: assay.User, Content: *b.Text})
		case "tool_result":
			if n := len(all); n > 0 && all[n-1].Role == assay.User {
				return nil, badRequest("", "messages.%d: `tool_result` blocks come first", i)
			}
			content, err := text(b.Content)
			if err != nil {
				return nil, badRequest("", "messages.%d.content.%d: %v", i, j, err)
			}
			m := assay.Message{Role: assay.ToolRole, CallID: b.CallID, Content: content}
			all = append(all, m)
		default:
			return nil, badRequest("", "messages.%d.content.%d.type: unexpected %q", i, j, b.Type)
		}
	}
	return all, nil
}

// assistantMessage returns a model's own message. Its thought has to come first.
func assistantMessage(i int, blocks []anthropicBlock) (assay.Message, *apiError) {
	m := assay.Message{Role: assay.Assistant}
	for j, b := range blocks {
		switch b.Type {
		case "text":
			m.Content += *b.Text
		case "tool_use":
			var input map[string]any
			if json.Unmarshal(b.Input, &input) != nil || input == nil {
				return m, badRequest("", "messages.%d.content.%d.tool_use.input: "+
					"Input should be a valid dictionary", i, j)
			}
			call := assay.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)}
			m.Calls = append(m.Calls, call)
		case "thinking":
			t := b.Signature
			if j > 0 || b.Thinking == nil || *b.Thinking != t.text() {
				t = "changed"
			}
			m.State = t.state()
		default:
			return m, badRequest("", "messages.%d.content.%d.type: unexpected %q", i, j, b.Type)
		}
	}
	return m, nil
}

func (anthropic) forgotten(i int, changed bool) *apiError {
	if changed {
		return badRequest("", "messages.%d.content.0: Invalid `signature` in `thinking` block", i)
	}
	return badRequest("", "messages.%d.content.0.type: Expected `thinking` or "+
		"`redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final "+
		"`assistant` message must start with a thinking block (preceeding the lastmost set of "+
		"`tool_use` and `tool_result` blocks).", i)
}

// anthropicReply is the body of a reply.
type anthropicReply struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"`
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []anthropicBlock `json:"content"`
	StopReason   string           `json:"stop_reason"`
	StopSequence *string          `json:"stop_sequence"`
	Usage        anthropicUsage   `json:"usage"`
}

type anthropicUsage struct {
	Input      int `json:"input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	Output     int `json:"output_tokens"`
	Details    struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	ServiceTier string `json:"service_tier"`
}

func (anthropic) encode(r reply) any {
	u := r.Usage
	body := anthropicReply{
		ID: "msg_" + strconv.FormatUint(r.id, 16), Type: "message", Role: "assistant",
		Model: r.model, StopReason: anthropicStop(&r.Response),
		Usage: anthropicUsage{
			Input: u.InputTokens - u.CachedTokens - u.CacheWriteTokens, CacheRead: u.CachedTokens,
			CacheWrite: u.CacheWriteTokens, Output: u.OutputTokens, ServiceTier: "standard",
		},
	}
	body.Usage.Details.Thinking = u.ReasoningTokens
	if !r.nothing {
		body.Content = anthropicContent(&r)
	}
	return body
}

func anthropicStop(r *assay.Response) string {
	switch {
	case r.Finish == "length":
		return "max_tokens"
	case r.Finish != "":
		return r.Finish
	case len(r.Message.Calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func anthropicContent(r *reply) []anthropicBlock {
	content := []anthropicBlock{}
	switch {
	case r.thought != "":
		content = append(content, anthropicBlock{
			Type: "thinking", Thinking: new(r.thought.text()), Signature: r.thought,
		})
	case r.Message.Reasoning != "":
		content = append(content, anthropicBlock{Type: "thinking", Thinking: &r.Message.Reasoning})
	}
	if r.Message.Content != "" {
		content = append(content, anthropicBlock{Type: "text", Text: &r.Message.Content})
	}
	for _, c := range r.Message.Calls {
		input := json.RawMessage(c.Arguments)
		if !json.Valid(input) {
			input = encode(c.Arguments) // the API cannot express it
		}
		content = append(content, anthropicBlock{
			Type: "tool_use", ID: c.ID, Name: c.Name, Input: input,
		})
	}
	return content
}

// refuse translates an error. The endpoint has its own ways to refuse a key without credit and a
// prompt with filtered content.
func (anthropic) refuse(e apiError) (int, any) {
	switch e.code {
	case "insufficient_quota":
		e.status = http.StatusBadRequest
		e.message = "Your credit balance is too low to access the Anthropic API. Please go to " +
			"Plans & Billing to upgrade or purchase credits."
	case "content_filter":
		e.status, e.message = http.StatusBadRequest, "Output blocked by content filtering policy"
	}
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return e.status, struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", inner{anthropicError(e.status), strings.ToValidUTF8(e.message, "?")}, "req_0"}
}

func anthropicError(status int) string {
	names := map[int]string{
		http.StatusUnauthorized:          "authentication_error",
		http.StatusPaymentRequired:       "billing_error",
		http.StatusForbidden:             "permission_error",
		http.StatusNotFound:              "not_found_error",
		http.StatusRequestEntityTooLarge: "request_too_large",
		http.StatusTooManyRequests:       "rate_limit_error",
		http.StatusGatewayTimeout:        "timeout_error",
		529:                              "overloaded_error",
	}
	switch name := names[status]; {
	case name != "":
		return name
	case status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}
