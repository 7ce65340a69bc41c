package openai

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
)

// Dialect is the server's side of OpenAI's chat completions. Its thoughts are where the style says.
type Dialect struct{ Thinking string }

func (Dialect) Routes() []string { return []string{"POST /v1/chat/completions"} }

func (Dialect) Key(h http.Header) string { return gateway.Bearer(h) }

func (c Dialect) Decode(body []byte) (gateway.Prompt, *gateway.Refusal) {
	var doc chatRequest
	if e := gateway.Parse(body, &doc); e != nil {
		return gateway.Prompt{}, e
	}
	req, e := doc.decode()
	return gateway.Prompt{
		Deployment: doc.Model, Stream: doc.Stream, Counted: doc.StreamOptions.Usage,
		Beyond: gateway.Beyond(doc.Stream), Request: req,
	}, e
}

func (c Dialect) Encode(r gateway.Reply) any { return newChatCompletion(r, c.Thinking) }

func (Dialect) Refuse(e gateway.Refusal) (status int, body any) { return e.Status, e.Body() }

// Forgotten uses the words of the endpoints that have the style.
func (c Dialect) Forgotten(i int, changed bool) *gateway.Refusal {
	switch {
	case c.Thinking == gateway.ThinkingSignature && changed:
		return gateway.BadRequest("", "Corrupted thought signature.")
	case c.Thinking == gateway.ThinkingSignature:
		return gateway.BadRequest("", "Function call is missing a thought_signature in functionCall "+
			"parts. This is required for tools to work correctly, and missing thought_signature "+
			"may lead to degraded model performance.")
	case c.Thinking == gateway.ThinkingDetails:
		return gateway.BadRequest("", "messages.%d.content.0: Invalid `signature` in `thinking` block", i)
	}
	return gateway.BadRequest("",
		"The `reasoning_content` in the thinking mode must be passed back to the API.")
}

// AzureDialect is the same with the deployment in the path and a header of its own for keys.
type AzureDialect struct{ Dialect }

func (AzureDialect) Routes() []string {
	return []string{"POST /openai/deployments/{deployment}/chat/completions"}
}

func (AzureDialect) Key(h http.Header) string { return h.Get("Api-Key") }

// chatRequest is a request of the server.
type chatRequest struct{ request[chatMessage] }

type chatMessage struct {
	Role       string       `json:"role"`
	Content    any          `json:"content"` // see text
	ToolCalls  []call       `json:"tool_calls"`
	ToolCallID string       `json:"tool_call_id"`
	ID         string       `json:"id"` // of the call, as Qwen-Agent has it
	Name       string       `json:"name"`
	Reasoning  *string      `json:"reasoning_content"`
	Details    []chatDetail `json:"reasoning_details"`
}

// chatExtra is what Gemini adds to a call.
type chatExtra struct {
	Google struct {
		Signature gateway.Thought `json:"thought_signature"`
	} `json:"google"`
}

// chatDetail is an entry of OpenRouter's reasoning_details.
type chatDetail struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Signature gateway.Thought `json:"signature,omitempty"`
	Format    string          `json:"format"`
	Index     int             `json:"index"`
}

// chatText is a part of a content, and chatThought is one of Mistral's.
type chatText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type chatThought struct {
	Type     string     `json:"type"`
	Thinking []chatText `json:"thinking"`
}

// thinkingIn returns the text of the first part of a content if that is a thinking one, or "".
func thinkingIn(content any) string {
	parts, _ := content.([]any)
	if len(parts) == 0 {
		return ""
	}
	part, _ := parts[0].(map[string]any)
	thinking, _ := gateway.Text(part["thinking"])
	return thinking
}

// decode converts a body to a request.
func (b *chatRequest) decode() (assay.Request, *gateway.Refusal) {
	req := assay.Request{
		Sampling: assay.Sampling{
			Temperature: b.Temperature, TopP: b.TopP, MaxTokens: b.limit(), Seed: b.Seed,
			Effort: b.Effort, Thinking: b.Thinking.Tokens(), ToolChoice: gateway.ChoiceOf(b.ToolChoice),
		},
	}
	if e := b.check(); e != nil {
		return req, e
	}
	req.Messages = make([]assay.Message, 0, len(b.Messages))
	names := make(map[int]string)
	for i := range b.Messages {
		out, e := b.Messages[i].message(i)
		if e != nil {
			return req, e
		}
		names[i] = b.Messages[i].Name
		req.Messages = append(req.Messages, out)
	}
	for _, t := range b.Tools {
		req.Functions = append(req.Functions, assay.Function(t.Function))
	}
	return req, gateway.Identify(req.Messages, names, false)
}

func (b *chatRequest) limit() *int {
	if b.MaxCompletionTokens != nil {
		return b.MaxCompletionTokens
	}
	return b.MaxTokens
}

func (b *chatRequest) check() *gateway.Refusal {
	switch {
	case b.N != nil && *b.N != 1:
		return gateway.BadRequest("n", "This server gives one choice.")
	case len(b.Messages) == 0:
		return gateway.BadRequest("messages", "Invalid 'messages': empty array.")
	}
	if n := b.limit(); n != nil && *n < 1 {
		return gateway.BadRequest("max_tokens", "Invalid 'max_tokens': %d is below 1.", *n)
	}
	for i, t := range b.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return gateway.BadRequest("tools", "Invalid 'tools[%d]': not a function with a name.", i)
		}
	}
	return b.Format.Check("response_format")
}

func (m *chatMessage) message(i int) (assay.Message, *gateway.Refusal) {
	content, err := gateway.Text(m.Content)
	if err != nil {
		return assay.Message{}, gateway.BadRequest("messages",
			"Invalid 'messages[%d].content': %v.", i, err)
	}
	out := assay.Message{Content: content, CallID: m.ToolCallID, State: m.Thought()}
	switch m.Role {
	case "system", "developer":
		out.Role = assay.System
	case "user", "assistant", "tool":
		out.Role = assay.Role(m.Role)
	default:
		return out, gateway.BadRequest("messages",
			"Invalid value: '%s' for 'messages[%d].role'.", m.Role, i)
	}
	if out.Role == assay.ToolRole && out.CallID == "" {
		out.CallID = m.ID
	}
	for _, c := range m.ToolCalls {
		call := assay.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
		out.Calls = append(out.Calls, call)
	}
	return out, nil
}

// thought returns the state of a message, in whichever of the places it is.
func (m *chatMessage) Thought() *assay.State {
	thinking := thinkingIn(m.Content)
	switch {
	case thinking != "":
		return gateway.ThoughtIn(thinking).State()
	case m.Reasoning != nil:
		return gateway.ThoughtIn(*m.Reasoning).State()
	case len(m.Details) == 2 && m.Details[1].Signature.Text() == m.Details[0].Text:
		return m.Details[1].Signature.State()
	case len(m.Details) > 0:
		return gateway.Thought("changed").State()
	case len(m.ToolCalls) > 0 && m.ToolCalls[0].Extra != nil:
		var extra chatExtra
		_ = json.Unmarshal(m.ToolCalls[0].Extra, &extra)
		return extra.Google.Signature.State()
	}
	return nil
}

// chatCompletion is the body of a reply.
type chatCompletion struct {
	ID      string            `json:"id"`
	Object  string            `json:"object"`
	Created int64             `json:"created"`
	Model   string            `json:"model"`
	Choices []chatReplyChoice `json:"choices"`
	Usage   usage             `json:"usage"`
}

type chatReplyChoice struct {
	Index        int       `json:"index"`
	Message      chatReply `json:"message"`
	Logprobs     *struct{} `json:"logprobs"`
	FinishReason string    `json:"finish_reason"`
}

type chatReply struct {
	Role      string       `json:"role"`
	Content   any          `json:"content"` // a text, parts, or null
	Reasoning string       `json:"reasoning_content,omitempty"`
	Details   []chatDetail `json:"reasoning_details,omitempty"`
	Refusal   *string      `json:"refusal"`
	ToolCalls []call       `json:"tool_calls,omitempty"`
}

// newChatCompletion encodes a reply.
func newChatCompletion(r gateway.Reply, thinking string) chatCompletion {
	c := chatCompletion{
		ID:      "chatcmpl-" + strconv.FormatUint(r.ID, 16),
		Object:  "chat.completion",
		Created: r.Created,
		Model:   r.Model,
		Choices: []chatReplyChoice{},
		Usage: usage{
			Input:  int64(r.Usage.InputTokens),
			Output: int64(r.Usage.OutputTokens),
			Total:  int64(r.Usage.Total()),
		},
	}
	c.Usage.InputDetails.Cached = int64(r.Usage.CachedTokens)
	c.Usage.OutputDetails.Reasoning = new(int64(r.Usage.ReasoningTokens))
	if !r.Nothing {
		m, finish := newChatReply(&r.Message, r.Finish)
		if r.Thought != "" {
			m.think(r.Thought, thinking)
		}
		c.Choices = append(c.Choices, chatReplyChoice{Message: m, FinishReason: finish})
	}
	return c
}

// newChatReply returns a message and its finish reason.
func newChatReply(m *assay.Message, finish string) (chatReply, string) {
	out := chatReply{Role: "assistant", Reasoning: m.Reasoning}
	switch {
	case finish == "refusal":
		out.Refusal = &m.Content
		return out, "stop"
	case finish == "" && len(m.Calls) > 0:
		finish = "tool_calls"
	case finish == "":
		finish = "stop"
	}
	for _, c := range m.Calls {
		own := call{ID: c.ID, Type: "function"}
		own.Function.Name, own.Function.Arguments = c.Name, c.Arguments
		out.ToolCalls = append(out.ToolCalls, own)
	}
	if m.Content != "" || len(out.ToolCalls) == 0 {
		out.Content = m.Content
	}
	return out, finish
}

// think adds a thought to a message.
func (m *chatReply) think(t gateway.Thought, style string) {
	switch style {
	case gateway.ThinkingDetails:
		const format = "anthropic-claude-v1"
		m.Details = []chatDetail{
			{Type: "reasoning.text", Text: t.Text(), Format: format},
			{Type: "reasoning.text", Signature: t, Format: format, Index: 1},
		}
	case gateway.ThinkingParts:
		parts := []any{chatThought{"thinking", []chatText{{"text", t.Text()}}}}
		if text, ok := m.Content.(string); ok {
			parts = append(parts, chatText{"text", text})
		}
		m.Content = parts
	case gateway.ThinkingSignature:
		if len(m.ToolCalls) > 0 {
			var extra chatExtra
			extra.Google.Signature = t
			m.ToolCalls[0].Extra = gateway.Encode(extra)
		}
	default:
		m.Reasoning = t.Text()
	}
}
