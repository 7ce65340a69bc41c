package openai

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const defaultMaxBody = 8 << 20

// ClientOptions sets up the HTTP client that the providers of a process share.
type ClientOptions struct {
	// ResponseHeaderTimeout bounds the wait for the first byte of a response,
	// which for a completion is nearly all of its time; 5 minutes by default.
	// A request's own deadline, its context's, is usually shorter.
	ResponseHeaderTimeout time.Duration
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
	if opts.ResponseHeaderTimeout <= 0 {
		opts.ResponseHeaderTimeout = 5 * time.Minute
	}
	if opts.MaxIdleConnsPerHost <= 0 {
		opts.MaxIdleConnsPerHost = 256
	}
	if opts.MaxBody <= 0 {
		opts.MaxBody = defaultMaxBody
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	base := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: opts.ResponseHeaderTimeout,
		MaxIdleConnsPerHost:   opts.MaxIdleConnsPerHost,
		IdleConnTimeout:       90 * time.Second,
		ForceAttemptHTTP2:     true,
		// Many requests share one HTTP/2 connection: without pings a dead one
		// would take them all to their deadlines.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
	}
	return &http.Client{
		Transport:     &guard{next: base, limit: opts.MaxBody, scrub: newScrubber(opts.Secrets)},
		CheckRedirect: noRedirect,
	}
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// guarded returns a client like c that follows no redirect and also scrubs the
// secrets of s. It shares c's connections.
func guarded(c *http.Client, s *scrubber) *http.Client {
	next := c.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	g := &guard{next: next, limit: defaultMaxBody, scrub: s}
	if inner, ok := next.(*guard); ok {
		g = &guard{next: inner.next, limit: inner.limit, scrub: inner.scrub.with(s)}
	}
	return &http.Client{Transport: g, CheckRedirect: noRedirect, Jar: c.Jar, Timeout: c.Timeout}
}

// guard reads a response body whole, within the request's context and up to
// limit bytes, closes it, and hands it on without the secrets.
type guard struct {
	next  http.RoundTripper
	limit int64
	scrub *scrubber
}

// RoundTrip returns a *bodyError when the headers came and the body did not.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, g.limit+1))
	// A reply that arrived whole is not lost because its close went wrong.
	_ = resp.Body.Close()
	if err == nil && int64(len(body)) > g.limit {
		err = tooLargeError(g.limit)
	}
	if err != nil {
		return nil, &bodyError{status: resp.StatusCode, err: err}
	}
	body = g.scrub.bytes(body)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	resp.Header.Del("Content-Length")
	return resp, nil
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

func isTooLarge(err error) bool {
	var e tooLargeError
	return errors.As(err, &e)
}
