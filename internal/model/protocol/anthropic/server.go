package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
)

// Dialect is the server's side of Anthropic's Messages API.
type Dialect struct{}

func (Dialect) Routes() []string { return []string{"POST /v1/messages"} }

func (Dialect) Key(h http.Header) string { return h.Get("X-Api-Key") }

// anthropicRequest is the body of a request.
type anthropicRequest struct {
	Model       string             `json:"model"`
	MaxTokens   *int               `json:"max_tokens"`
	System      any                `json:"system"` // see text
	Messages    []anthropicMessage `json:"messages"`
	Tools       []anthropicTool    `json:"tools"`
	Temperature *float64           `json:"temperature"`
	TopP        *float64           `json:"top_p"`
	Thinking    gateway.Thinking   `json:"thinking"`
	Output      struct {
		Effort string         `json:"effort"`
		Format gateway.Format `json:"format"`
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
	Signature gateway.Thought `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	CallID    string          `json:"tool_use_id,omitempty"`
	Content   any             `json:"content,omitempty"` // see text
}

func (Dialect) Decode(body []byte) (gateway.Prompt, *gateway.Refusal) {
	var doc anthropicRequest
	if e := gateway.Parse(body, &doc); e != nil {
		return gateway.Prompt{}, e
	}
	req, e := doc.request()
	return gateway.Prompt{
		Deployment: doc.Model, Stream: doc.Stream, Beyond: gateway.Beyond(doc.Stream), Request: req,
	}, e
}

func (b *anthropicRequest) request() (assay.Request, *gateway.Refusal) {
	req := assay.Request{Sampling: b.sampling()}
	if e := b.check(); e != nil {
		return req, e
	}
	system, err := gateway.Text(b.System)
	if err != nil {
		return req, gateway.BadRequest("", "system: %v", err)
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
		Thinking: b.Thinking.Tokens(), ToolChoice: b.ToolChoice.Type,
	}
	if s.ToolChoice == "any" || s.ToolChoice == "tool" {
		s.ToolChoice = "required"
	}
	return s
}

// check checks rules that the real endpoint has.
func (b *anthropicRequest) check() *gateway.Refusal {
	thinks := b.Thinking.Type == "enabled" || b.Thinking.Type == "adaptive"
	switch {
	case b.MaxTokens == nil:
		return gateway.BadRequest("", "max_tokens: Field required")
	case *b.MaxTokens < 1:
		return gateway.BadRequest("", "max_tokens: Input should be greater than or equal to 1")
	case len(b.Messages) == 0:
		return gateway.BadRequest("", "messages: at least one message is required")
	case b.Thinking.Type == "enabled" && b.Thinking.Budget < 1024:
		return gateway.BadRequest("",
			"thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case b.Thinking.Type == "enabled" && b.Thinking.Budget >= *b.MaxTokens:
		return gateway.BadRequest("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
	case thinks && b.Temperature != nil && *b.Temperature != 1:
		return gateway.BadRequest("", "`temperature` may only be set to 1 when thinking is enabled.")
	case thinks && (b.ToolChoice.Type == "any" || b.ToolChoice.Type == "tool"):
		return gateway.BadRequest("", "Thinking may not be enabled when tool_choice forces tool use.")
	case b.Temperature != nil && b.TopP != nil:
		return gateway.BadRequest("", "`temperature` and `top_p` cannot both be specified for this model. "+
			"Please use only one.")
	}
	for i, t := range b.Tools {
		if t.Name == "" || len(t.Schema) == 0 {
			return gateway.BadRequest("", "tools.%d.custom: Field required", i)
		}
	}
	return b.Output.Format.Check("output_config.format")
}

// messages returns the messages that a message consists of: the answers to calls first.
func (m *anthropicMessage) messages(i int) ([]assay.Message, *gateway.Refusal) {
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
	case "system": // Claude Code sends reminders between other messages
		all, e := userMessages(i, blocks)
		for k := range all {
			if all[k].Role == assay.User {
				all[k].Role = assay.System
			}
		}
		return all, e
	}
	return nil, gateway.BadRequest("", "messages: Unexpected role %q.", m.Role)
}

func (m *anthropicMessage) blocks(i int) ([]anthropicBlock, *gateway.Refusal) {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return []anthropicBlock{{Type: "text", Text: &s}}, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(m.Content, &blocks); err != nil {
		return nil, gateway.BadRequest("", "messages.%d.content: Input should be a valid list", i)
	}
	for j, b := range blocks {
		if b.Type == "text" && (b.Text == nil || strings.TrimSpace(*b.Text) == "") {
			return nil, gateway.BadRequest("",
				"messages.%d.content.%d: text content blocks must be non-empty", i, j)
		}
	}
	return blocks, nil
}

func userMessages(i int, blocks []anthropicBlock) ([]assay.Message, *gateway.Refusal) {
	var all []assay.Message
	for j, b := range blocks {
		switch b.Type {
		case "text":
			all = append(all, assay.Message{Role: assay.User, Content: *b.Text})
		case "tool_result":
			if n := len(all); n > 0 && all[n-1].Role == assay.User {
				return nil, gateway.BadRequest("", "messages.%d: `tool_result` blocks come first", i)
			}
			content, err := gateway.Text(b.Content)
			if err != nil {
				return nil, gateway.BadRequest("", "messages.%d.content.%d: %v", i, j, err)
			}
			m := assay.Message{Role: assay.ToolRole, CallID: b.CallID, Content: content}
			all = append(all, m)
		default:
			return nil, gateway.BadRequest("", "messages.%d.content.%d.type: unexpected %q", i, j, b.Type)
		}
	}
	return all, nil
}

// assistantMessage returns a model's own message. Its thought has to come first.
func assistantMessage(i int, blocks []anthropicBlock) (assay.Message, *gateway.Refusal) {
	m := assay.Message{Role: assay.Assistant}
	for j, b := range blocks {
		switch b.Type {
		case "text":
			m.Content += *b.Text
		case "tool_use":
			var input map[string]any
			if json.Unmarshal(b.Input, &input) != nil || input == nil {
				return m, gateway.BadRequest("", "messages.%d.content.%d.tool_use.input: "+
					"Input should be a valid dictionary", i, j)
			}
			call := assay.ToolCall{ID: b.ID, Name: b.Name, Arguments: string(b.Input)}
			m.Calls = append(m.Calls, call)
		case "thinking":
			t := b.Signature
			if j > 0 || b.Thinking == nil || *b.Thinking != t.Text() {
				t = "changed"
			}
			m.State = t.State()
		default:
			return m, gateway.BadRequest("", "messages.%d.content.%d.type: unexpected %q", i, j, b.Type)
		}
	}
	return m, nil
}

func (Dialect) Forgotten(i int, changed bool) *gateway.Refusal {
	if changed {
		return gateway.BadRequest("", "messages.%d.content.0: Invalid `signature` in `thinking` block", i)
	}
	return gateway.BadRequest("", "messages.%d.content.0.type: Expected `thinking` or "+
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

func (Dialect) Encode(r gateway.Reply) any {
	u := r.Usage
	body := anthropicReply{
		ID: "msg_" + strconv.FormatUint(r.ID, 16), Type: "message", Role: "assistant",
		Model: r.Model, StopReason: anthropicStop(&r.Response),
		Usage: anthropicUsage{
			Input: u.InputTokens - u.CachedTokens - u.CacheWriteTokens, CacheRead: u.CachedTokens,
			CacheWrite: u.CacheWriteTokens, Output: u.OutputTokens, ServiceTier: "standard",
		},
	}
	body.Usage.Details.Thinking = u.ReasoningTokens
	if !r.Nothing {
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

func anthropicContent(r *gateway.Reply) []anthropicBlock {
	content := []anthropicBlock{}
	switch {
	case r.Thought != "":
		content = append(content, anthropicBlock{
			Type: "thinking", Thinking: new(r.Thought.Text()), Signature: r.Thought,
		})
	case r.Message.Reasoning != "":
		content = append(content, anthropicBlock{Type: "thinking", Thinking: &r.Message.Reasoning})
	}
	if r.Message.Content != "" {
		content = append(content, anthropicBlock{Type: "text", Text: &r.Message.Content})
	}
	for _, c := range r.Message.Calls {
		input := json.RawMessage(cmp.Or(c.Arguments, "{}"))
		if !json.Valid(input) {
			input = gateway.Encode(c.Arguments) // the API cannot express it
		}
		content = append(content, anthropicBlock{
			Type: "tool_use", ID: c.ID, Name: c.Name, Input: input,
		})
	}
	return content
}

// refuse translates an error. The endpoint has its own ways to refuse a key without credit and a
// prompt with filtered content.
func (Dialect) Refuse(e gateway.Refusal) (int, any) {
	switch e.Code {
	case "insufficient_quota":
		e.Status = http.StatusBadRequest
		e.Message = "Your credit balance is too low to access the Anthropic API. Please go to " +
			"Plans & Billing to upgrade or purchase credits."
	case "content_filter":
		e.Status, e.Message = http.StatusBadRequest, "Output blocked by content filtering policy"
	}
	type inner struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}
	return e.Status, struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", inner{anthropicError(e.Status), strings.ToValidUTF8(e.Message, "?")}, "req_0"}
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
