package simserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// A dialect is the server's side of a wire protocol.
type dialect interface {
	// routes returns the patterns of its requests. If a pattern has {deployment}, the deployment
	// comes from the path.
	routes() []string
	// key returns the key of a request, or "".
	key(h http.Header) string
	// decode returns the request in a body. It checks the rules of the protocol, except for those
	// in checkDialogue and checkThoughts.
	decode(body []byte) (prompt, *apiError)
	// encode returns the body of a reply.
	encode(r reply) any
	// refuse returns the status and the body of an error.
	refuse(e apiError) (status int, body any)
	// forgotten returns the refusal of message i, which has calls but lacks its thought or, if
	// changed is true, has a thought that is not the model's.
	forgotten(i int, changed bool) *apiError
}

// dialects lists what the server speaks.
func dialects(cfg *Config) []dialect {
	return []dialect{chat{cfg.Thinking}, azure{chat{cfg.Thinking}}, responses{}, anthropic{}, gemini{}}
}

// reportsCacheWrites reports whether replies say how much input was written to a cache.
func reportsCacheWrites(d dialect) bool {
	switch d.(type) {
	case anthropic, responses:
		return true
	}
	return false
}

// A prompt is a request in neutral form. The State of its messages is their thought.
type prompt struct {
	deployment string
	assay.Request
}

// A reply is a response in neutral form. The Finish of its response is "length", "content_filter",
// "refusal" or, if the reply is complete, "".
type reply struct {
	id      uint64 // depends only on the request
	created int64
	model   string
	thought thought // "" unless the model is thinking
	// nothing is true if the body must not have a message.
	nothing bool
	assay.Response
}

const contentJSON = "application/json"

// apiError is an error in OpenAI's words, which other dialects translate.
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

// parse decodes the JSON body of a request.
func parse(body []byte, doc any) *apiError {
	if err := json.Unmarshal(body, doc); err != nil {
		return badRequest("", "We could not parse the JSON body of your request: %v", err)
	}
	return nil
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
	status, body := chat{}.refuse(e)
	writeJSON(w, status, body)
}

func bearer(h http.Header) string {
	key, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !ok {
		return ""
	}
	return strings.TrimSpace(key)
}
