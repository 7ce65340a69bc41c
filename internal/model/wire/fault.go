package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// Statuses without a name in net/http.
const (
	statusFull    = 498 // Groq: the capacity is exceeded
	statusClosed  = 499 // nginx: the client, here a gateway, has left
	statusUnknown = 520 // Cloudflare: the server behind it sent no valid reply
	statusLate    = 524 // Cloudflare: the server behind it took too long
	statusBusy    = 529 // Anthropic: overloaded
)

// longestDetail is the maximum length of a fault's detail in bytes.
const longestDetail = 300

func (p *Provider) contextFault(ctx context.Context) *assay.Fault {
	cause := context.Cause(ctx)
	var f *assay.Fault
	if errors.As(cause, &f) {
		own := *f // other requests may share the cause
		return &own
	}
	kind := assay.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) ||
		errors.Is(cause, context.DeadlineExceeded) {
		kind = assay.Timeout
	}
	return &assay.Fault{Kind: kind, Detail: p.Detail(cause.Error(), ""), Err: ctx.Err()}
}

// transportFault classifies an exchange without a complete response.
func (p *Provider) transportFault(ctx context.Context, err error) *assay.Fault {
	if ctx.Err() != nil {
		return p.contextFault(ctx)
	}
	var tlsError tls.RecordHeaderError
	if errors.As(err, &tlsError) && string(tlsError.RecordHeader[:]) == "HTTP/" {
		err = http.ErrSchemeMismatch // its message is clearer
	}
	hint := ""
	var proxy *proxyError
	if errors.As(err, &proxy) {
		hint = proxyHint
	}
	f := &assay.Fault{Kind: assay.Network, Detail: p.Detail(err.Error(), hint)}
	if text := err.Error(); p.scrub.Text(text) == text {
		f.Err = err
	}
	var body *bodyError
	if errors.As(err, &body) {
		f.Status = body.status
	}
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case isTooLarge(err):
		f.Kind = assay.Malformed
	case errors.As(err, &dns):
	case errors.As(err, &timeout) && timeout.Timeout():
		f.Kind = assay.Timeout
	}
	return f
}

// mayBeBilled reports whether an endpoint may have billed a request that it has received, and that
// ended in a fault without a usage. The reply is nil if there was no complete one. A refusal is not
// billed, but a gateway that gives up waiting knows nothing of the bill of the server behind it.
func mayBeBilled(reply *Reply, f *assay.Fault) bool {
	status := f.Status
	if reply != nil {
		status = reply.Status
	}
	switch status {
	case http.StatusRequestTimeout, statusClosed, http.StatusBadGateway, http.StatusGatewayTimeout,
		statusUnknown, statusLate:
		return true
	}
	if reply == nil {
		return status < 300
	}
	switch f.Kind {
	case assay.Malformed, assay.Server, assay.Timeout:
		return status < 300
	}
	return false
}

// fault classifies a reply. It returns nil if the body is an object without an error, so that it
// may conform to the protocol.
func (p *Provider) fault(r *Reply) *assay.Fault {
	switch {
	case r.Status >= 400:
		return p.errorFault(r.Status, r, parseError(r.Body, isJSONType(r)))
	case r.Status >= 300:
		return p.redirectFault(r)
	}
	isObject := bytes.HasPrefix(r.Body, []byte("{"))
	if (isObject || bytes.HasPrefix(r.Body, []byte("["))) && mentionsError(r.Body) {
		// Some gateways answer errors with status 200, some of them beside part of a reply.
		if e := parseError(r.Body, true); e.found {
			return p.errorFault(cmp.Or(e.status, http.StatusOK), r, e)
		}
	}
	switch {
	case isObject:
		return nil
	case json.Valid(r.Body):
		return p.Unreadable("the body is JSON, but not an object", r)
	case len(r.Body) > 0 && !isJSONType(r):
		contentType := r.Header.Get("Content-Type")
		return p.Unreadable(fmt.Sprintf("the content type is %q instead of JSON", contentType), r)
	}
	return p.Unreadable(fmt.Sprintf("the body of %d bytes is not valid JSON", len(r.Body)), r)
}

// ErrorFault classifies an error that is part of a reply with status 200. It returns nil if raw
// is not an error.
func (p *Provider) ErrorFault(r *Reply, raw json.RawMessage) *assay.Fault {
	if len(raw) == 0 {
		return nil // as in nearly all replies
	}
	e := parseErrorObject(raw)
	if e.isVoid() {
		return nil
	}
	return p.errorFault(cmp.Or(e.status, http.StatusOK), r, e)
}

// Unreadable returns the fault of a response that does not conform to the protocol. It quotes the
// start of the body.
func (p *Provider) Unreadable(why string, r *Reply) *assay.Fault {
	const quoted = 200
	start := assay.Head(string(r.Body), 4*quoted)
	if text := strings.TrimSpace(p.Clean(start)); text != "" {
		why += ": " + shorten(text, quoted)
	}
	return Malformed(p.Detail(why, ""))
}

// Malformed returns the fault of a response that does not conform to the protocol.
func Malformed(detail string) *assay.Fault {
	return &assay.Fault{Kind: assay.Malformed, Status: http.StatusOK, Detail: detail}
}

func (p *Provider) redirectFault(r *Reply) *assay.Fault {
	target := "another address"
	if u, err := url.Parse(r.Header.Get("Location")); err == nil && u.Host != "" {
		target = u.Host
	}
	message := "the endpoint redirects to " + target + ", but redirects are not followed with a key"
	return &assay.Fault{
		Kind:   assay.Network,
		Status: r.Status,
		Detail: p.Detail(message, "; hint: check base_url"),
	}
}

func (p *Provider) errorFault(status int, r *Reply, e *APIError) *assay.Fault {
	h := r.Header
	f := &assay.Fault{Kind: kindOf(status, h, e), Status: status}
	if f.Kind == assay.BadRequest {
		for _, text := range []*string{&e.Message, &e.Kind, &e.Param, &e.Code, &e.generated} {
			*text = p.Clean(*text)
		}
		f.Err, f.TooLong = e, tooLong(e)
	}
	switch f.Kind {
	case assay.RateLimited:
		f.Bucket, f.Limit = limitHit(h, e, r.Quotas)
		f.RetryAfter = retryAfter(h, e)
		if f.RetryAfter == 0 {
			f.RetryAfter = dayReset(r.Quotas, f.Bucket)
		}
	case assay.Overloaded, assay.Server:
		f.RetryAfter = retryAfter(h, e)
	}
	message := e.Message
	if message == "" {
		message = http.StatusText(status)
	}
	hint := p.hint(f.Kind)
	switch {
	case isOfProxy(status, h):
		hint = proxyHint
	case tooLarge(status, e):
		hint = "; hint: the request is larger than the limit, so waiting does not help"
	case noTools.MatchString(e.Message):
		hint = "; hint: write `protocol: tags` into the experiment, because the endpoint does not " +
			"accept tools"
	}
	f.Detail = p.Detail(message, hint)
	return f
}

func (p *Provider) hint(kind assay.FaultKind) string {
	switch kind {
	case assay.Auth, assay.Quota:
		if p.KeyName == "" {
			return "; hint: list the variable with a key in keys"
		}
		if kind == assay.Quota {
			return "; hint: the key in " + p.KeyName + " has no credit left"
		}
		return "; hint: check the variable " + p.KeyName
	case assay.NotFound:
		deployment := shorten(p.Deployment, 80)
		return fmt.Sprintf("; hint: check the deployment %q and base_url", deployment)
	}
	return ""
}

// Detail joins a message, cleaned and shortened if necessary, and a hint, which is
// never shortened.
func (p *Provider) Detail(message, hint string) string {
	line := strings.Join(strings.FieldsFunc(p.Clean(message), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	hint = p.Clean(hint)
	return shorten(line, longestDetail-len(hint)) + hint
}

// shorten cuts s to at most n bytes without cutting a rune.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	return assay.Head(s, n-len(mark)) + mark
}

// kindOf classifies an error by its status, and by its message if endpoints use
// the status differently.
func kindOf(status int, h http.Header, e *APIError) assay.FaultKind {
	switch {
	case isOfProxy(status, h):
		return assay.Network
	case tooLarge(status, e):
		return assay.BadRequest
	case isQuota(status, h, e):
		return assay.Quota
	case e.moderated && status == http.StatusForbidden:
		return assay.ContentFilter
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return assay.Auth
	case status == http.StatusNotFound:
		return assay.NotFound
	case status == http.StatusRequestTimeout:
		return assay.Timeout
	case status == http.StatusConflict, status == http.StatusLocked,
		status == http.StatusTooEarly, status == statusClosed:
		return assay.Server
	case status == http.StatusTooManyRequests:
		return assay.RateLimited
	case status == http.StatusServiceUnavailable, status == statusBusy, status == statusFull:
		return assay.Overloaded
	case status >= 500:
		return assay.Server
	case status >= 400:
		return badRequestKind(e)
	}
	return silentKind(e)
}

// silentKind classifies an error with status 200.
func silentKind(e *APIError) assay.FaultKind {
	text := e.Code + " " + e.Kind + " " + e.Message
	switch {
	case isRateLimit(e):
		return assay.RateLimited
	case e.is(filterCodes...):
		return assay.ContentFilter
	case containsFold(text, "overloaded", "capacity", "unavailable"):
		return assay.Overloaded
	case containsFold(text, "timeout", "timed out"):
		return assay.Timeout
	case containsFold(text, "server_error", "server error", "provider returned error"):
		return assay.Server
	}
	return assay.Malformed
}

// filterCodes are the names of errors by a content filter.
var filterCodes = []string{
	"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation",
}

func badRequestKind(e *APIError) assay.FaultKind {
	switch {
	case isRateLimit(e):
		return assay.RateLimited
	case e.is(filterCodes...), containsFold(e.Message, "content filtering policy"): // Anthropic
		return assay.ContentFilter
	case e.is("model_not_found", "DeploymentNotFound"):
		return assay.NotFound
	case e.is("API_KEY_INVALID"): // Gemini
		return assay.Auth
	}
	return assay.BadRequest
}

// isRateLimit reports whether the text of an error is about a rate limit. Some
// gateways answer a burst with status 400.
func isRateLimit(e *APIError) bool {
	return containsFold(e.Code+" "+e.Kind+" "+e.Message,
		"rate limit", "rate_limit", "ratelimit", "too many requests", "throttl")
}

// sizePhrase matches the size of a request in a refusal such as "Limit 6000, Requested 7012".
var sizePhrase = regexp.MustCompile(`(?i)\brequested:? (\d+)`)

// tooLarge reports whether a request alone is larger than a limit of tokens, so that no wait
// makes it acceptable.
func tooLarge(status int, e *APIError) bool {
	if !isRateLimit(e) {
		return false
	}
	text := e.text()
	size, limit := sizePhrase.FindStringSubmatch(text), limitNamed(text)
	return status == http.StatusRequestEntityTooLarge ||
		size != nil && limit > 0 && amount(size[1]) > limit
}

// tooLong reports whether a request is longer than the model's context, in the words of OpenAI and
// vLLM, Anthropic, Gemini, and llama.cpp.
func tooLong(e *APIError) bool {
	return e.is("context_length_exceeded", "exceed_context_size_error") ||
		containsFold(e.Message, "maximum context length", "prompt is too long", "input token count")
}

// formRefused reports whether a request that wants a form of the reply was refused for it, in the words
// of any protocol.
func formRefused(f *assay.Fault) bool {
	var e *APIError
	return f.Kind == assay.BadRequest && errors.As(f, &e) && containsFold(e.Param+" "+e.Message,
		"format", "schema", "json", "structured", "mime type", "mime_type", "output_config")
}

// isQuota reports whether an error means that credit is used up, rather than that
// requests come too fast. A message alone is not enough if it asks for a wait,
// because some endpoints call the requests per minute a quota.
func isQuota(status int, h http.Header, e *APIError) bool {
	switch status {
	case http.StatusPaymentRequired:
		return true
	case http.StatusTooManyRequests, http.StatusForbidden:
	case http.StatusBadRequest:
		return containsFold(e.Message, "credit balance is too low") // Anthropic
	default:
		return false
	}
	if containsFold(e.Code+" "+e.Kind, "insufficient_quota", "billing") {
		return true
	}
	noCredit := containsFold(e.Message,
		"insufficient_quota", "insufficient quota", "exceeded your current quota", "billing")
	return noCredit && retryAfter(h, e) == 0
}

func containsFold(s string, any ...string) bool {
	s = strings.ToLower(s)
	for _, sub := range any {
		if strings.Contains(s, sub) {
			return true
		}
	}
	return false
}

func isJSONType(r *Reply) bool {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}
