package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// direct carries out requests to endpoints without TLS and without a proxy, such as servers of
// models on the same machine or in the same network. There, thousands of requests may be in flight
// and the CPU is the limit. [http.Transport] takes two goroutines, two buffers and several wake-ups
// for each of them. direct takes none: the caller's goroutine writes the request with one system
// call and waits for the response without a buffer. All other requests go to next.
//
// It speaks HTTP/1.1, keeps connections open, and leaves the reading of responses to net/http. Like
// [http.Transport], it sends a request again if the connection was closed before a byte of it was
// written, and never otherwise.
type direct struct {
	next *http.Transport
	idle idleConns
}

// The largest body in bytes that direct writes before it reads the response. It fits the buffers
// of a connection, or nearly so. An endpoint may answer before it has read all of a larger one.
const largestDirect = 128 << 10

// largestHead limits the head of a response in bytes, as [http.Transport] does.
const largestHead = 10 << 20

func newDirect(next *http.Transport) *direct {
	return &direct{next: next, idle: idleConns{
		most: next.MaxIdleConnsPerHost, expiry: next.IdleConnTimeout,
		byAddress: make(map[string][]*directConn),
	}}
}

// RoundTrip implements [http.RoundTripper].
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if !d.takes(req) {
		return d.next.RoundTrip(req)
	}
	return d.carryOut(req)
}

// carryOut carries out a request that direct takes. The body of the response is a *directBody.
func (d *direct) carryOut(req *http.Request) (*http.Response, error) {
	resp, err := d.exchange(req)
	if cause := context.Cause(req.Context()); err != nil && cause != nil {
		return nil, cause
	}
	return resp, err
}

// CloseIdleConnections makes [http.Client.CloseIdleConnections] work.
func (d *direct) CloseIdleConnections() {
	d.idle.closeBefore(time.Now())
	d.next.CloseIdleConnections()
}

// takes reports whether a request is a plain one. Whatever is out of the ordinary is left to
// net/http, with its checks.
func (d *direct) takes(req *http.Request) bool {
	u := req.URL
	if u.Scheme != "http" || u.User != nil || req.Method != http.MethodPost ||
		req.Body == nil || req.ContentLength <= 0 || req.ContentLength > largestDirect ||
		req.TransferEncoding != nil || req.Trailer != nil || req.Close || !isPlainHost(req) {
		return false
	}
	for name, values := range req.Header {
		switch name {
		case "Host", "Connection", "Upgrade", "Expect", "Accept-Encoding", "Content-Length",
			"Transfer-Encoding", "Trailer":
			return false
		}
		if !isToken(name) || slices.ContainsFunc(values, hasControl) {
			return false
		}
	}
	proxy, err := d.next.Proxy(req)
	return proxy == nil && err == nil
}

// isPlainHost reports whether the host of a URL can be sent as it is.
func isPlainHost(req *http.Request) bool {
	host := req.URL.Host
	return host != "" && (req.Host == "" || req.Host == host) && !strings.HasSuffix(host, ":") &&
		!strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r == '%' || r >= 0x7f })
}

func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return !isPlain(r) })
}

// hasControl reports whether a header's value has a character that does not belong there.
func hasControl(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return true
		}
	}
	return false
}

func (d *direct) exchange(req *http.Request) (*http.Response, error) {
	message := messages.Get().(*bytes.Buffer)
	err := writeRequest(message, req)
	if err != nil {
		messages.Put(message)
		return nil, err
	}
	c, err := d.send(req, message)
	messages.Put(message)
	if err != nil {
		return nil, err
	}
	resp, err := c.receive(req, d.next.ResponseHeaderTimeout)
	if err != nil {
		c.close()
		return nil, err
	}
	return resp, nil
}

// messages has buffers for requests, which are only needed until they are sent.
var messages = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// writeRequest replaces the content of a buffer with a request. It closes the request's body.
func writeRequest(to *bytes.Buffer, req *http.Request) error {
	defer req.Body.Close()
	to.Reset()
	to.WriteString("POST ")
	to.WriteString(req.URL.RequestURI())
	to.WriteString(" HTTP/1.1\r\nHost: ")
	to.WriteString(req.URL.Host)
	to.WriteString("\r\nContent-Length: ")
	to.Write(strconv.AppendInt(to.AvailableBuffer(), req.ContentLength, 10))
	to.WriteString("\r\nAccept-Encoding: gzip\r\n")
	for name, values := range req.Header {
		for _, value := range values {
			to.WriteString(name)
			to.WriteString(": ")
			to.WriteString(strings.Trim(value, " \t"))
			to.WriteString("\r\n")
		}
	}
	to.WriteString("\r\n")
	to.Grow(int(req.ContentLength) + bytes.MinRead)
	n, err := readBody(to, req)
	if err == nil && n != req.ContentLength {
		err = fmt.Errorf("the request's length is %d, but its body has another one",
			req.ContentLength)
	}
	return err
}

// readBody appends the body of a request, or one byte more than its length if it is longer.
func readBody(to *bytes.Buffer, req *http.Request) (int64, error) {
	if b, ok := req.Body.(*Body); ok && b.size() == req.ContentLength {
		return b.WriteTo(to)
	}
	return to.ReadFrom(io.LimitReader(req.Body, req.ContentLength+1))
}

// send writes a message to an idle connection or to a new one, which is closed when the request's
// context ends.
func (d *direct) send(req *http.Request, message *bytes.Buffer) (*directConn, error) {
	ctx, address := req.Context(), req.URL.Host
	for {
		c, err := d.conn(ctx, address)
		if err != nil {
			return nil, err
		}
		c.release = context.AfterFunc(ctx, func() { _ = c.Close() })
		n, err := c.Write(message.Bytes())
		switch {
		case err == nil:
			return c, nil
		case n > 0 && ctx.Err() == nil:
			// The endpoint may have answered and closed the connection, for example because the
			// body is too large.
			c.broken = err
			return c, nil
		}
		c.close()
		if !c.used || n > 0 || ctx.Err() != nil {
			return nil, err
		}
	}
}

// conn returns an idle connection or a new one.
func (d *direct) conn(ctx context.Context, address string) (*directConn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if c := d.idle.take(address); c != nil {
		return c, nil
	}
	target := address
	if _, _, err := net.SplitHostPort(address); err != nil {
		target = net.JoinHostPort(strings.Trim(address, "[]"), "80")
	}
	conn, err := d.next.DialContext(ctx, "tcp", target)
	if err != nil {
		return nil, err
	}
	return newDirectConn(conn, &d.idle, address), nil
}

// A directConn is a connection with one request at a time. Its readers are taken when there is
// something to read.
type directConn struct {
	net.Conn
	socket  socket
	pool    *idleConns
	address string
	used    bool        // for an earlier request
	since   time.Time   // when it became idle
	release func() bool // ends the watch over the request's context
	broken  error       // the error of writing the request
	left    int64       // how much more of a head may be read
	reader  *bufio.Reader
}

func newDirectConn(conn net.Conn, pool *idleConns, address string) *directConn {
	return &directConn{Conn: conn, socket: socketOf(conn), pool: pool, address: address}
}

// errLargeHead is the error of a response whose head does not end.
var errLargeHead = errors.New("the head of the response is too large")

func (c *directConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLargeHead
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

// readers are shared by all connections. Bodies that are larger than a buffer bypass it.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

// receive reads the head of a response. Its body reads from the connection.
func (c *directConn) receive(req *http.Request, timeout time.Duration) (*http.Response, error) {
	if c.broken != nil {
		timeout = min(timeout, 100*time.Millisecond)
	}
	_ = c.SetReadDeadline(time.Now().Add(timeout))
	if err := c.socket.wait(); err != nil {
		return nil, c.failed(err)
	}
	c.left = largestHead
	c.reader = readers.Get().(*bufio.Reader)
	c.reader.Reset(c)
	resp, err := c.head(req)
	if err != nil {
		return nil, c.failed(err)
	}
	_ = c.SetReadDeadline(time.Time{})
	c.left = math.MaxInt64
	body := &directBody{
		ReadCloser: resp.Body, conn: c, last: resp.Close || c.broken != nil, socket: c.Conn,
	}
	if resp.Body == http.NoBody {
		body.end()
	}
	resp.Body = body
	return resp, nil
}

// head reads the head of a response, after those of provisional ones.
func (c *directConn) head(req *http.Request) (*http.Response, error) {
	if resp, ok := readPlain(c.reader, req); ok {
		return resp, nil
	}
	for range 5 {
		resp, err := http.ReadResponse(c.reader, req)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errors.New("the endpoint switches to another protocol")
		case resp.StatusCode >= 200:
			return resp, nil
		}
	}
	return nil, errors.New("too many provisional responses")
}

// failed returns the error of an exchange: that of writing, if there was one.
func (c *directConn) failed(err error) error {
	var timeout net.Error
	switch {
	case c.broken != nil:
		return c.broken
	case errors.As(err, &timeout) && timeout.Timeout():
		return headTimeout{}
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// headTimeout is the error of an endpoint that does not answer.
type headTimeout struct{}

func (headTimeout) Error() string   { return "timeout awaiting response headers" }
func (headTimeout) Timeout() bool   { return true }
func (headTimeout) Temporary() bool { return true }

// close closes the connection and returns its reader. It is called by the goroutine of the request.
func (c *directConn) close() {
	if c.release != nil {
		c.release()
	}
	_ = c.Close()
	c.dropReader()
}

func (c *directConn) dropReader() {
	if c.reader != nil {
		c.reader.Reset(nil)
		readers.Put(c.reader)
		c.reader = nil
	}
}

// directBody is the body of a response. Once it has been read to its end, its connection is idle.
// If it never is, the connection is closed.
type directBody struct {
	io.ReadCloser
	conn   *directConn // nil after the end
	last   bool        // the connection must not be used again
	socket net.Conn    // of conn
	// over is set by whoever comes first: the end of the body, or abort.
	over atomic.Bool
}

func (b *directBody) Read(p []byte) (int, error) {
	if b.conn == nil {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.end()
	}
	return n, err
}

// arrived reports whether a body of n bytes needs nothing more from its connection.
func (b *directBody) arrived(n int64) bool {
	return b.conn == nil || n >= 0 && int64(b.conn.reader.Buffered()) >= n
}

// abort makes reading fail, unless the body has ended. It may be called by another goroutine.
func (b *directBody) abort() {
	if b.over.CompareAndSwap(false, true) {
		_ = b.socket.Close()
	}
}

func (b *directBody) Close() error {
	if c := b.conn; c != nil {
		b.conn = nil
		c.close()
	}
	return nil
}

// end gives the connection back, unless it cannot be used again.
func (b *directBody) end() {
	c := b.conn
	b.conn = nil
	if b.last || c.reader.Buffered() > 0 || !c.release() || !b.over.CompareAndSwap(false, true) {
		c.close()
		return
	}
	c.release = nil
	c.dropReader()
	c.pool.put(c)
}

// idleConns are the connections without a request. It is safe for concurrent use.
type idleConns struct {
	most   int // for each address
	expiry time.Duration

	mu        sync.Mutex
	byAddress map[string][]*directConn // oldest first; guarded by mu
	sweeping  bool                     // a timer will close old ones; guarded by mu
}

// take returns the connection that was used last and is still open, or nil if there is none.
func (p *idleConns) take(address string) *directConn {
	for {
		p.mu.Lock()
		conns := p.byAddress[address]
		if len(conns) == 0 {
			p.mu.Unlock()
			return nil
		}
		c := conns[len(conns)-1]
		conns[len(conns)-1] = nil
		p.byAddress[address] = conns[:len(conns)-1]
		p.mu.Unlock()
		if c.socket.silent(time.Since(c.since)) {
			return c
		}
		_ = c.Close()
	}
}

func (p *idleConns) put(c *directConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.used, c.since = true, time.Now()
	if len(p.byAddress[c.address]) >= p.most {
		_ = c.Close()
		return
	}
	p.byAddress[c.address] = append(p.byAddress[c.address], c)
	if !p.sweeping {
		p.sweeping = true
		time.AfterFunc(p.expiry, p.sweep)
	}
}

// sweep closes the connections that were idle for too long, and comes back if there are others.
func (p *idleConns) sweep() {
	p.closeBefore(time.Now().Add(-p.expiry))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sweeping = len(p.byAddress) > 0
	if p.sweeping {
		time.AfterFunc(p.expiry/2, p.sweep)
	}
}

// closeBefore closes the connections that are idle since before a time.
func (p *idleConns) closeBefore(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for address, conns := range p.byAddress {
		n := 0
		for n < len(conns) && !conns[n].since.After(t) {
			_ = conns[n].Close()
			n++
		}
		if conns = slices.Delete(conns, 0, n); len(conns) == 0 {
			delete(p.byAddress, address)
			continue
		}
		p.byAddress[address] = conns
	}
}
