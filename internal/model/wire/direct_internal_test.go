package wire

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// transport returns a client's own transport, and the part of it that is net/http's.
func transport(t *testing.T, opts ClientOptions) (*direct, *http.Transport) {
	t.Helper()
	client := NewClient(opts)
	t.Cleanup(client.CloseIdleConnections)
	d := client.Transport.(*guard).next.(*direct)
	return d, d.next
}

func post(t *testing.T, ctx context.Context, url, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "User-Agent": {"assay"}}
	return req
}

// scripted answers every request with a text, and closes the connection if it is the last one.
func scripted(t *testing.T, text string, last bool) (url string, connections *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections = new(atomic.Int32)
	var conns sync.WaitGroup
	serve := func(conn net.Conn) {
		defer conn.Close()
		r := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			if _, err := io.Copy(io.Discard, req.Body); err != nil {
				return
			}
			if _, err := io.WriteString(conn, text); err != nil || last {
				return
			}
		}
	}
	conns.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			conns.Go(func() { serve(conn) })
		}
	})
	t.Cleanup(func() { _ = listener.Close() })
	return "http://" + listener.Addr().String() + "/v1/chat", connections
}

// A reading is what a caller sees of a response.
type reading struct {
	status, body, header, trailer string
	failed                        bool
}

func read(rt http.RoundTripper, req *http.Request) reading {
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return reading{failed: true}
	}
	defer resp.Body.Close()
	var header bytes.Buffer
	_ = resp.Header.Write(&header)
	body, err := io.ReadAll(resp.Body)
	return reading{
		fmt.Sprint(resp.StatusCode), string(body), header.String(), fmt.Sprint(resp.Trailer), err != nil,
	}
}

// TestDirectReadsLikeNetHTTP compares what is read of ordinary, odd and broken responses, and
// whether their connections are used again.
func TestDirectReadsLikeNetHTTP(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcdef", 4096)
	tests := []struct {
		name, text string
		last       bool
	}{
		{"Length", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-A: b\r\nX-A: c\r\n\r\n{}", false},
		{"Long", "HTTP/1.1 200 OK\r\nContent-Length: 65536\r\n\r\n" + long, false},
		{
			"Chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
				"1\r\n{\r\n1;x=y\r\n}\r\n0\r\n\r\n", false,
		},
		{
			"Trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" +
				"2\r\n{}\r\n0\r\nX-T: 1\r\n\r\n", false,
		},
		{"UntilClosed", "HTTP/1.1 200 OK\r\n\r\n{}", true},
		{"OldVersion", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", true},
		{"Close", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", true},
		{"NoContent", "HTTP/1.1 204 No Content\r\n\r\n", false},
		{"Empty", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false},
		{
			"Provisional", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" +
				"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", false,
		},
		{"Error", "HTTP/1.1 429 Slow down\r\nRetry-After: 3\r\nContent-Length: 2\r\n\r\n{}", false},
		{"Redirect", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", false},
		{"TooShort", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", true},
		{"CutChunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}", true},
		{"BadChunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", true},
		{"BadLength", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}", true},
		{"TwoLengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", true},
		{"CutHead", "HTTP/1.1 200 OK\r\nContent-Le", true},
		{"NoHTTP", "SSH-2.0-OpenSSH\r\n", true},
		{"Nothing", "", true},
		{"TooMuch", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}{}", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var saw [2]reading
			var connected [2]int32
			own, std := transport(t, ClientOptions{MaxIdleConnsPerHost: 4})
			for i, rt := range []http.RoundTripper{own, std} {
				url, connections := scripted(t, test.text, test.last)
				for range 3 {
					req := post(t, t.Context(), url, `{"a":1}`)
					if !own.takes(req) {
						t.Fatal("the request is not taken")
					}
					saw[i] = read(rt, req)
				}
				connected[i] = connections.Load()
			}
			if saw[0] != saw[1] {
				t.Errorf("read %+v, net/http reads %+v", saw[0], saw[1])
			}
			if connected[0] != connected[1] {
				t.Errorf("%d connections, net/http makes %d", connected[0], connected[1])
			}
		})
	}
}

// TestDirectSendsLikeNetHTTP compares what a server receives.
func TestDirectSendsLikeNetHTTP(t *testing.T) {
	t.Parallel()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var header bytes.Buffer
		_ = r.Header.Write(&header)
		got = append(got, fmt.Sprint(r.Method, r.RequestURI, r.Proto, r.Host, r.ContentLength,
			r.TransferEncoding, header.String(), string(body), err))
	}))
	t.Cleanup(server.Close)
	own, std := transport(t, ClientOptions{})
	for _, path := range []string{"", "/v1/chat/completions", "/a%20b/c?x=1&y=%2F#z"} {
		got = nil
		for _, rt := range []http.RoundTripper{own, std} {
			req := post(t, t.Context(), server.URL+path, strings.Repeat("body ", 5000))
			req.Header["X-Two"] = []string{" first ", "second"}
			if !own.takes(req) {
				t.Fatal("the request is not taken")
			}
			if saw := read(rt, req); saw.failed {
				t.Fatal("the request failed")
			}
		}
		if got[0] != got[1] {
			t.Errorf("sent\n%s\nnet/http sends\n%s", got[0], got[1])
		}
	}
}

// TestDirectLeavesTheRest checks that requests out of the ordinary go to net/http.
func TestDirectLeavesTheRest(t *testing.T) {
	t.Parallel()
	own, _ := transport(t, ClientOptions{})
	const url = "http://127.0.0.1:1/v1"
	change := map[string]func(*http.Request){
		"TLS":       func(r *http.Request) { r.URL.Scheme = "https" },
		"Method":    func(r *http.Request) { r.Method = http.MethodPut },
		"NoLength":  func(r *http.Request) { r.ContentLength = -1 },
		"LongBody":  func(r *http.Request) { r.ContentLength = largestDirect + 1 },
		"Host":      func(r *http.Request) { r.Host = "other" },
		"Zone":      func(r *http.Request) { r.URL.Host = "[fe80::1%25eth0]:80" },
		"Unicode":   func(r *http.Request) { r.URL.Host = "bücher.example" },
		"Upgrade":   func(r *http.Request) { r.Header["Upgrade"] = []string{"h2c"} },
		"LineBreak": func(r *http.Request) { r.Header["X-A"] = []string{"a\r\nX-B: b"} },
		"BadName":   func(r *http.Request) { r.Header["X A"] = []string{"a"} },
	}
	for name, do := range change {
		req := post(t, t.Context(), url, "{}")
		do(req)
		if own.takes(req) {
			t.Errorf("%s: the request is taken", name)
		}
	}
	if own.next.Proxy = http.ProxyURL(post(t, t.Context(), "http://proxy", "{}").URL); own.takes(
		post(t, t.Context(), url, "{}")) {
		t.Error("a request behind a proxy is taken")
	}
}

// TestDirectNoticesClosedConnections checks that a connection that the server closed while it was
// idle is not used again.
func TestDirectNoticesClosedConnections(t *testing.T) {
	t.Parallel()
	url, connections := scripted(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", true)
	own, _ := transport(t, ClientOptions{})
	for i := range int32(20) {
		if saw := read(own, post(t, t.Context(), url, "{}")); saw.failed || saw.body != "{}" {
			t.Fatalf("request %d: %+v", i, saw)
		}
		// The server's end may still be on its way.
		for tries := 0; tries < 1000 && !gone(own); tries++ {
			time.Sleep(time.Millisecond)
		}
		if connections.Load() != i+1 {
			t.Fatalf("%d connections after %d requests", connections.Load(), i+1)
		}
	}
}

// gone reports whether no idle connection is open.
func gone(d *direct) bool {
	d.idle.mu.Lock()
	defer d.idle.mu.Unlock()
	for _, conns := range d.idle.byAddress {
		for _, c := range conns {
			if c.socket.silent(0) {
				return false
			}
		}
	}
	return true
}

// TestDirectReadsEarlyAnswer checks that the answer of a server that does not read the whole
// request is not lost.
func TestDirectReadsEarlyAnswer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}))
	t.Cleanup(server.Close)
	own, _ := transport(t, ClientOptions{})
	for range 50 {
		saw := read(own, post(t, t.Context(), server.URL, strings.Repeat("x", largestDirect)))
		if saw.status != "413" {
			t.Fatalf("%+v, want status 413", saw)
		}
	}
}

// TestDirectEndsWithItsContext checks that a request ends with its context, before and after the
// head of the response, and that its connection is closed.
func TestDirectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{"} {
		url, _ := scripted(t, head, false)
		own, _ := transport(t, ClientOptions{})
		reason := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
		resp, err := own.RoundTrip(post(t, ctx, url, "{}"))
		if head == "" {
			if !errors.Is(err, reason) {
				t.Errorf("error %v, want the cause", err)
			}
		} else {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err == nil {
				t.Error("the body has an end")
			}
			_ = resp.Body.Close()
		}
		if n := len(own.idle.byAddress); n > 0 {
			t.Error("its connection is kept")
		}
	}
}

// TestDirectTakesNoGoroutine checks that waiting requests have no goroutine beside that of their
// caller. The test is not parallel, so that others do not start any meanwhile.
func TestDirectTakesNoGoroutine(t *testing.T) {
	const n = 100
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open []net.Conn
	t.Cleanup(func() {
		_ = listener.Close()
		for _, c := range open {
			_ = c.Close()
		}
	})
	own, _ := transport(t, ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	before := runtime.NumGoroutine()
	var callers sync.WaitGroup
	for range n {
		req := post(t, ctx, "http://"+listener.Addr().String(), "{}")
		callers.Go(func() { read(own, req) })
	}
	for range n { // each has been accepted and has written its request
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, conn)
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err != nil {
			t.Fatal(err)
		}
	}
	if more := runtime.NumGoroutine() - before; more > n {
		t.Errorf("%d more goroutines for %d requests", more, n)
	}
	cancel()
	callers.Wait()
}

// TestDirectKeepsFewConnections checks the limit of idle connections and their end.
func TestDirectKeepsFewConnections(t *testing.T) {
	t.Parallel()
	const most = 3
	url, connections := scripted(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", false)
	own, _ := transport(t, ClientOptions{MaxIdleConnsPerHost: most})
	own.idle.expiry = 50 * time.Millisecond
	idle := func() (n int) {
		own.idle.mu.Lock()
		defer own.idle.mu.Unlock()
		for _, conns := range own.idle.byAddress {
			n += len(conns)
			if !slices.IsSortedFunc(conns, func(a, b *directConn) int {
				return a.since.Compare(b.since)
			}) {
				t.Error("the connections are not in order")
			}
		}
		return n
	}
	var bodies []io.Closer
	for range 2 * most { // all at once
		resp, err := own.RoundTrip(post(t, t.Context(), url, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, resp.Body)
		t.Cleanup(func() { _ = resp.Body.Close() })
	}
	if n := connections.Load(); n != 2*most {
		t.Errorf("%d connections for %d requests at once", n, 2*most)
	}
	for _, b := range bodies {
		_, _ = io.Copy(io.Discard, b.(io.Reader))
	}
	if n := idle(); n > most {
		t.Errorf("%d idle connections, want at most %d", n, most)
	}
	for tries := 0; idle() > 0; tries++ {
		if tries == 5000 {
			t.Fatal("idle connections are never closed")
		}
		time.Sleep(time.Millisecond)
	}
}
