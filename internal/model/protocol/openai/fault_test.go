package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// chatFault sends a request and returns its fault. The test fails without a fault.
func chatFault(t testing.TB, ctx context.Context, p *wire.Provider) (*assay.Response, *assay.Fault) {
	t.Helper()
	resp, err := p.Chat(ctx, new(hi()))
	var f *assay.Fault
	if !errors.As(err, &f) {
		t.Fatalf("Chat() = %+v, %v; want a fault", resp, err)
	}
	if resp.Message.Role != "" || resp.Message.Content != "" || resp.Message.Calls != nil {
		t.Errorf("the fault has the message %+v", resp.Message)
	}
	if len(f.Detail) > 300 || strings.ContainsAny(f.Detail, "\n\r") {
		t.Errorf("detail is not one short line: %q", f.Detail)
	}
	return resp, f
}

// openaiError returns the body of an error of OpenAI.
func openaiError(message, kind, param, code string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":%q,"code":%q}}`,
		message, kind, param, code)
}

func TestFaultOfStatus(t *testing.T) {
	t.Parallel()
	header := func(kv ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(kv); i += 2 {
			h.Set(kv[i], kv[i+1])
		}
		return h
	}
	type fault = assay.Fault
	tests := []struct {
		name   string
		status int
		header http.Header
		body   string
		want   fault
	}{
		{
			"401", 401, nil, openaiError("bad key", "", "", "invalid_api_key"),
			fault{Kind: assay.Auth, Detail: "bad key; hint: check the variable SMALL_KEY"},
		},
		{
			"403", 403, nil, `{"error":"no entry"}`,
			fault{Kind: assay.Auth, Detail: "no entry; hint: check the variable SMALL_KEY"},
		},
		{
			"Moderation", 403, nil, `{"error":{"code":403,"message":"Your input was flagged",
				"metadata":{"reasons":["violence"],"flagged_input":"How do I…","provider_name":"X"}}}`,
			fault{Kind: assay.ContentFilter, Detail: "Your input was flagged"},
		},
		{
			"403WithMetadata", 403, nil, `{"error":{"code":403,"message":"no entry",
				"metadata":{"provider_name":"X"}}}`,
			fault{Kind: assay.Auth, Detail: "no entry; hint: check the variable SMALL_KEY"},
		},
		{
			"402", 402, nil, `{}`,
			fault{
				Kind:   assay.Quota,
				Detail: "Payment Required; hint: the key in SMALL_KEY has no credit left",
			},
		},
		{
			"QuotaByCode", 429, header("Retry-After", "1"),
			openaiError("x", "insufficient_quota", "", "insufficient_quota"),
			fault{Kind: assay.Quota, Detail: "x; hint: the key in SMALL_KEY has no credit left"},
		},
		{
			"QuotaByMessage", 429, nil,
			openaiError("You exceeded your current quota, please check your plan", "", "", ""),
			fault{
				Kind:   assay.Quota,
				Detail: "You exceeded your current quota, please check your plan; hint: the key in SMALL_KEY has no credit left",
			},
		},
		{
			"QuotaOfAMinute", 429, header("Retry-After", "7"),
			openaiError("You exceeded your current quota", "", "", ""),
			fault{
				Kind: assay.RateLimited, RetryAfter: 7 * time.Second,
				Detail: "You exceeded your current quota",
			},
		},
		{
			"Billing", 403, nil, openaiError("no", "", "", "billing_not_active"),
			fault{Kind: assay.Quota, Detail: "no; hint: the key in SMALL_KEY has no credit left"},
		},
		{
			"404", 404, nil, openaiError("no model", "", "", "model_not_found"),
			fault{
				Kind:   assay.NotFound,
				Detail: `no model; hint: check the deployment "small" and base_url`,
			},
		},
		{
			"404Text", 404, header("Content-Type", "text/plain"), "404 page\n not found\n",
			fault{
				Kind:   assay.NotFound,
				Detail: `404 page not found; hint: check the deployment "small" and base_url`,
			},
		},
		{"408", 408, nil, `{}`, fault{Kind: assay.Timeout, Detail: "Request Timeout"}},
		{"409", 409, nil, `{}`, fault{Kind: assay.Server, Detail: "Conflict"}},
		{
			"400", 400, nil, `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`,
			fault{Kind: assay.BadRequest, Detail: "bad"},
		},
		{
			"413", 413, nil, `{"message":"too long"}`,
			fault{Kind: assay.BadRequest, Detail: "too long"},
		},
		{
			"422", 422, nil, `{"detail":[{"loc":["body"],"msg":"wrong"}]}`,
			fault{Kind: assay.BadRequest, Detail: `[{"loc":["body"],"msg":"wrong"}]`},
		},
		{"418", 418, nil, `null`, fault{Kind: assay.BadRequest, Detail: "I'm a teapot"}},
		{
			"400Burst", 400, nil, openaiError("Too many requests, slow down", "", "", ""),
			fault{Kind: assay.RateLimited, Detail: "Too many requests, slow down"},
		},
		{
			"400Throttled", 400, header("Retry-After", "2"),
			openaiError("x", "Throttling.RateQuota", "", ""),
			fault{Kind: assay.RateLimited, RetryAfter: 2 * time.Second, Detail: "x"},
		},
		{
			"400Filter", 400, nil, openaiError("filtered", "", "prompt", "content_filter"),
			fault{Kind: assay.ContentFilter, Detail: "filtered"},
		},
		{
			"400InnerFilter", 400, nil,
			`{"error":{"message":"filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`,
			fault{Kind: assay.ContentFilter, Detail: "filtered"},
		},
		{
			"400NoModel", 400, nil, openaiError("no model", "", "model", "model_not_found"),
			fault{
				Kind:   assay.NotFound,
				Detail: `no model; hint: check the deployment "small" and base_url`,
			},
		},
		{"429", 429, nil, `{}`, fault{Kind: assay.RateLimited, Detail: "Too Many Requests"}},
		{
			"429Milliseconds", 429, header("Retry-After", "9", "Retry-After-Ms", "1500"), `{}`,
			fault{
				Kind: assay.RateLimited, RetryAfter: 1500 * time.Millisecond,
				Detail: "Too Many Requests",
			},
		},
		{
			"429Date", 429,
			header("Date", "Mon, 02 Jan 2006 15:04:05 GMT", "Retry-After", "Mon, 02 Jan 2006 15:04:35 GMT"),
			`{}`,
			fault{
				Kind: assay.RateLimited, RetryAfter: 30 * time.Second, Detail: "Too Many Requests",
			},
		},
		{
			"429Past", 429,
			header("Date", "Mon, 02 Jan 2006 15:04:05 GMT", "Retry-After", "Mon, 02 Jan 2006 15:04:00 GMT"),
			`{}`,
			fault{Kind: assay.RateLimited, Detail: "Too Many Requests"},
		},
		{
			"429Negative", 429, header("Retry-After", "-5"), `{}`,
			fault{Kind: assay.RateLimited, Detail: "Too Many Requests"},
		},
		{
			"429Endless", 429, header("Retry-After", "1e300"), `{}`,
			fault{Kind: assay.RateLimited, Detail: "Too Many Requests"},
		},
		{
			"429Rubbish", 429, header("Retry-After", "soon"), `{}`,
			fault{Kind: assay.RateLimited, Detail: "Too Many Requests"},
		},
		{
			"429Reset", 429, header("X-Ratelimit-Reset-Requests", "6m0s"), `{}`,
			fault{Kind: assay.RateLimited, Detail: "Too Many Requests"},
		},
		{
			"429ResetsOfUnspentLimits", 429,
			header("X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Reset-Tokens", "20ms"), `{}`,
			fault{Kind: assay.RateLimited, Detail: "Too Many Requests"},
		},
		{
			"429ResetOfTheSpent", 429, header("X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Remaining-Requests", "0",
				"X-Ratelimit-Reset-Tokens", "20ms", "X-Ratelimit-Remaining-Tokens", "7"), `{}`,
			fault{
				Kind: assay.RateLimited, Bucket: assay.Requests, Detail: "Too Many Requests",
			},
		},
		{
			"503", 503, header("Retry-After", "4"), `<html>busy</html>`,
			fault{
				Kind: assay.Overloaded, RetryAfter: 4 * time.Second, Detail: "Service Unavailable",
			},
		},
		{
			"529", 529, nil, openaiError("overloaded", "", "", ""),
			fault{Kind: assay.Overloaded, Detail: "overloaded"},
		},
		{"500", 500, nil, `{"error":`, fault{Kind: assay.Server, Detail: "Internal Server Error"}},
		{
			"502", 502, header("Content-Type", "text/html"), "<html><h1>Bad</h1></html>",
			fault{Kind: assay.Server, Detail: "Bad Gateway"},
		},
		{
			"ErrorWith200", 200, nil, `{"error":{"message":"slow down","code":429}}`,
			fault{Kind: assay.RateLimited, Detail: "slow down", Status: 429},
		},
		{
			"ErrorInCapitalsWith200", 200, nil, `{"Error":{"message":"slow down","code":429}}`,
			fault{Kind: assay.RateLimited, Detail: "slow down", Status: 429},
		},
		{
			"ListOfErrorsWith200", 200, nil, `[{"error":{"message":"slow down","code":429}}]`,
			fault{Kind: assay.RateLimited, Detail: "slow down", Status: 429},
		},
		{
			"HalfAnErrorWith200", 200, nil, `{"error":{"message":"slow down","code":429}`,
			fault{Kind: assay.Malformed, Detail: `the body of 43 bytes is not valid JSON: {"error":{"message":"slow down","code":429}`},
		},
		{
			"Text", 200, nil, ` "hello"`,
			fault{Kind: assay.Malformed, Detail: `the body is JSON, but not an object: "hello"`},
		},
		{
			"Null", 200, nil, "null ",
			fault{Kind: assay.Malformed, Detail: "the body is JSON, but not an object: null"},
		},
		{
			"TwoDocuments", 200, nil, "{}{}",
			fault{Kind: assay.Malformed, Detail: "the body of 4 bytes is not valid JSON: {}{}"},
		},
		{
			"UnclearErrorWith200", 200, nil, `{"error":{"message":"hm"},"choices":[]}`,
			fault{Kind: assay.Malformed, Detail: "hm"},
		},
		{
			"Filter", 200, nil,
			`{"model":"m","choices":[{"finish_reason":"content_filter","message":{"content":"half"}}]}`,
			fault{Kind: assay.ContentFilter, Detail: "the endpoint's filter cut the reply off"},
		},
		{
			"NoChoices", 200, nil, `{"choices":[]}`,
			fault{Kind: assay.Malformed, Detail: `the completion has no choices: {"choices":[]}`},
		},
		{
			"ChoicesOfAnotherType", 200, nil, `{"choices":"none"}`,
			fault{Kind: assay.Malformed, Detail: `the completion has no choices: {"choices":"none"}`},
		},
		{
			"EmptyReply", 200, nil,
			`{"choices":[{"finish_reason":"stop","message":{"content":" "}}]}`,
			fault{Kind: assay.Malformed, Detail: "empty reply"},
		},
		{
			"BadJSON", 200, nil, `{"choices":[`,
			fault{Kind: assay.Malformed, Detail: `the body of 12 bytes is not valid JSON: {"choices":[`},
		},
		{
			"NoBody", 200, nil, ``,
			fault{Kind: assay.Malformed, Detail: "the body of 0 bytes is not valid JSON"},
		},
		{
			"List", 200, nil, `[]`,
			fault{Kind: assay.Malformed, Detail: "the body is JSON, but not an object: []"},
		},
		{
			"HTML", 200, header("Content-Type", "text/html; charset=utf-8"), "<html>",
			fault{
				Kind:   assay.Malformed,
				Detail: `the content type is "text/html; charset=utf-8" instead of JSON: <html>`,
			},
		},
		{
			"LongMessage", 400, nil, openaiError(strings.Repeat("ä", 400), "", "", ""),
			fault{Kind: assay.BadRequest, Detail: strings.Repeat("ä", 148) + "…"},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				for k, v := range test.header {
					w.Header()[k] = v
				}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}), wire.Config{Key: wire.NewSecret("sk-0123456789"), KeyName: "SMALL_KEY"})
			_, got := chatFault(t, t.Context(), p)
			if test.want.Status == 0 {
				test.want.Status = test.status
			}
			if d := cmp.Diff(&test.want, got, cmpopts.IgnoreFields(fault{}, "Err")); d != "" {
				t.Errorf("fault differs (-want +got):\n%s", d)
			}
		})
	}
}

// TestFaultKeepsModelAndUsage checks that a fault of a complete reply still has the model
// and the usage.
func TestFaultKeepsModelAndUsage(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":-2}}`
	_, p := record(t, body, wire.Config{})
	resp, _ := chatFault(t, t.Context(), p)
	want := &assay.Response{ServedModel: "m", Usage: assay.Usage{InputTokens: 5}}
	if d := cmp.Diff(want, resp); d != "" {
		t.Errorf("response differs (-want +got):\n%s", d)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the redirect was followed")
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, client := range map[string]*http.Client{"Ours": nil, "Theirs": {}} {
			t.Run(fmt.Sprint(status, name), func(t *testing.T) {
				handler := http.RedirectHandler(elsewhere.URL+"/v1", status)
				p := serve(t, handler, wire.Config{Client: client})
				_, f := chatFault(t, t.Context(), p)
				if f.Kind != assay.Network || f.Status != status ||
					!strings.Contains(f.Detail, "base_url") {
					t.Errorf("fault = %+v, want network with a hint", f)
				}
			})
		}
	}
}
