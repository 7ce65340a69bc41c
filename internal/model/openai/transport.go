package openai

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

// ClientOptions sets up the HTTP client that the providers of a process share.
type ClientOptions struct {
	// DialTimeout bounds the wait for a connection, name resolution included,
	// and TLSTimeout the wait for its handshake; 10 seconds each by default.
	DialTimeout, TLSTimeout time.Duration
	// ResponseHeaderTimeout bounds the wait for the first byte of a response,
	// which for a completion is nearly all of its time; 5 minutes by default.
	// A request's own deadline, its context's, is usually shorter.
	ResponseHeaderTimeout time.Duration
	// BodyIdle bounds the wait for each further byte of a body, 1 minute by
	// default. A body that keeps dripping has the request's deadline alone.
	BodyIdle time.Duration
	// MaxIdleConnsPerHost is how many connections to one host are kept for
	// reuse, 256 by default. Give the number of requests in flight, or each
	// request beyond it costs a handshake.
	MaxIdleConnsPerHost int
	// MaxBody bounds a response body in bytes, 8 MiB by default.
	MaxBody int64
	// Secrets are replaced in every body before anything else sees it.
	Secrets []Secret
}

// NewClient returns a client with pooled connections and a deadline on every
// step. It follows no redirect, since a key must not be sent elsewhere, and
// takes proxies from the environment. A response that it returns has a body
// that is already read: closing it is free and forgetting to is harmless.
func NewClient(opts ClientOptions) *http.Client {
	opts.setDefaults()
	dialer := &net.Dialer{Timeout: opts.DialTimeout, KeepAlive: 15 * time.Second}
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   opts.TLSTimeout,
		ResponseHeaderTimeout: opts.ResponseHeaderTimeout,
		MaxIdleConnsPerHost:   opts.MaxIdleConnsPerHost,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		// Bodies are read and written past these buffers, of which every
		// connection has two while it waits for a reply.
		ReadBufferSize:  2 << 10,
		WriteBufferSize: 2 << 10,
		// Many requests share one HTTP/2 connection: without pings a dead one
		// would take them all to their deadlines.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &http.Client{
		Transport:     &guard{next: base, limit: opts.MaxBody, idle: opts.BodyIdle, scrub: newScrubber(opts.Secrets)},
		CheckRedirect: noRedirect,
	}
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

// guardOf returns a guard over the connections of c that also scrubs the
// secrets of s.
func guardOf(c *http.Client, s *scrubber) *guard {
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	if inner, ok := next.(*guard); ok {
		return &guard{next: inner.next, limit: inner.limit, idle: inner.idle, scrub: inner.scrub.with(s)}
	}
	return &guard{next: next, limit: defaultMaxBody, idle: defaultBodyIdle, scrub: s}
}

// guard reads a response body whole, within the request's context, without a
// pause longer than idle and up to limit bytes, closes it, and hands it on
// without the secrets.
type guard struct {
	next  http.RoundTripper
	limit int64
	idle  time.Duration
	scrub *scrubber
}

// RoundTrip returns the errors of fetch.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, body, err := g.fetch(req)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
}

// fetch returns a response, whose own Body is spent, and its content. The
// error is a *bodyError when the headers came and the body did not.
func (g *guard) fetch(req *http.Request) (*http.Response, []byte, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	resp, err := g.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	body, err := g.read(resp, cancel)
	// A reply that arrived whole is not lost because its close went wrong.
	_ = resp.Body.Close()
	if err != nil {
		var idle idleError
		if errors.As(context.Cause(ctx), &idle) {
			err = idle
		}
		return nil, nil, &bodyError{status: resp.StatusCode, err: err}
	}
	return resp, g.scrub.bytes(body), nil
}

// read returns the whole body. It cancels the request, which closes its
// connection, when no byte comes for too long.
func (g *guard) read(resp *http.Response, cancel context.CancelCauseFunc) ([]byte, error) {
	watch := time.AfterFunc(g.idle, func() { cancel(idleError(g.idle)) })
	defer watch.Stop()
	var body bytes.Buffer
	// ReadFrom wants room at the end, or it grows the buffer once more. A long
	// body gets its room as it comes, for its length is only a promise.
	body.Grow(int(min(max(resp.ContentLength, 0), 64<<10)) + bytes.MinRead)
	_, err := body.ReadFrom(&watchedBody{io.LimitReader(resp.Body, g.limit+1), watch, g.idle})
	if err == nil && int64(body.Len()) > g.limit {
		err = tooLargeError(g.limit)
	}
	return body.Bytes(), err
}

// A watchedBody winds its watch up at every byte.
type watchedBody struct {
	io.Reader
	watch *time.Timer
	idle  time.Duration
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if n > 0 {
		b.watch.Reset(b.idle)
	}
	return n, err
}

// CloseIdleConnections lets [http.Client.CloseIdleConnections] through.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// A bodyError is a failure after the headers of a response.
type bodyError struct {
	status int
	err    error
}

func (e *bodyError) Error() string { return "read the response body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// tooLargeError holds the limit, in bytes, that a body exceeded.
type tooLargeError int64

func (e tooLargeError) Error() string {
	return fmt.Sprintf("longer than %d bytes", int64(e))
}

// idleError is how long no byte of a body came.
type idleError time.Duration

func (e idleError) Error() string {
	return fmt.Sprintf("no byte came for %v", time.Duration(e))
}

func (idleError) Timeout() bool   { return true }
func (idleError) Temporary() bool { return true }

func isTooLarge(err error) bool {
	var e tooLargeError
	return errors.As(err, &e)
}
