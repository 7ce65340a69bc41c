package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// APIError is the error in a response body, with OpenAI's field names. Any field may be empty. It
// is the cause of a [assay.Fault] of kind bad_request, so that a protocol can adapt its requests.
type APIError struct {
	Message string
	Kind    string // OpenAI's "type"
	Param   string
	Code    string

	// generated is the model's text if the endpoint could not read it as a call.
	generated string
	// moderated is true if the content of this request was refused, and not the key.
	moderated bool
	// found is true if the body has an "error".
	found bool
	// status is the HTTP status that some gateways put into code, or 0.
	status int
	// retryDelay and quotaID come from Google's details, and so does Kind if it has no type.
	retryDelay, quotaID string
}

// text returns the parts of an error that may mention limits. It is bounded,
// because messages about limits are short.
func (e *APIError) text() string {
	const longest = 4096
	return assay.Head(e.Message, longest) + " " + e.Code + " " + e.Kind + " " + e.quotaID
}

// Error returns the message of the endpoint.
func (e *APIError) Error() string { return e.Message }

// isVoid reports whether the endpoint only filled in the fields of an error that did not happen.
func (e *APIError) isVoid() bool {
	switch strings.ToLower(e.Code) {
	case "":
		return e.Kind == "" && (e.Message == "" || e.Message == "0")
	case "0", "200", "ok", "success":
		return true
	}
	return false
}

// is reports whether the code or the type is one of the names.
func (e *APIError) is(names ...string) bool {
	for _, n := range names {
		if strings.EqualFold(e.Code, n) || strings.EqualFold(e.Kind, n) {
			return true
		}
	}
	return false
}

// failedCall reports whether a fault is the endpoint's complaint that the model's call is
// malformed, as Groq's are, and returns the model's text. The cause is the model, not a bad
// request.
func failedCall(f *assay.Fault) (generated string, ok bool) {
	var e *APIError
	if !errors.As(f, &e) {
		return "", false
	}
	ok = e.is("tool_use_failed") || containsFold(e.Message,
		"tool call validation failed", "failed to call a function", "failed to parse tool call")
	return e.generated, ok
}

// noTools matches refusals of requests with functions.
var noTools = regexp.MustCompile(`(?i)(not support|unsupported|no endpoints found that support|` +
	`not enabled for).{0,40}\b(tools?\b|tool.?(use|call)|function.?call)|` +
	`\b(tools?|tool.?(use|call\w*|choice)|function.?call\w*)\b.{0,20} (is|are) not ` +
	`(supported|enabled|available)|enable-auto-tool-choice`)

// parseError parses an error body. Endpoints send OpenAI's shape, a bare string,
// a list with one error, or a message without an "error" around it. If the body
// is not JSON, its text is the message, unless it is an HTML page.
func parseError(body []byte, isJSON bool) *APIError {
	body = bytes.TrimSpace(body)
	if !json.Valid(body) {
		if isJSON || bytes.HasPrefix(body, []byte("<")) {
			return &APIError{}
		}
		return &APIError{Message: assay.Head(string(body), 4*longestDetail)}
	}

	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var doc struct {
		Error   json.RawMessage `json:"error"`
		Message json.RawMessage `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return &APIError{}
	}

	if e := parseErrorObject(doc.Error); !e.isVoid() {
		e.found = true
		return e
	}
	e := parseErrorObject(body)
	if e.Message == "" {
		e.Message = scalar(doc.Detail)
	}
	if e.Message == "" {
		e.Message = string(doc.Detail) // a list of validation errors
	}
	return e
}

// mentionsError reports whether a body may contain an "error" that is not null, in one of the usual
// spellings. It avoids decoding most completions twice. If it misses an error,
// decoding the completion will find no choices.
func mentionsError(body []byte) bool {
	for _, name := range []string{`rror"`, `RROR"`} {
		_, rest, found := bytes.Cut(body, []byte(name))
		for found && bytes.HasPrefix(bytes.TrimLeft(rest, ": \t\r\n"), []byte("null")) {
			_, rest, found = bytes.Cut(rest, []byte(name))
		}
		if found {
			return true
		}
	}
	return false
}

func parseErrorObject(raw json.RawMessage) *APIError {
	if s := scalar(raw); s != "" {
		return &APIError{Message: s}
	}
	var doc struct {
		Message    json.RawMessage `json:"message"`
		Type       json.RawMessage `json:"type"`
		Param      json.RawMessage `json:"param"`
		Code       json.RawMessage `json:"code"`
		InnerError struct {
			Code json.RawMessage `json:"code"`
		} `json:"innererror"`
		Details   json.RawMessage `json:"details"`
		Metadata  json.RawMessage `json:"metadata"`
		Generated json.RawMessage `json:"failed_generation"`
	}
	// Fields of an unexpected type stay empty. The error is then classified by its
	// status.
	_ = json.Unmarshal(raw, &doc)
	e := &APIError{
		Message: scalar(doc.Message),
		Kind:    scalar(doc.Type),
		Param:   scalar(doc.Param),
		Code:    scalar(doc.Code),

		generated: scalar(doc.Generated),
		moderated: isModeration(doc.Metadata),
	}
	if e.Code == "" {
		e.Code = scalar(doc.InnerError.Code)
	}
	if n, err := strconv.Atoi(e.Code); err == nil && n >= 400 && n < 600 {
		e.status = n
	}
	e.readDetails(doc.Details)
	return e
}

// isModeration reports whether the metadata of an error belong to a prompt that OpenRouter's
// moderation refused.
func isModeration(metadata json.RawMessage) bool {
	var doc struct {
		Reasons []json.RawMessage `json:"reasons"`
		Flagged string            `json:"flagged_input"`
	}
	_ = json.Unmarshal(metadata, &doc)
	return len(doc.Reasons) > 0 || doc.Flagged != ""
}

// readDetails reads Google's details about a limit or the reason for an error.
func (e *APIError) readDetails(raw json.RawMessage) {
	var details []struct {
		Reason     string `json:"reason"`
		RetryDelay string `json:"retryDelay"`
		Violations []struct {
			QuotaID string `json:"quotaId"`
		} `json:"violations"`
	}
	_ = json.Unmarshal(raw, &details)
	for _, d := range details {
		e.Kind = cmp.Or(e.Kind, d.Reason)
		if d.RetryDelay != "" {
			e.retryDelay = d.RetryDelay
		}
		if len(d.Violations) > 0 {
			e.quotaID = d.Violations[0].QuotaID
		}
	}
}

// scalar returns the text of a JSON string or number, and "" for other values.
func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}
