package simserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

const contentJSON = "application/json"

// apiError is an error of OpenAI's API.
type apiError struct {
	status  int
	message string
	kind    string
	param   string
	code    string
}

func badRequest(param, format string, args ...any) *apiError {
	return &apiError{
		status: http.StatusBadRequest, message: fmt.Sprintf(format, args...),
		kind: "invalid_request_error", param: param,
	}
}

// chatRequest is the body of a request.
type chatRequest struct {
	Model               string        `json:"model"`
	Messages            []chatMessage `json:"messages"`
	Tools               []chatTool    `json:"tools"`
	Temperature         *float64      `json:"temperature"`
	TopP                *float64      `json:"top_p"`
	MaxTokens           *int          `json:"max_tokens"`
	MaxCompletionTokens *int          `json:"max_completion_tokens"`
	Stream              bool          `json:"stream"`
	N                   *int          `json:"n"`
}

type chatMessage struct {
	Role       string     `json:"role"`
	Content    any        `json:"content"` // see text
	ToolCalls  []chatCall `json:"tool_calls"`
	ToolCallID string     `json:"tool_call_id"`
}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
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
			if part["type"] != "text" {
				const format = "content of type %q, where only text is supported"
				return "", fmt.Errorf(format, part["type"])
			}
			text, _ := part["text"].(string)
			all.WriteString(text)
		}
		return all.String(), nil
	}
	return "", errors.New("neither text nor a list of parts")
}

// request converts a body to a request.
func (b *chatRequest) request(model string) (assay.Request, *apiError) {
	req := assay.Request{
		Model: model,
		Sampling: assay.Sampling{
			Temperature: b.Temperature, TopP: b.TopP, MaxTokens: b.limit(),
		},
	}
	if e := b.check(); e != nil {
		return req, e
	}
	req.Messages = make([]assay.Message, 0, len(b.Messages))
	for i := range b.Messages {
		out, e := b.Messages[i].message(i)
		if e != nil {
			return req, e
		}
		req.Messages = append(req.Messages, out)
	}
	for _, t := range b.Tools {
		req.Functions = append(req.Functions, t.Function)
	}
	return req, checkDialogue(req.Messages)
}

func (b *chatRequest) limit() *int {
	if b.MaxCompletionTokens != nil {
		return b.MaxCompletionTokens
	}
	return b.MaxTokens
}

func (b *chatRequest) check() *apiError {
	switch {
	case b.Stream:
		return badRequest("stream", "This server does not stream.")
	case b.N != nil && *b.N != 1:
		return badRequest("n", "This server gives one choice.")
	case len(b.Messages) == 0:
		return badRequest("messages", "Invalid 'messages': empty array.")
	}
	if n := b.limit(); n != nil && *n < 1 {
		return badRequest("max_tokens", "Invalid 'max_tokens': %d is below 1.", *n)
	}
	for i, t := range b.Tools {
		if t.Type != "function" || t.Function.Name == "" {
			return badRequest("tools", "Invalid 'tools[%d]': not a function with a name.", i)
		}
	}
	return nil
}

func (m *chatMessage) message(i int) (assay.Message, *apiError) {
	content, err := text(m.Content)
	if err != nil {
		return assay.Message{}, badRequest("messages",
			"Invalid 'messages[%d].content': %v.", i, err)
	}
	out := assay.Message{Content: content, CallID: m.ToolCallID}
	switch m.Role {
	case "system", "developer":
		out.Role = assay.System
	case "user", "assistant", "tool":
		out.Role = assay.Role(m.Role)
	default:
		return out, badRequest("messages",
			"Invalid value: '%s' for 'messages[%d].role'.", m.Role, i)
	}
	for _, c := range m.ToolCalls {
		call := assay.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments}
		out.Calls = append(out.Calls, call)
	}
	return out, nil
}

// checkDialogue refuses a conversation if the calls of an assistant's message are
// not all answered by the messages after it. OpenAI does the same.
func checkDialogue(messages []assay.Message) *apiError {
	pending := make(map[string]bool)
	for i, m := range messages {
		if m.Role == assay.ToolRole {
			if !pending[m.CallID] {
				return badRequest("messages",
					"Invalid 'messages[%d]': no tool call with the ID '%s' waits for this answer.",
					i, m.CallID)
			}
			delete(pending, m.CallID)
			continue
		}
		if len(pending) > 0 {
			break
		}
		for _, c := range m.Calls {
			pending[c.ID] = true
		}
	}
	if len(pending) > 0 {
		return badRequest("messages", "An assistant message with 'tool_calls' must be followed by "+
			"tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

// estimate estimates the number of tokens in a conversation.
func estimate(req assay.Request) int {
	n := 0
	for _, m := range req.Messages {
		n += 16 + len(m.Content)
		for _, c := range m.Calls {
			n += 16 + len(c.Name) + len(c.Arguments)
		}
	}
	for _, f := range req.Functions {
		n += len(f.Name) + len(f.Description) + len(f.Parameters)
	}
	return n/4 + 1
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
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Refusal   *string    `json:"refusal"`
	ToolCalls []chatCall `json:"tool_calls,omitempty"`
}

type completionUsage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
}

// newCompletion encodes a reply. id and created are parameters so that the reply
// depends only on the request, except for the time.
func newCompletion(id uint64, created int64, model string, resp assay.Response) completion {
	m := replyMessage{Role: "assistant", Reasoning: resp.Message.Reasoning}
	finish := "stop"
	for _, c := range resp.Message.Calls {
		call := chatCall{ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
		m.ToolCalls = append(m.ToolCalls, call)
		finish = "tool_calls"
	}
	if resp.Message.Content != "" || len(m.ToolCalls) == 0 {
		m.Content = &resp.Message.Content
	}
	return completion{
		ID:      "chatcmpl-" + strconv.FormatUint(id, 16),
		Object:  "chat.completion",
		Created: created,
		Model:   model,
		Choices: []choice{{Message: m, FinishReason: finish}},
		Usage: completionUsage{
			PromptTokens:     resp.Usage.InputTokens,
			CompletionTokens: resp.Usage.OutputTokens,
			TotalTokens:      resp.Usage.Total(),
		},
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	writeBody(w, status, encode(v))
}

// writeBody ignores a failed write, which means that the client has left.
func writeBody(w http.ResponseWriter, status int, body []byte) {
	writeHead(w, status, contentJSON, len(body))
	_, _ = w.Write(body)
}

func writeHead(w http.ResponseWriter, status int, contentType string, length int) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(length))
	w.WriteHeader(status)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("simserver: encode a response: " + err.Error())
	}
	return b
}

func writeError(w http.ResponseWriter, e apiError) {
	writeBody(w, e.status, e.body())
}

func (e apiError) body() []byte {
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
	return encode(map[string]inner{"error": {
		Message: strings.ToValidUTF8(e.message, "?"), Type: e.kind,
		Param: orNull(e.param), Code: orNull(e.code),
	}})
}
