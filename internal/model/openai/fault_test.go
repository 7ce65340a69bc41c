package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/openai"
)

// chatFault asks p and returns the fault, which there must be.
func chatFault(t testing.TB, ctx context.Context, p *openai.Provider) (assay.Response, *assay.Fault) {
	t.Helper()
	resp, err := p.Chat(ctx, hi())
	var f *assay.Fault
	if !errors.As(err, &f) {
		t.Fatalf("Chat() = %+v, %v; want a fault", resp, err)
	}
	if resp.Message.Role != "" || resp.Message.Content != "" || resp.Message.Calls != nil {
		t.Errorf("a fault came with the message %+v", resp.Message)
	}
	if len(f.Detail) > 300 || strings.ContainsAny(f.Detail, "\n\r") {
		t.Errorf("detail is not one short line: %q", f.Detail)
	}
	return resp, f
}

func openaiError(message, kind, param, code string) string {
	return fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":%q,"code":%q}}`, message, kind, param, code)
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
		{"403", 403, nil, `{"error":"no entry"}`, fault{Kind: assay.Auth, Detail: "no entry; hint: check the variable SMALL_KEY"}},
		{"402", 402, nil, `{}`, fault{Kind: assay.Quota, Detail: "Payment Required; hint: the key in SMALL_KEY has no credit left"}},
		{
			"QuotaByCode", 429, header("Retry-After", "1"), openaiError("x", "insufficient_quota", "", "insufficient_quota"),
			fault{Kind: assay.Quota, Detail: "x; hint: the key in SMALL_KEY has no credit left"},
		},
		{
			"QuotaByMessage", 429, nil, openaiError("You exceeded your current quota, please check your plan", "", "", ""),
			fault{Kind: assay.Quota, Detail: "You exceeded your current quota, please check your plan; hint: the key in SMALL_KEY has no credit left"},
		},
		{
			"QuotaOfAMinute", 429, header("Retry-After", "7"), openaiError("You exceeded your current quota", "", "", ""),
			fault{Kind: assay.RateLimited, RetryAfter: 7 * time.Second, Detail: "You exceeded your current quota"},
		},
		{
			"Billing", 403, nil, openaiError("no", "", "", "billing_not_active"),
			fault{Kind: assay.Quota, Detail: "no; hint: the key in SMALL_KEY has no credit left"},
		},
		{
			"404", 404, nil, openaiError("no model", "", "", "model_not_found"),
			fault{Kind: assay.NotFound, Detail: `no model; hint: check the deployment "small" and base_url`},
		},
		{
			"404Text", 404, header("Content-Type", "text/plain"), "404 page\n not found\n",
			fault{Kind: assay.NotFound, Detail: `404 page not found; hint: check the deployment "small" and base_url`},
		},
		{"408", 408, nil, `{}`, fault{Kind: assay.Timeout, Detail: "Request Timeout"}},
		{"409", 409, nil, `{}`, fault{Kind: assay.Server, Detail: "Conflict"}},
		{"400", 400, nil, `[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`, fault{Kind: assay.BadRequest, Detail: "bad"}},
		{"413", 413, nil, `{"message":"too long"}`, fault{Kind: assay.BadRequest, Detail: "too long"}},
		{"422", 422, nil, `{"detail":[{"loc":["body"],"msg":"wrong"}]}`, fault{Kind: assay.BadRequest, Detail: `[{"loc":["body"],"msg":"wrong"}]`}},
		{"418", 418, nil, `null`, fault{Kind: assay.BadRequest, Detail: "I'm a teapot"}},
		{"400Burst", 400, nil, openaiError("Too many requests, slow down", "", "", ""), fault{Kind: assay.RateLimited, Detail: "Too many requests, slow down"}},
		{
			"400Throttled", 400, header("Retry-After", "2"), openaiError("x", "Throttling.RateQuota", "", ""),
			fault{Kind: assay.RateLimited, RetryAfter: 2 * time.Second, Detail: "x"},
		},
		{"400Filter", 400, nil, openaiError("filtered", "", "prompt", "content_filter"), fault{Kind: assay.ContentFilter, Detail: "filtered"}},
		{
			"400InnerFilter", 400, nil, `{"error":{"message":"filtered","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`,
			fault{Kind: assay.ContentFilter, Detail: "filtered"},
		},
		{
			"400NoModel", 400, nil, openaiError("no model", "", "model", "model_not_found"),
			fault{Kind: assay.NotFound, Detail: `no model; hint: check the deployment "small" and base_url`},
		},
		{"429", 429, nil, `{}`, fault{Kind: assay.RateLimited, Detail: "Too Many Requests"}},
		{
			"429Milliseconds", 429, header("Retry-After", "9", "Retry-After-Ms", "1500"), `{}`,
			fault{Kind: assay.RateLimited, RetryAfter: 1500 * time.Millisecond, Detail: "Too Many Requests"},
		},
		{
			"429Date", 429, header("Date", "Mon, 02 Jan 2006 15:04:05 GMT", "Retry-After", "Mon, 02 Jan 2006 15:04:35 GMT"), `{}`,
			fault{Kind: assay.RateLimited, RetryAfter: 30 * time.Second, Detail: "Too Many Requests"},
		},
		{
			"429Past", 429, header("Date", "Mon, 02 Jan 2006 15:04:05 GMT", "Retry-After", "Mon, 02 Jan 2006 15:04:00 GMT"), `{}`,
			fault{Kind: assay.RateLimited, Detail: "Too Many Requests"},
		},
		{"429Negative", 429, header("Retry-After", "-5"), `{}`, fault{Kind: assay.RateLimited, Detail: "Too Many Requests"}},
		{"429Endless", 429, header("Retry-After", "1e300"), `{}`, fault{Kind: assay.RateLimited, RetryAfter: time.Hour, Detail: "Too Many Requests"}},
		{"429Rubbish", 429, header("Retry-After", "soon"), `{}`, fault{Kind: assay.RateLimited, Detail: "Too Many Requests"}},
		{
			"429Reset", 429, header("X-Ratelimit-Reset-Requests", "6m0s"), `{}`,
			fault{Kind: assay.RateLimited, RetryAfter: 6 * time.Minute, Detail: "Too Many Requests"},
		},
		{
			"429ResetSooner", 429, header("X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Reset-Tokens", "20ms"), `{}`,
			fault{Kind: assay.RateLimited, RetryAfter: 20 * time.Millisecond, Detail: "Too Many Requests"},
		},
		{
			"429ResetOfTheSpent", 429, header("X-Ratelimit-Reset-Requests", "1s", "X-Ratelimit-Remaining-Requests", "0",
				"X-Ratelimit-Reset-Tokens", "20ms", "X-Ratelimit-Remaining-Tokens", "7"), `{}`,
			fault{Kind: assay.RateLimited, RetryAfter: time.Second, Detail: "Too Many Requests"},
		},
		{"503", 503, header("Retry-After", "4"), `<html>busy</html>`, fault{Kind: assay.Overloaded, RetryAfter: 4 * time.Second, Detail: "Service Unavailable"}},
		{"529", 529, nil, openaiError("overloaded", "", "", ""), fault{Kind: assay.Overloaded, Detail: "overloaded"}},
		{"500", 500, nil, `{"error":`, fault{Kind: assay.Server, Detail: "Internal Server Error"}},
		{"502", 502, header("Content-Type", "text/html"), "<html><h1>Bad</h1></html>", fault{Kind: assay.Server, Detail: "Bad Gateway"}},
		{"ErrorWith200", 200, nil, `{"error":{"message":"slow down","code":429}}`, fault{Kind: assay.RateLimited, Detail: "slow down", Status: 429}},
		{"ErrorInCapitalsWith200", 200, nil, `{"Error":{"message":"slow down","code":429}}`, fault{Kind: assay.RateLimited, Detail: "slow down", Status: 429}},
		{"ListOfErrorsWith200", 200, nil, `[{"error":{"message":"slow down","code":429}}]`, fault{Kind: assay.Malformed, Detail: "the body is JSON, but not an object"}},
		{"HalfAnErrorWith200", 200, nil, `{"error":{"message":"slow down","code":429}`, fault{Kind: assay.Malformed, Detail: "the body of 43 bytes is not valid JSON"}},
		{"Text", 200, nil, ` "hello"`, fault{Kind: assay.Malformed, Detail: "the body is JSON, but not an object"}},
		{"Null", 200, nil, "null ", fault{Kind: assay.Malformed, Detail: "the body is JSON, but not an object"}},
		{"TwoDocuments", 200, nil, "{}{}", fault{Kind: assay.Malformed, Detail: "the body of 4 bytes is not valid JSON"}},
		{"UnclearErrorWith200", 200, nil, `{"error":{"message":"hm"},"choices":[]}`, fault{Kind: assay.Malformed, Detail: "hm"}},
		{
			"Filter", 200, nil, `{"model":"m","choices":[{"finish_reason":"content_filter","message":{"content":"half"}}]}`,
			fault{Kind: assay.ContentFilter, Detail: "the endpoint's filter cut the reply off"},
		},
		{"NoChoices", 200, nil, `{"choices":[]}`, fault{Kind: assay.Malformed, Detail: "the completion has no choices"}},
		{"ChoicesOfAnotherType", 200, nil, `{"choices":"none"}`, fault{Kind: assay.Malformed, Detail: "the completion has no choices"}},
		{"EmptyReply", 200, nil, `{"choices":[{"finish_reason":"stop","message":{"content":" "}}]}`, fault{Kind: assay.Malformed, Detail: "empty reply"}},
		{"BadJSON", 200, nil, `{"choices":[`, fault{Kind: assay.Malformed, Detail: "the body of 12 bytes is not valid JSON"}},
		{"NoBody", 200, nil, ``, fault{Kind: assay.Malformed, Detail: "the body of 0 bytes is not valid JSON"}},
		{"List", 200, nil, `[]`, fault{Kind: assay.Malformed, Detail: "the body is JSON, but not an object"}},
		{"HTML", 200, header("Content-Type", "text/html; charset=utf-8"), "<html>", fault{Kind: assay.Malformed, Detail: `the content type is "text/html; charset=utf-8" instead of JSON`}},
		{"LongMessage", 400, nil, openaiError(strings.Repeat("ä", 400), "", "", ""), fault{Kind: assay.BadRequest, Detail: strings.Repeat("ä", 148) + "…"}},
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
			}), openai.Config{Key: openai.NewSecret("sk-0123456789"), KeyName: "SMALL_KEY"})
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

// A fault of a reply that did arrive still says who answered and what it cost.
func TestFaultKeepsModelAndUsage(t *testing.T) {
	t.Parallel()
	_, p := record(t, `{"model":"m","choices":[],"usage":{"prompt_tokens":5,"completion_tokens":-2}}`, openai.Config{})
	resp, _ := chatFault(t, t.Context(), p)
	want := assay.Response{ServedModel: "m", Usage: assay.Usage{InputTokens: 5}}
	if d := cmp.Diff(want, resp); d != "" {
		t.Errorf("response differs (-want +got):\n%s", d)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request was sent on")
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for name, client := range map[string]*http.Client{"Ours": nil, "Theirs": {}} {
			t.Run(fmt.Sprint(status, name), func(t *testing.T) {
				p := serve(t, http.RedirectHandler(elsewhere.URL+"/v1", status), openai.Config{Client: client})
				_, f := chatFault(t, t.Context(), p)
				if f.Kind != assay.Network || f.Status != status || !strings.Contains(f.Detail, "base_url") {
					t.Errorf("fault = %+v, want network with a hint", f)
				}
			})
		}
	}
}

func TestFaultOfConnection(t *testing.T) {
	t.Parallel()
	hijack := func(text string, linger int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, text)
			_ = conn.(*net.TCPConn).SetLinger(linger)
			_ = conn.Close()
		}
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    assay.FaultKind
	}{
		{"Reset", hijack("", 0), assay.Network},
		{"Closed", hijack("", -1), assay.Network},
		{"Truncated", hijack(head+"Content-Length: 500\r\n\r\n{\"choices\":[", -1), assay.Network},
		{"ResetInBody", hijack(head+"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"cho", 0), assay.Network},
		{"NoHTTP", hijack("SSH-2.0-OpenSSH\r\n", -1), assay.Network},
		{"TooLarge", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"choices":[],"x":"`+strings.Repeat("x", 5000)+`"}`)
		}, assay.Malformed},
		{"TooLargeCompressed", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gzipped(t, strings.Repeat(" ", 1<<20)+hello))
		}, assay.Malformed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			client := openai.NewClient(openai.ClientOptions{MaxBody: 4096})
			t.Cleanup(client.CloseIdleConnections)
			p := serve(t, test.handler, openai.Config{Client: client})
			_, f := chatFault(t, t.Context(), p)
			if f.Kind != test.want || f.Detail == "" {
				t.Errorf("fault = %+v, want %s", f, test.want)
			}
		})
	}
}

func TestFaultOfUnreachableEndpoint(t *testing.T) {
	t.Parallel()
	quiet := log.New(io.Discard, "", 0)
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = quiet
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	noName := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "assay.invalid", IsNotFound: true}}
		},
	}}
	slowName := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "i/o timeout", Name: "assay.invalid", IsTimeout: true}
		},
	}}
	tests := []struct {
		name, url string
		client    *http.Client
		say       string
	}{
		{"UntrustedCertificate", untrusted.URL, nil, "certificate"},
		{"NoTLS", strings.Replace(plain.URL, "http:", "https:", 1), nil, "HTTP"},
		{"Refused", gone.URL, nil, "refused"},
		{"DNS", "http://assay.invalid", noName, "assay.invalid"},
		{"DNSTimeout", "http://assay.invalid", slowName, "assay.invalid"},
		{"DNSOfTheSystem", "http://assay.invalid", nil, "assay.invalid"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, openai.Config{BaseURL: test.url, Client: test.client})
			_, f := chatFault(t, t.Context(), p)
			if f.Kind != assay.Network || f.Status != 0 || !strings.Contains(f.Detail, test.say) {
				t.Errorf("fault = %+v, want network and %q", f, test.say)
			}
		})
	}
}

// stall answers like the named misbehaviour until the client has left.
func stall(how string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if how != "hang" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":`)
			_ = http.NewResponseController(w).Flush()
		}
		for how == "drip" {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Millisecond):
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
			}
		}
		<-r.Context().Done()
	}
}

func TestHangsEndWithTheContext(t *testing.T) {
	t.Parallel()
	stopped := errors.New("second Ctrl-C")
	reason := &assay.Fault{Kind: assay.Overloaded, Detail: "the lane closed"}
	ends := []struct {
		name string
		end  func(context.Context) (context.Context, context.CancelFunc)
		want assay.Fault
	}{
		{"Deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 20*time.Millisecond)
		}, assay.Fault{Kind: assay.Timeout, Detail: "context deadline exceeded"}},
		{"Cancel", cancelled(stopped), assay.Fault{Kind: assay.Interrupted, Detail: "second Ctrl-C"}},
		{"CancelWithFault", cancelled(reason), *reason},
	}
	for _, how := range []string{"hang", "hang-body", "drip"} {
		for _, end := range ends {
			t.Run(how+"/"+end.name, func(t *testing.T) {
				t.Parallel()
				p := serve(t, stall(how), openai.Config{})
				ctx, cancel := end.end(t.Context())
				defer cancel()
				_, f := chatFault(t, ctx, p)
				if d := cmp.Diff(&end.want, f, cmpopts.IgnoreFields(assay.Fault{}, "Err")); d != "" {
					t.Errorf("fault differs (-want +got):\n%s", d)
				}
			})
		}
	}
}

// cancelled returns a context that ends soon, for a reason.
func cancelled(cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
		return ctx, func() { timer.Stop(); cancel(nil) }
	}
}

func TestHeaderTimeout(t *testing.T) {
	t.Parallel()
	client := openai.NewClient(openai.ClientOptions{ResponseHeaderTimeout: 20 * time.Millisecond})
	t.Cleanup(client.CloseIdleConnections)
	p := serve(t, stall("hang"), openai.Config{Client: client})
	_, f := chatFault(t, t.Context(), p)
	if f.Kind != assay.Timeout {
		t.Errorf("fault = %+v, want a timeout", f)
	}
}

// A body that stops is given up, and its connection with it: the handler ends
// when the client has left.
func TestBodyIdle(t *testing.T) {
	t.Parallel()
	left := make(chan struct{})
	stop := stall("hang-body")
	client := openai.NewClient(openai.ClientOptions{BodyIdle: 20 * time.Millisecond})
	t.Cleanup(client.CloseIdleConnections)
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(left)
		stop(w, r)
	}), openai.Config{Client: client})
	_, f := chatFault(t, t.Context(), p)
	want := &assay.Fault{Kind: assay.Timeout, Status: 200, Detail: "read the response body: no data received for 20ms"}
	if d := cmp.Diff(want, f, cmpopts.IgnoreFields(assay.Fault{}, "Err")); d != "" {
		t.Errorf("fault differs (-want +got):\n%s", d)
	}
	<-left
}

// pausing is a body whose bytes each take a while, within a context.
type pausing struct {
	io.Reader
	ctx   context.Context
	pause time.Duration
}

func (b pausing) Read(p []byte) (int, error) {
	select {
	case <-b.ctx.Done():
		return 0, b.ctx.Err()
	case <-time.After(b.pause):
		return b.Reader.Read(p[:1])
	}
}

func (pausing) Close() error { return nil }

// roundTripper answers with a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// By default a body may pause for a minute. One that drips is read to its end,
// however long that is in all.
func TestPausesInABody(t *testing.T) {
	t.Parallel()
	for pause, want := range map[time.Duration]string{
		59 * time.Second: "",
		61 * time.Second: "timeout (HTTP 200): read the response body: no data received for 1m0s",
	} {
		synctest.Test(t, func(t *testing.T) {
			var asked context.Context
			p := newProvider(t, openai.Config{Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				asked = r.Context()
				return &http.Response{StatusCode: 200, Header: headers(), Body: pausing{strings.NewReader(hello), asked, pause}}, nil
			})}})
			start := time.Now()
			_, err := p.Chat(t.Context(), hi())
			spent, got := time.Duration(len(hello)+1)*pause, ""
			if err != nil {
				spent, got = time.Minute, err.Error()
			}
			if got != want || time.Since(start) != spent {
				t.Errorf("pauses of %v: fault %q after %v, want %q after %v", pause, got, time.Since(start), want, spent)
			}
			if asked.Err() == nil {
				t.Error("the request's context is not released")
			}
		})
	}
}

func TestEndpointThatNeverSpeaksTLS(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client := openai.NewClient(openai.ClientOptions{TLSTimeout: 20 * time.Millisecond})
	t.Cleanup(client.CloseIdleConnections)
	p := newProvider(t, openai.Config{BaseURL: "https://" + listener.Addr().String(), Client: client})
	if _, f := chatFault(t, t.Context(), p); f.Kind != assay.Timeout || !strings.Contains(f.Detail, "TLS handshake") {
		t.Errorf("fault = %+v, want a timeout of the handshake", f)
	}
}

func TestDialTimeout(t *testing.T) {
	t.Parallel()
	client := openai.NewClient(openai.ClientOptions{DialTimeout: time.Nanosecond})
	p := newProvider(t, openai.Config{BaseURL: "http://127.0.0.1:9", Client: client})
	if _, f := chatFault(t, t.Context(), p); f.Kind != assay.Timeout {
		t.Errorf("fault = %+v, want a timeout", f)
	}
}

func TestContextThatHasEnded(t *testing.T) {
	t.Parallel()
	_, p := record(t, hello, openai.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, f := chatFault(t, ctx, p); f.Kind != assay.Interrupted || !errors.Is(f, context.Canceled) {
		t.Errorf("fault = %+v, want interrupted", f)
	}
}
