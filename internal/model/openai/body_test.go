package openai_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-eval/assay/internal/model/openai"
)

// While a reply is due, the client holds no copy of what it has sent. The test
// is not parallel, so that no other takes memory at the time.
func TestWaitingHoldsNoBody(t *testing.T) {
	const size = 32 << 20
	held := func() uint64 {
		for range 3 { // pools let go at the second
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	req := hi()
	req.Messages[0].Content = strings.Repeat("x", size)
	before := held()
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n < size {
			t.Errorf("read %d bytes of the body, %v", n, err)
		}
		now := held()
		for tries := 0; now > before+size/2 && tries < 100; tries++ {
			now = held() // the client has yet to see that all is written
		}
		if now > before+size/2 {
			t.Errorf("%d bytes more than before are held", now-before)
		}
		writeJSON(w, 200, hello)
	}), openai.Config{})
	if _, err := p.Chat(t.Context(), req); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(req)
}

// staleConn is a connection that the other side has closed, which its client
// notices when it writes.
type staleConn struct {
	net.Conn
	closed *atomic.Bool
}

func (c staleConn) Write(p []byte) (int, error) {
	if c.closed.Load() {
		return 0, errors.New("broken pipe")
	}
	return c.Conn.Write(p)
}

// A request that meets a connection which was closed while it was idle is sent
// on another, from its first byte.
func TestStaleConnection(t *testing.T) {
	t.Parallel()
	var closed atomic.Bool
	var dials int
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if dials++; dials > 1 {
			return conn, err
		}
		return staleConn{conn, &closed}, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	rec, p := record(t, hello, openai.Config{Client: &http.Client{Transport: transport}})
	req := hi()
	req.Messages[0].Content = strings.Repeat("long enough that a part of it is read before it is written ", 1000)
	var first []byte
	for range 2 {
		if _, err := p.Chat(t.Context(), req); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = rec.rawBody
			closed.Store(true)
		}
	}
	if dials != 2 {
		t.Errorf("%d connections, want 2", dials)
	}
	if string(rec.rawBody) != string(first) {
		t.Errorf("sent %d bytes again, want the same %d", len(rec.rawBody), len(first))
	}
}

// A transport may close a body while it still reads it.
func TestBodyClosedWhileRead(t *testing.T) {
	t.Parallel()
	p := newProvider(t, openai.Config{Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		var reader sync.WaitGroup
		reader.Go(func() {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				t.Error(err)
			}
		})
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
		if n, err := r.Body.Read(make([]byte, 8)); n != 0 || err != io.EOF {
			t.Errorf("Read() = %d, %v after Close", n, err)
		}
		reader.Wait()
		return canned{200, headers(), hello}.RoundTrip(r)
	})}})
	for range 20 {
		if _, err := p.Chat(t.Context(), hi()); err != nil {
			t.Fatal(err)
		}
	}
}
