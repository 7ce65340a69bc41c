// Package gateway is the server's side of the wire protocols: it reads requests and writes replies,
// whole or as the events of a stream. It has the parts that the protocols share; each is a
// [Dialect] in its own package.
//
// It opens no socket and answers no request. The simulated server and the bridge to foreign agents
// serve their models with it.
package gateway

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/assay-eval/assay"
)

// A Dialect is the server's side of a wire protocol.
type Dialect interface {
	// Routes returns the patterns of its requests. See [Target] for {deployment} and {action}.
	Routes() []string
	// Key returns the key of a request, or "".
	Key(h http.Header) string
	// Decode returns the request in a body. It checks the rules of the protocol, except for the
	// rules in CheckDialogue and CheckThoughts.
	Decode(body []byte) (Prompt, *Refusal)
	// Encode returns the body of a reply.
	Encode(r Reply) any
	// Events returns a reply as the events of a stream.
	Events(p *Prompt, r Reply) []Event
	// Refuse returns the status and the body of an error.
	Refuse(e Refusal) (status int, body any)
	// Forgotten returns the refusal of message i, which has calls but lacks its thought or, if
	// changed is true, has a thought that is not the model's.
	Forgotten(i int, changed bool) *Refusal
}

// Target returns the deployment that a request names in its path, or "", and whether the path asks
// for a stream. A path ends with a deployment or, in Gemini's protocol, with an action: a deployment,
// a colon and a method. Methods that do not generate a reply are refused, since a reply costs money.
func Target(r *http.Request) (deployment string, stream bool, wrong *Refusal) {
	action := r.PathValue("action")
	if action == "" {
		return r.PathValue("deployment"), false, nil
	}
	i := max(strings.LastIndexByte(action, ':'), 0)
	switch action[i:] {
	case ":generateContent":
		return action[:i], false, nil
	case ":streamGenerateContent":
		return action[:i], true, nil
	}
	return "", false, &Refusal{
		Status: http.StatusNotFound, Kind: "invalid_request_error", Code: "not_found",
		Message: "There is no '" + action + "' here. This server has the methods generateContent and " +
			"streamGenerateContent of models.",
	}
}

// A Prompt is a request in neutral form. The State of its messages is their thought.
type Prompt struct {
	Deployment string
	// Stream asks for events, and Counted for the usage in one of them.
	Stream, Counted bool
	// Beyond is the refusal of a server that only replies, because the request wants a stream, or
	// that the server keeps the reply. It is nil if such a server can answer.
	Beyond *Refusal
	// Members are the functions that the client has in namespaces, by the names that the model knows
	// them by.
	Members map[string]Member
	assay.Request
}

// A Member is a function of a namespace, which clients of Responses may declare.
type Member struct{ Namespace, Name string }

// A Reply is a response in neutral form. The Finish of its response is "length", "content_filter",
// "refusal" or, if the reply is complete, "".
type Reply struct {
	ID      uint64 // depends only on the request
	Created int64
	Model   string
	Thought Thought // "" unless the model is thinking
	// Nothing is true if the body must not have a message.
	Nothing bool
	Members map[string]Member // of the prompt
	assay.Response
}

// A Refusal is an error in OpenAI's words, which other dialects translate.
type Refusal struct {
	Status  int
	Message string
	Kind    string
	Param   string
	Code    string
}

// BadRequest returns the refusal of a request that breaks a rule of its protocol.
func BadRequest(param, format string, args ...any) *Refusal {
	return &Refusal{
		Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...),
		Kind: "invalid_request_error", Param: param,
	}
}

// Body returns the error as OpenAI's endpoints send it.
func (e Refusal) Body() any {
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
	return map[string]inner{"error": {
		Message: strings.ToValidUTF8(e.Message, "?"), Type: e.Kind,
		Param: orNull(e.Param), Code: orNull(e.Code),
	}}
}

// A Format is a form of replies on the wire. Chat completions have the schema in an object of its own.
type Format struct {
	Type string `json:"type"`
	Schema
	Inner *Schema `json:"json_schema,omitempty"`
}

// A Schema describes replies.
type Schema struct {
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
	JSON        json.RawMessage `json:"schema,omitempty"`
}

// NewFormat returns a form on the wire. A schema needs a name there.
func NewFormat(f assay.Form) Format {
	out := Format{Type: f.Type}
	if f.Type == assay.BySchema {
		out.Schema = Schema{cmp.Or(f.Name, "reply"), f.Description, f.Strict, f.Schema}
	}
	return out
}

// Form returns the form that a request wants. It refuses forms that other protocols do not have.
func (f Format) Form(param string) (assay.Form, *Refusal) {
	s := f.Schema
	if f.Inner != nil {
		s = *f.Inner
	}
	switch {
	case f.Type == "", f.Type == "text":
		return assay.Form{}, nil
	case f.Type == assay.AnyObject:
		return assay.Form{Type: f.Type}, nil
	case f.Type != assay.BySchema:
		return assay.Form{}, BadRequest(param, "This server does not pass on '%s' of type %q. Leave it "+
			"out, and ask for the form in words.", param, f.Type)
	case len(s.JSON) == 0:
		return assay.Form{}, BadRequest(param, "Missing required parameter: the schema of '%s'.", param)
	}
	return assay.Form{
		Type: f.Type, Name: s.Name, Description: s.Description, Strict: s.Strict, Schema: s.JSON,
	}, nil
}

// Parse decodes the JSON body of a request.
func Parse(body []byte, doc any) *Refusal {
	if err := json.Unmarshal(body, doc); err != nil {
		return BadRequest("", "We could not parse the JSON body of your request: %v", err)
	}
	return nil
}

// Kept returns the refusal of a request whose conversation continues what a server has kept. This
// server keeps nothing, so the model would not see the beginning.
func Kept(param string) *Refusal {
	return BadRequest(param, "This server keeps no conversations, so it cannot continue one by '%s'. "+
		"Send the whole conversation.", param)
}

// CheckDialogue refuses a conversation if the calls of an assistant's message are
// not all answered by the messages after it. OpenAI does the same.
func CheckDialogue(messages []assay.Message) *Refusal {
	pending := make(map[string]bool)
	for i, m := range messages {
		if m.Role == assay.ToolRole {
			if !pending[m.CallID] {
				return BadRequest("messages",
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
		return BadRequest("messages", "An assistant message with 'tool_calls' must be followed by "+
			"tool messages responding to each 'tool_call_id'.")
	}
	return nil
}

// Encode returns the JSON of a document.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("gateway: encode: " + err.Error())
	}
	return b
}

// Bearer returns the bearer token of a request, or "".
func Bearer(h http.Header) string {
	key, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(key)
}

// Beyond returns the refusal of a stream by a server without streams.
func Beyond(stream bool) *Refusal {
	if stream {
		return BadRequest("stream", "This server does not stream.")
	}
	return nil
}

// ChoiceOf returns a choice of tools. A choice of one function is spelled as an object.
func ChoiceOf(choice any) string {
	if word, ok := choice.(string); ok || choice == nil {
		return word
	}
	return "required"
}

// Thinking is DeepSeek's and Anthropic's.
type Thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

// Tokens returns the budget for thinking, 0 if it is off, or nil if it is not set.
func (t *Thinking) Tokens() *int {
	switch {
	case t == nil:
	case t.Type == "enabled":
		return &t.Budget
	case t.Type == "disabled":
		return new(0)
	}
	return nil
}

// Text returns the text of a message's content, which is a string, null or a list
// of parts on the wire. The content is decoded as any because a custom decoder
// would parse each text twice.
func Text(content any) (string, error) {
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
