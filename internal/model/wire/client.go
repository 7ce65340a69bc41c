package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	defaultMaxBody  = 8 << 20
	defaultBodyIdle = time.Minute
)

// ClientOptions configures the HTTP client shared by all providers of a process.
type ClientOptions struct {
	// DialTimeout bounds the time for connecting, including name resolution, and
	// TLSTimeout the time for the handshake. The defaults are 10 seconds.
	DialTimeout, TLSTimeout time.Duration
	// ResponseHeaderTimeout bounds the time to the first byte of a response, which
	// is nearly all of the time of a completion. The default is 5 minutes. The
	// deadline of a request's context is usually earlier.
	ResponseHeaderTimeout time.Duration
	// BodyIdle bounds the time to each further byte of a body. The default is 1
	// minute. A body that keeps dripping is only bounded by the request's deadline.
	BodyIdle time.Duration
	// MaxIdleConnsPerHost is the number of connections per host that are kept for
	// reuse. The default is 256. It should be the number of requests in flight,
	// because each request beyond it costs a handshake.
	MaxIdleConnsPerHost int
	// MaxBody is the maximum size of a response body in bytes. The default is 8 MiB.
	MaxBody int64
	// Secrets are replaced in every body before it is passed on.
	Secrets []Secret
	// Transport, if set, carries requests instead of connections. Its responses are read, limited and
	// scrubbed like others.
	Transport http.RoundTripper
}

// NewClient returns a client with pooled connections and a time limit for every
// step. It does not follow redirects, because a key must not be sent elsewhere. It
// takes proxies from the environment. The body of a response has already been
// read, so it need not be closed.
func NewClient(opts ClientOptions) *http.Client {
	opts.setDefaults()
	dialer := &net.Dialer{Timeout: opts.DialTimeout, KeepAlive: 15 * time.Second}
	var base http.RoundTripper = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: checkProxy,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    opts.TLSTimeout,
		ResponseHeaderTimeout:  opts.ResponseHeaderTimeout,
		MaxIdleConnsPerHost:    opts.MaxIdleConnsPerHost,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		// Every waiting connection has these two buffers. They can be small because
		// bodies bypass them.
		ReadBufferSize:  2 << 10,
		WriteBufferSize: 2 << 10,
		// Many requests share one HTTP/2 connection. Without pings, a dead connection
		// would hold all of them until their deadlines.
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: 15 * time.Second,
			PingTimeout:     15 * time.Second,
		},
	}
	if opts.Transport != nil {
		base = opts.Transport
	}
	transport := &guard{
		next: base, connecting: new(connectLimits),
		limit: opts.MaxBody, idle: opts.BodyIdle, scrub: NewRedactor(opts.Secrets),
	}
	return &http.Client{Transport: transport, CheckRedirect: noRedirect}
}

func (o *ClientOptions) setDefaults() {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.DialTimeout, 10 * time.Second},
		{&o.TLSTimeout, 10 * time.Second},
		{&o.ResponseHeaderTimeout, 5 * time.Minute},
		{&o.BodyIdle, defaultBodyIdle},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	if o.MaxIdleConnsPerHost <= 0 {
		o.MaxIdleConnsPerHost = 256
	}
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// guardOf returns a guard with the connections of c that also scrubs the secrets
// of s.
func guardOf(c *http.Client, s *Redactor) *guard {
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	if inner, ok := next.(*guard); ok {
		both := *inner
		both.scrub = inner.scrub.with(s)
		return &both
	}
	return &guard{
		next: next, connecting: new(connectLimits),
		limit: defaultMaxBody, idle: defaultBodyIdle, scrub: s,
	}
}

// guard reads a response body completely and closes it. It fails if the request's
// context ends, if no byte comes for longer than idle, or if the body is larger
// than limit. It passes the body on without secrets.
type guard struct {
	next       http.RoundTripper
	connecting *connectLimits
	limit      int64
	idle       time.Duration
	scrub      *Redactor
}

// RoundTrip implements [http.RoundTripper]. It returns the same errors as fetch.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, body, err := g.fetch(req)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
	resp.Header.Del("Content-Encoding")
	return resp, nil
}

// fetch returns a response and the content of its body, which is closed. The error
// is a *bodyError if reading the body failed.
func (g *guard) fetch(req *http.Request) (*http.Response, []byte, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	if req.URL.Scheme == "https" {
		traced, release, err := g.connecting.of(req.URL.Host).acquire(ctx)
		if err != nil {
			return nil, nil, err
		}
		defer release()
		ctx = traced
	}
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	body, err := g.read(resp, func() { cancel(idleError(g.idle)) })
	// A complete reply is still good if closing it fails.
	_ = resp.Body.Close()
	if err != nil {
		var idle idleError
		if errors.As(context.Cause(ctx), &idle) {
			err = idle
		}
		return nil, nil, &bodyError{status: resp.StatusCode, err: err}
	}
	return resp, g.scrub.body(body), nil
}

// read returns the whole body. If no byte comes for too long, it calls stop, which ends the
// request.
func (g *guard) read(resp *http.Response, stop func()) ([]byte, error) {
	watch := time.AfterFunc(g.idle, stop)
	defer watch.Stop()
	resp.Body = watchedBody{resp.Body, watch, g.idle}
	var body bytes.Buffer
	// Leave MinRead bytes at the end, or ReadFrom grows the buffer once more. The
	// initial size is bounded because the content length may be wrong.
	body.Grow(int(min(max(resp.ContentLength, 0), 64<<10)) + bytes.MinRead)
	content, err := decoded(resp)
	if err != nil {
		return nil, err
	}
	_, err = body.ReadFrom(io.LimitReader(content, g.limit+1))
	if err == nil && int64(body.Len()) > g.limit {
		err = tooLargeError(g.limit)
	}
	return body.Bytes(), err
}

// watchedBody resets its timer whenever bytes arrive.
type watchedBody struct {
	io.ReadCloser
	watch *time.Timer
	idle  time.Duration
}

func (b watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.Reset(b.idle)
	}
	return n, err
}

// CloseIdleConnections makes [http.Client.CloseIdleConnections] work.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// bodyError is a failure after the headers of a response.
type bodyError struct {
	status int
	err    error
}

func (e *bodyError) Error() string { return "read the response body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// tooLargeError is the limit in bytes that a body exceeded.
type tooLargeError int64

func (e tooLargeError) Error() string {
	return fmt.Sprintf("longer than %d bytes", int64(e))
}

// idleError is the time during which no byte of a body came.
type idleError time.Duration

func (e idleError) Error() string {
	return fmt.Sprintf("no data received for %v", time.Duration(e))
}

func (idleError) Timeout() bool   { return true }
func (idleError) Temporary() bool { return true }

func isTooLarge(err error) bool {
	var e tooLargeError
	return errors.As(err, &e)
}
