package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Dialect is the server's side of Anthropic's Messages API.
type Dialect struct{}

func (Dialect) Routes() []string { return []string{"POST /v1/messages"} }

func (Dialect) Key(h http.Header) string { return h.Get("X-Api-Key") }

// served is a request of the server.
type served = request[any, json.RawMessage]

func (Dialect) Decode(body []byte) (gateway.Prompt, *gateway.Refusal) {
	var doc served
	if e := gateway.Parse(body, &doc); e != nil {
		return gateway.Prompt{}, e
	}
	req, e := decode(&doc)
	return gateway.Prompt{
		Deployment: doc.Model, Stream: doc.Stream, Beyond: gateway.Beyond(doc.Stream), Request: req,
	}, e
}

func decode(b *served) (assay.Request, *gateway.Refusal) {
	req := assay.Request{Sampling: samplingOf(b)}
	if e := check(b); e != nil {
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
		all, e := messages(&b.Messages[i], i)
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
	var e *gateway.Refusal
	req.Form, e = cmp.Or(b.Output, new(output)).Format.Form("output_config.format")
	return req, e
}

func samplingOf(b *served) assay.Sampling {
	s := assay.Sampling{
		Temperature: b.Temperature, TopP: b.TopP, MaxTokens: b.MaxTokens,
		Effort: cmp.Or(b.Output, new(output)).Effort, Thinking: b.Thinking.Tokens(),
		ToolChoice: cmp.Or(b.ToolChoice, new(toolChoice)).Type,
	}
	if s.ToolChoice == "any" || s.ToolChoice == "tool" {
		s.ToolChoice = "required"
	}
	return s
}

// threadUnsupported is the code of a refusal after which Anthropic's SDKs send whole conversations.
const threadUnsupported = "thread_unsupported_request"

// check checks rules that the real endpoint has.
func check(b *served) *gateway.Refusal {
	thinking := cmp.Or(b.Thinking, new(gateway.Thinking))
	enabled := thinking.Type == "enabled"
	thinks := enabled || thinking.Type == "adaptive"
	switch {
	case b.Thread != nil:
		e := gateway.Kept("thread")
		e.Code = threadUnsupported
		return e
	case b.MaxTokens == nil:
		return gateway.BadRequest("", "max_tokens: Field required")
	case *b.MaxTokens < 1:
		return gateway.BadRequest("", "max_tokens: Input should be greater than or equal to 1")
	case len(b.Messages) == 0:
		return gateway.BadRequest("", "messages: at least one message is required")
	case enabled && thinking.Budget < 1024:
		return gateway.BadRequest("",
			"thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case enabled && thinking.Budget >= *b.MaxTokens:
		return gateway.BadRequest("", "`max_tokens` must be greater than `thinking.budget_tokens`.")
	case thinks && b.Temperature != nil && *b.Temperature != 1:
		return gateway.BadRequest("", "`temperature` may only be set to 1 when thinking is enabled.")
	case thinks && samplingOf(b).ToolChoice == "required":
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
	return nil
}

// messages returns the messages that a message consists of: the answers to calls first.
func messages(m *turnMessage[json.RawMessage], i int) ([]assay.Message, *gateway.Refusal) {
	blocks, e := blocksOf(m.Content, i)
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

func blocksOf(content json.RawMessage, i int) ([]block, *gateway.Refusal) {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return []block{{Type: "text", Text: &s}}, nil
	}
	var blocks []block
	if err := json.Unmarshal(content, &blocks); err != nil {
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

func userMessages(i int, blocks []block) ([]assay.Message, *gateway.Refusal) {
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
func assistantMessage(i int, blocks []block) (assay.Message, *gateway.Refusal) {
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

func (Dialect) Encode(r gateway.Reply) any {
	u := r.Usage
	body := reply{
		ID: "msg_" + strconv.FormatUint(r.ID, 16), Type: "message", Role: "assistant",
		Model: r.Model, StopReason: stopReason(&r.Response),
		Usage: usage{
			Input:      wire.Count(u.InputTokens - u.CachedTokens - u.CacheWriteTokens),
			CacheRead:  wire.Count(u.CachedTokens),
			CacheWrite: wire.Count(u.CacheWriteTokens),
			Output:     wire.Count(u.OutputTokens), ServiceTier: "standard",
		},
	}
	body.Usage.OutputDetails.Thinking = wire.Count(u.ReasoningTokens)
	if !r.Nothing {
		body.Content = gateway.Encode(contentOf(&r))
	}
	return body
}

func stopReason(r *assay.Response) string {
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

func contentOf(r *gateway.Reply) []block {
	content := []block{}
	switch {
	case r.Thought != "":
		content = append(content, block{
			Type: "thinking", Thinking: new(r.Thought.Text()), Signature: r.Thought,
		})
	case r.Message.Reasoning != "":
		content = append(content, block{Type: "thinking", Thinking: &r.Message.Reasoning})
	}
	if r.Message.Content != "" {
		content = append(content, block{Type: "text", Text: &r.Message.Content})
	}
	for _, c := range r.Message.Calls {
		input := json.RawMessage(cmp.Or(c.Arguments, "{}"))
		if !json.Valid(input) {
			input = gateway.Encode(c.Arguments) // the API cannot express it
		}
		content = append(content, block{
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
	type details struct {
		Code        string   `json:"error_code"`
		Unsupported []string `json:"unsupported"`
	}
	type inner struct {
		Type    string   `json:"type"`
		Message string   `json:"message"`
		Details *details `json:"details,omitempty"`
	}
	problem := inner{Type: errorType(e.Status), Message: strings.ToValidUTF8(e.Message, "?")}
	if e.Code == threadUnsupported {
		problem.Details = &details{e.Code, []string{}}
	}
	return e.Status, struct {
		Type      string `json:"type"`
		Error     inner  `json:"error"`
		RequestID string `json:"request_id"`
	}{"error", problem, "req_0"}
}

func errorType(status int) string {
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
