package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// chat is OpenAI's chat completions. Its thoughts are where the style says.
type chat struct{ thinking string }

func (chat) Routes() []string { return []string{"POST /v1/chat/completions"} }

func (chat) Key(h http.Header) string { return Bearer(h) }

func (c chat) Decode(body []byte) (Prompt, *Refusal) {
	var doc chatRequest
	if e := parse(body, &doc); e != nil {
		return Prompt{}, e
	}
	req, e := doc.request()
	return Prompt{
		Deployment: doc.Model, Stream: doc.Stream, Counted: doc.StreamOptions.Usage,
		Beyond: beyond(doc.Stream), Request: req,
	}, e
}

func (c chat) Encode(r Reply) any { return newCompletion(r, c.thinking) }

func (chat) Refuse(e Refusal) (status int, body any) {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	orNull := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return e.Status, map[string]inner{"error": {
		Message: strings.ToValidUTF8(e.Message, "?"), Type: e.Kind,
		Param: orNull(e.Param), Code: orNull(e.Code),
	}}
}

// forgotten uses the words of the endpoints that have the style.
func (c chat) Forgotten(i int, changed bool) *Refusal {
	switch {
	case c.thinking == ThinkingSignature && changed:
		return BadRequest("", "Corrupted thought signature.")
	case c.thinking == ThinkingSignature:
		return BadRequest("", "Function call is missing a thought_signature in functionCall "+
			"parts. This is required for tools to work correctly, and missing thought_signature "+
			"may lead to degraded model performance.")
	case c.thinking == ThinkingDetails:
		return BadRequest("", "messages.%d.content.0: Invalid `signature` in `thinking` block", i)
	}
	return BadRequest("",
		"The `reasoning_content` in the thinking mode must be passed back to the API.")
}

// azure is the same with the deployment in the path and a header of its own for keys.
type azure struct{ chat }

func (azure) Routes() []string {
	return []string{"POST /openai/deployments/{deployment}/chat/completions"}
}

func (azure) Key(h http.Header) string { return h.Get("Api-Key") }

// chatRequest is the body of a request.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools"`
	Temperature         *float64      `json:"temperature"`
	TopP                *float64      `json:"top_p"`
	MaxTokens           *int          `json:"max_tokens"`
	MaxCompletionTokens *int          `json:"max_completion_tokens"`
	Seed                *int64        `json:"seed"`
	Effort              string        `json:"reasoning_effort"`
	Thinking            chatThinking  `json:"thinking"`
	ToolChoice          any           `json:"tool_choice"` // see choiceOf
	Stream              bool          `json:"stream"`
	StreamOptions       struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`
	N      *int   `json:"n"`
	Format format `json:"response_format"`
}

// chatThinking is DeepSeek's and Anthropic's.
type chatThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens"`
}

// tokens returns the budget for thinking, 0 if it is off, or nil if it is not set.
func (t chatThinking) tokens() *int {
	switch t.Type {
	case "enabled":
		return &t.Budget
	case "disabled":
		return new(0)
	}
	return nil
}

type chatMessage struct {
	Role       string       `json:"role"`
	Content    any          `json:"content"` // see text
	ToolCalls  []chatCall   `json:"tool_calls"`
	ToolCallID string       `json:"tool_call_id"`
	ID         string       `json:"id"` // of the call, as Qwen-Agent has it
	Name       string       `json:"name"`
	Reasoning  *string      `json:"reasoning_content"`
	Details    []chatDetail `json:"reasoning_details"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Extra *chatExtra `json:"extra_content,omitempty"`
}

// chatExtra is what Gemini adds to a call.
type chatExtra struct {
	Google struct {
		Signature Thought `json:"thought_signature"`
	} `json:"google"`
}

// chatDetail is an entry of OpenRouter's reasoning_details.
type chatDetail struct {
	Type      string  `json:"type"`
	Text      string  `json:"text,omitempty"`
	Signature Thought `json:"signature,omitempty"`
	Format    string  `json:"format"`
	Index     int     `json:"index"`
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

type chatTool struct {
	Type     string         `json:"type"`
	Function assay.Function `json:"function"`
}

// text returns the text of a message's content, which is a string, null or a list
// of parts on the wire. The content is decoded as any because a custom decoder
// would parse each text twice.
func text(content any) (string, error) {
	switch c := content.(type) {
	case nil:
		return "", nil
	case string:
		return c, nil
	case []any:
		var all strings.Builder
		for _, p := range c {
			part, _ := p.(map[string]any)
			switch part["type"] {
			case "text":
				text, _ := part["text"].(string)
				all.WriteString(text)
			case "thinking": // see thinkingIn
			default:
				const format = "content of type %q, where only text is supported"
				return "", fmt.Errorf(format, part["type"])
			}
		}
		return all.String(), nil
	}
	return "", errors.New("neither text nor a list of parts")
}

// thinkingIn returns the text of the first part of a content if that is a thinking one, or "".
func thinkingIn(content any) string {
	parts, _ := content.([]any)
	if len(parts) == 0 {
		return ""
	}
	part, _ := parts[0].(map[string]any)
	thinking, _ := text(part["thinking"])
	return thinking
}

// request converts a body to a request.
func (b *chatRequest) request() (assay.Request, *Refusal) {
	req := assay.Request{
		Sampling: assay.Sampling{
			Temperature: b.Temperature, TopP: b.TopP, MaxTokens: b.limit(), Seed: b.Seed,
			Effort: b.Effort, Thinking: b.Thinking.tokens(), ToolChoice: choiceOf(b.ToolChoice),
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
		req.Functions = append(req.Functions, t.Function)
	}
	return req, identify(req.Messages, names, false)
}

func (b *chatRequest) limit() *int {
	if b.MaxCompletionTokens != nil {
		return b.MaxCompletionTokens
	}
	return b.MaxTokens
}

// choiceOf returns a choice of tools. A choice of one function is spelled as an object.
func choiceOf(choice any) string {
	if word, ok := choice.(string); ok || choice == nil {
		return word
	}
	return "required"
}

// beyond returns the refusal of a stream by a server that has none.
func beyond(stream bool) *Refusal {
	if stream {
		return BadRequest("stream", "This server does not stream.")
	}
	return nil
}

func (b *chatRequest) check() *Refusal {
	switch {
	case b.N != nil && *b.N != 1:
		return BadRequest("n", "This server gives one choice.")
	case len(b.Messages) == 0:
		return BadRequest("messages", "Invalid 'messages': empty array.")
	}
	if n := b.limit(); n != nil && *n < 1 {
		return BadRequest("max_tokens", "Invalid 'max_tokens': %d is below 1.", *n)
	}
	for i, t := range b.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return BadRequest("tools", "Invalid 'tools[%d]': not a function with a name.", i)
		}
	}
	return b.Format.check("response_format")
}

func (m *chatMessage) message(i int) (assay.Message, *Refusal) {
	content, err := text(m.Content)
	if err != nil {
		return assay.Message{}, BadRequest("messages",
			"Invalid 'messages[%d].content': %v.", i, err)
	}
	out := assay.Message{Content: content, CallID: m.ToolCallID, State: m.Thought()}
	switch m.Role {
	case "system", "developer":
		out.Role = assay.System
	case "user", "assistant", "tool":
		out.Role = assay.Role(m.Role)
	default:
		return out, BadRequest("messages",
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
		return thoughtIn(thinking).state()
	case m.Reasoning != nil:
		return thoughtIn(*m.Reasoning).state()
	case len(m.Details) == 2 && m.Details[1].Signature.Text() == m.Details[0].Text:
		return m.Details[1].Signature.state()
	case len(m.Details) > 0:
		return Thought("changed").state()
	case len(m.ToolCalls) > 0 && m.ToolCalls[0].Extra != nil:
		return m.ToolCalls[0].Extra.Google.Signature.state()
	}
	return nil
}

// completion is the body of a reply.
type completion struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"`
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Choices []choice        `json:"choices"`
	Usage   completionUsage `json:"usage"`
}

type choice struct {
	Index        int          `json:"index"`
	Message      replyMessage `json:"message"`
	Logprobs     *struct{}    `json:"logprobs"`
	FinishReason string       `json:"finish_reason"`
}

type replyMessage struct {
	Role      string       `json:"role"`
	Content   any          `json:"content"` // a text, parts, or null
	Reasoning string       `json:"reasoning_content,omitempty"`
	Details   []chatDetail `json:"reasoning_details,omitempty"`
	Refusal   *string      `json:"refusal"`
	ToolCalls []chatCall   `json:"tool_calls,omitempty"`
}

type completionUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	PromptDetails    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// newCompletion encodes a reply.
func newCompletion(r Reply, thinking string) completion {
	c := completion{
		ID:      "chatcmpl-" + strconv.FormatUint(r.ID, 16),
		Object:  "chat.completion",
		Created: r.Created,
		Model:   r.Model,
		Choices: []choice{},
		Usage: completionUsage{
			PromptTokens:     r.Usage.InputTokens,
			CompletionTokens: r.Usage.OutputTokens,
			TotalTokens:      r.Usage.Total(),
		},
	}
	c.Usage.PromptDetails.Cached = r.Usage.CachedTokens
	c.Usage.CompletionDetails.Reasoning = r.Usage.ReasoningTokens
	if !r.Nothing {
		m, finish := newReplyMessage(&r.Message, r.Finish)
		if r.Thought != "" {
			m.think(r.Thought, thinking)
		}
		c.Choices = append(c.Choices, choice{Message: m, FinishReason: finish})
	}
	return c
}

// newReplyMessage returns a message and its finish reason.
func newReplyMessage(m *assay.Message, finish string) (replyMessage, string) {
	out := replyMessage{Role: "assistant", Reasoning: m.Reasoning}
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
		call := chatCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
		out.ToolCalls = append(out.ToolCalls, call)
	}
	if m.Content != "" || len(out.ToolCalls) == 0 {
		out.Content = m.Content
	}
	return out, finish
}

// think adds a thought to a message.
func (m *replyMessage) think(t Thought, style string) {
	switch style {
	case ThinkingDetails:
		const format = "anthropic-claude-v1"
		m.Details = []chatDetail{
			{Type: "reasoning.text", Text: t.Text(), Format: format},
			{Type: "reasoning.text", Signature: t, Format: format, Index: 1},
		}
	case ThinkingParts:
		parts := []any{chatThought{"thinking", []chatText{{"text", t.Text()}}}}
		if text, ok := m.Content.(string); ok {
			parts = append(parts, chatText{"text", text})
		}
		m.Content = parts
	case ThinkingSignature:
		if len(m.ToolCalls) > 0 {
			m.ToolCalls[0].Extra = new(chatExtra)
			m.ToolCalls[0].Extra.Google.Signature = t
		}
	default:
		m.Reasoning = t.Text()
	}
}
