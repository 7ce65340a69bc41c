package openai

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Dialect is the server's side of OpenAI's chat completions. Its thoughts are where the style says.
type Dialect struct{ Thinking string }

func (Dialect) Routes() []string { return []string{"POST /v1/chat/completions"} }

func (Dialect) Key(h http.Header) string { return gateway.Bearer(h) }

func (c Dialect) Decode(body []byte) (gateway.Prompt, *gateway.Refusal) {
	var doc request
	if e := gateway.Parse(body, &doc); e != nil {
		return gateway.Prompt{}, e
	}
	req, e := doc.decode()
	return gateway.Prompt{
		Deployment: doc.Model, Stream: doc.Stream, Counted: doc.StreamOptions.Usage,
		Beyond: gateway.Beyond(doc.Stream), Request: req,
	}, e
}

func (c Dialect) Encode(r gateway.Reply) any { return newCompletion(r, c.Thinking) }

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

// AzureDialect is the same with the deployment in the path and a separate header for keys.
type AzureDialect struct{ Dialect }

func (AzureDialect) Routes() []string {
	return []string{"POST /openai/deployments/{deployment}/chat/completions"}
}

func (AzureDialect) Key(h http.Header) string { return h.Get("Api-Key") }

// chatExtra is Gemini's addition to a call.
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

// chatText is a part of a content.
type chatText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// decode converts a body to a request.
func (b *request) decode() (assay.Request, *gateway.Refusal) {
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
		names[i] = string(b.Messages[i].Name)
		req.Messages = append(req.Messages, out)
	}
	for _, t := range b.Tools {
		req.Functions = append(req.Functions, assay.Function(t.Function))
	}
	var e *gateway.Refusal
	if req.Form, e = b.Format.Form("response_format"); e != nil {
		return req, e
	}
	return req, gateway.Identify(req.Messages, names, false)
}

func (b *request) limit() *int {
	if b.MaxCompletionTokens != nil {
		return b.MaxCompletionTokens
	}
	return b.MaxTokens
}

func (b *request) check() *gateway.Refusal {
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
	return nil
}

func (m *message) message(i int) (assay.Message, *gateway.Refusal) {
	text, err := gateway.Text(m.Content)
	if err != nil {
		return assay.Message{}, gateway.BadRequest("messages",
			"Invalid 'messages[%d].content': %v.", i, err)
	}
	out := assay.Message{Content: text, State: m.thought().State()}
	switch m.Role {
	case "system", "developer":
		out.Role = assay.System
	case "user", "assistant", "tool":
		out.Role = assay.Role(m.Role)
	default:
		return out, gateway.BadRequest("messages",
			"Invalid value: '%s' for 'messages[%d].role'.", m.Role, i)
	}
	if m.CallID != nil {
		out.CallID = *m.CallID
	}
	if out.Role == assay.ToolRole && out.CallID == "" {
		out.CallID = string(m.ID)
	}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, assay.ToolCall{
			ID: string(c.ID), Name: string(c.Function.Name), Arguments: string(c.Function.Arguments),
		})
	}
	return out, nil
}

// thought returns the thought of a message, in whichever of the places it is, or "".
func (m *message) thought() gateway.Thought {
	var details []chatDetail
	_ = json.Unmarshal(m.Details, &details)
	thinking := ""
	if parts, _ := m.Content.([]any); len(parts) > 0 {
		part, _ := parts[0].(map[string]any)
		thinking, _ = gateway.Text(part["thinking"])
	}
	switch {
	case thinking != "":
		return gateway.ThoughtIn(thinking)
	case present(m.thoughts.Content) != nil:
		return gateway.ThoughtIn(wire.TextOf(m.thoughts.Content))
	case len(details) == 2 && details[1].Signature.Text() == details[0].Text:
		return details[1].Signature
	case len(details) > 0:
		return "changed"
	case len(m.Calls) > 0 && m.Calls[0].Extra != nil:
		var extra chatExtra
		_ = json.Unmarshal(m.Calls[0].Extra, &extra)
		return extra.Google.Signature
	}
	return ""
}

// newCompletion encodes a reply.
func newCompletion(r gateway.Reply, thinking string) completion {
	c := completion{
		ID:      wire.Text("chatcmpl-" + strconv.FormatUint(r.ID, 16)),
		Object:  "chat.completion",
		Created: r.Created,
		Model:   wire.Text(r.Model),
		Choices: []choice{},
		Usage: usage{
			Input:  wire.Count(r.Usage.InputTokens),
			Output: wire.Count(r.Usage.OutputTokens),
			Total:  wire.Count(r.Usage.Total()),
		},
	}
	c.Usage.InputDetails.Cached = wire.Count(r.Usage.CachedTokens)
	c.Usage.OutputDetails.Reasoning = new(wire.Count(r.Usage.ReasoningTokens))
	if !r.Nothing {
		m, finish := newReply(&r.Message, r.Finish)
		if r.Thought != "" {
			m.think(r.Thought, thinking)
		}
		c.Choices = append(c.Choices, choice{Message: m, FinishReason: wire.Text(finish)})
	}
	return c
}

// newReply returns a message and its finish reason.
func newReply(m *assay.Message, finish string) (reply, string) {
	out := reply{message: message{Role: "assistant"}}
	if m.Reasoning != "" {
		out.thoughts.Content = gateway.Encode(m.Reasoning)
	}
	switch {
	case finish == "refusal":
		out.Refusal = new(wire.Text(m.Content))
		return out, "stop"
	case finish == "" && len(m.Calls) > 0:
		finish = "tool_calls"
	case finish == "":
		finish = "stop"
	}
	for _, c := range m.Calls {
		out.Calls = append(out.Calls, newCall(c.ID, c.Name, c.Arguments))
	}
	if m.Content != "" || len(out.Calls) == 0 {
		out.Content = gateway.Encode(m.Content)
	}
	return out, finish
}

// think adds a thought to a message.
func (m *reply) think(t gateway.Thought, style string) {
	switch style {
	case gateway.ThinkingDetails:
		const format = "anthropic-claude-v1"
		m.Details = gateway.Encode([]chatDetail{
			{Type: "reasoning.text", Text: t.Text(), Format: format},
			{Type: "reasoning.text", Signature: t, Format: format, Index: 1},
		})
	case gateway.ThinkingParts:
		parts := []any{map[string]any{
			"type": "thinking", "thinking": []chatText{{"text", t.Text()}},
		}}
		if m.Content != nil {
			parts = append(parts, chatText{"text", wire.TextOf(m.Content)})
		}
		m.Content = gateway.Encode(parts)
	case gateway.ThinkingSignature:
		if len(m.Calls) > 0 {
			var extra chatExtra
			extra.Google.Signature = t
			m.Calls[0].Extra = gateway.Encode(extra)
		}
	default:
		m.thoughts.Content = gateway.Encode(t.Text())
	}
}
