// Package gateway is the server's side of the wire protocols: it reads requests and writes replies,
// whole or as the events of a stream. Each protocol is a [Dialect] in a file of its own.
//
// It opens no socket and answers nothing. The simulated server and the bridge to foreign agents
// serve their models with it.
package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/assay-eval/assay"
)

// A Dialect is the server's side of a wire protocol.
type Dialect interface {
	// Routes returns the patterns of its requests. If a pattern has {deployment}, the deployment
	// comes from the path.
	Routes() []string
	// Key returns the key of a request, or "".
	Key(h http.Header) string
	// Decode returns the request in a body. It checks the rules of the protocol, except for those
	// in CheckDialogue and CheckThoughts.
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

// Deployment returns the deployment that a request names in its path, or "".
func Deployment(r *http.Request) string {
	name, _, _ := strings.Cut(r.PathValue("deployment"), ":")
	return name
}

// Streams reports whether the path of a request asks for a stream.
func Streams(r *http.Request) bool {
	return strings.HasSuffix(r.PathValue("deployment"), ":streamGenerateContent")
}

// Dialects lists the protocols. The style says where chat completions carry thoughts; see
// [ThinkingStyles].
func Dialects(thinking string) []Dialect {
	return []Dialect{chat{thinking}, azure{chat{thinking}}, responses{}, anthropic{}, gemini{}}
}

// ReportsCacheWrites reports whether replies say how much input was written to a cache.
func ReportsCacheWrites(d Dialect) bool {
	switch d.(type) {
	case anthropic, responses:
		return true
	}
	return false
}

// A Prompt is a request in neutral form. The State of its messages is their thought.
type Prompt struct {
	Deployment string
	// Stream asks for events, and Counted for the usage in one of them.
	Stream, Counted bool
	// Beyond is the refusal of a server that only replies, because the request wants a stream, or
	// that the server keeps the reply. It is nil if such a server can answer.
	Beyond *Refusal
	assay.Request
}

// A Reply is a response in neutral form. The Finish of its response is "length", "content_filter",
// "refusal" or, if the reply is complete, "".
type Reply struct {
	ID      uint64 // depends only on the request
	Created int64
	Model   string
	Thought Thought // "" unless the model is thinking
	// Nothing is true if the body must not have a message.
	Nothing bool
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

func BadRequest(param, format string, args ...any) *Refusal {
	return &Refusal{
		Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...),
		Kind: "invalid_request_error", Param: param,
	}
}

// A format is the form that a request wants for replies.
type format struct {
	Type string `json:"type"`
}

// check refuses a form other than text, because it would be lost on the way to the model.
func (f format) check(param string) *Refusal {
	switch f.Type {
	case "", "text", "text/plain":
		return nil
	}
	return BadRequest(param, "This server does not pass on '%s' of type %q. Leave it out, and ask "+
		"for the form in words.", param, f.Type)
}

// parse decodes the JSON body of a request.
func parse(body []byte, doc any) *Refusal {
	if err := json.Unmarshal(body, doc); err != nil {
		return BadRequest("", "We could not parse the JSON body of your request: %v", err)
	}
	return nil
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

func encode(v any) []byte {
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
