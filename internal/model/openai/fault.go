package openai

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-eval/assay"
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
	return &assay.Fault{Kind: kind, Detail: p.detail(cause.Error(), ""), Err: ctx.Err()}
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
	f := &assay.Fault{Kind: assay.Network, Detail: p.detail(err.Error(), "")}
	if text := err.Error(); p.scrub.text(text) == text {
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

// responseFault classifies a complete response. It returns nil if the body may be
// a completion.
func (p *Provider) responseFault(
	resp *http.Response, body []byte, quotas []assay.QuotaState,
) *assay.Fault {
	contentType := resp.Header.Get("Content-Type")
	isJSON := isJSONType(contentType)
	switch s := resp.StatusCode; {
	case s >= 400:
		return p.errorFault(s, resp.Header, parseError(body, isJSON), quotas)
	case s >= 300:
		return p.redirectFault(resp)
	case !isJSON:
		message := fmt.Sprintf("the content type is %q instead of JSON", contentType)
		return malformed(p.detail(message, ""))
	}

	// Some gateways answer errors with status 200.
	if !mentionsError(body) || body[firstByte(body)] != '{' {
		return nil
	}
	e := parseError(body, true)
	if !e.found {
		return nil
	}
	if e.status == 0 {
		e.status = http.StatusOK
	}
	return p.errorFault(e.status, resp.Header, e, quotas)
}

func (p *Provider) redirectFault(resp *http.Response) *assay.Fault {
	target := "another address"
	if u, err := resp.Location(); err == nil {
		target = u.Host
	}
	message := "the endpoint redirects to " + target + ", but redirects are not followed with a key"
	return &assay.Fault{
		Kind:   assay.Network,
		Status: resp.StatusCode,
		Detail: p.detail(message, "; hint: check base_url"),
	}
}

func (p *Provider) errorFault(
	status int, h http.Header, e apiError, quotas []assay.QuotaState,
) *assay.Fault {
	f := &assay.Fault{Kind: kindOf(status, h, e), Status: status}
	if f.Kind == assay.BadRequest {
		if refused := unsupported(e); refused != 0 {
			f.Err = refusedError(refused)
		}
	}
	switch f.Kind {
	case assay.RateLimited:
		f.Bucket, f.Limit = limitHit(e, quotas)
		f.RetryAfter = retryAfter(h, e)
		if f.RetryAfter == 0 {
			f.RetryAfter = limitReset(h)
		}
	case assay.Overloaded, assay.Server:
		f.RetryAfter = retryAfter(h, e)
	}
	message := e.message
	if message == "" {
		message = http.StatusText(status)
	}
	f.Detail = p.detail(message, p.hint(f.Kind))
	return f
}

func (p *Provider) hint(kind assay.FaultKind) string {
	switch kind {
	case assay.Auth, assay.Quota:
		if p.cfg.KeyName == "" {
			return "; hint: check the key"
		}
		if kind == assay.Quota {
			return "; hint: the key in " + p.cfg.KeyName + " has no credit left"
		}
		return "; hint: check the variable " + p.cfg.KeyName
	case assay.NotFound:
		deployment := shorten(p.cfg.Deployment, 80)
		return fmt.Sprintf("; hint: check the deployment %q and base_url", deployment)
	}
	return ""
}

// detail joins a message, cleaned and shortened if necessary, and a hint, which is
// never shortened.
func (p *Provider) detail(message, hint string) string {
	line := strings.Join(strings.FieldsFunc(p.clean(message), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	hint = p.clean(hint)
	return shorten(line, longestDetail-len(hint)) + hint
}

// shorten cuts s to at most n bytes without cutting a rune.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	n -= len(mark)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:max(n, 0)] + mark
}

// refusedError is the cause of a bad request if the endpoint refused a sampling
// parameter by name.
type refusedError paramSet

func (e refusedError) Error() string {
	for _, p := range paramNames {
		if p.param == paramSet(e) {
			return "the model does not support " + p.name
		}
	}
	return "the model does not support a parameter"
}

// refusedParam returns the refused parameter if err is a refusedError, or 0.
func refusedParam(err error) paramSet {
	var e refusedError
	if errors.As(err, &e) {
		return paramSet(e)
	}
	return 0
}

// kindOf classifies an error by its status, and by its message if endpoints use
// the status differently.
func kindOf(status int, h http.Header, e apiError) assay.FaultKind {
	switch {
	case isQuota(status, h, e):
		return assay.Quota
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return assay.Auth
	case status == http.StatusNotFound:
		return assay.NotFound
	case status == http.StatusRequestTimeout:
		return assay.Timeout
	case status == http.StatusConflict:
		return assay.Server
	case status == http.StatusTooManyRequests:
		return assay.RateLimited
	case status == http.StatusServiceUnavailable, status == 529:
		return assay.Overloaded
	case status >= 500:
		return assay.Server
	case status >= 400:
		return badRequestKind(e)
	case isRateLimit(e): // an error with status 200
		return assay.RateLimited
	}
	return assay.Malformed
}

func badRequestKind(e apiError) assay.FaultKind {
	switch {
	case isRateLimit(e):
		return assay.RateLimited
	case e.is("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"):
		return assay.ContentFilter
	case e.is("model_not_found", "DeploymentNotFound"):
		return assay.NotFound
	}
	return assay.BadRequest
}

// isRateLimit reports whether the text of an error is about a rate limit. Some
// gateways answer a burst with status 400.
func isRateLimit(e apiError) bool {
	return containsFold(e.code+" "+e.kind+" "+e.message,
		"rate limit", "rate_limit", "ratelimit", "too many requests", "throttl")
}

// isQuota reports whether an error means that credit is used up, rather than that
// requests come too fast. A message alone is not enough if it asks for a wait,
// because some endpoints call the requests per minute a quota.
func isQuota(status int, h http.Header, e apiError) bool {
	switch status {
	case http.StatusPaymentRequired:
		return true
	case http.StatusTooManyRequests, http.StatusForbidden:
	default:
		return false
	}
	if containsFold(e.code+" "+e.kind, "insufficient_quota", "billing") {
		return true
	}
	noCredit := containsFold(e.message,
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

func isJSONType(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && (media == "application/json" || strings.HasSuffix(media, "+json"))
}
