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

	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/model/wire/wiretest"
)

// TestWaitingHoldsNoBody checks that the client holds no copy of the body while it waits for
// the reply. The test is not parallel, so that no other test allocates memory meanwhile.
func TestWaitingHoldsNoBody(t *testing.T) {
	const size = 32 << 20
	held := func() uint64 {
		for range 3 { // pools are emptied by the second collection
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	req := wiretest.Hi()
	req.Messages[0].Content = strings.Repeat("x", size)
	before := held()
	p := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n < size {
			t.Errorf("read %d bytes of the body, %v", n, err)
		}
		now := held()
		for tries := 0; now > before+size/2 && tries < 100; tries++ {
			now = held() // the client may not know yet that all is written
		}
		if now > before+size/2 {
			t.Errorf("%d more bytes than before are held", now-before)
		}
		writeJSON(w, 200, hello)
	}), wire.Config{})
	if _, err := p.Chat(t.Context(), &req); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(req)
}

// staleConn is a connection that the server may have closed. The client notices that when
// it writes.
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

// TestStaleConnectionIsReplaced checks that a request is sent again, from its first byte, if
// its connection was closed while it was idle.
func TestStaleConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	var closed atomic.Bool
	var dials int
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if dials++; dials > 1 {
			return conn, err
		}
		return staleConn{conn, &closed}, err
	}
	transport := &http.Transport{DialContext: dial}
	t.Cleanup(transport.CloseIdleConnections)
	rec, p := record(t, hello, wire.Config{Client: &http.Client{Transport: transport}})
	req := wiretest.Hi()
	// The body is so long that a part of it is read before the first write.
	req.Messages[0].Content = strings.Repeat("word ", 12_000)
	var first []byte
	for range 2 {
		if _, err := p.Chat(t.Context(), &req); err != nil {
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

// TestBodyClosedWhileRead checks that a transport may close a body while it is reading it.
func TestBodyClosedWhileRead(t *testing.T) {
	t.Parallel()
	transport := roundTripper(func(r *http.Request) (*http.Response, error) {
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
	})
	p := newProvider(t, wire.Config{Client: &http.Client{Transport: transport}})
	for range 20 {
		if _, err := p.Chat(t.Context(), new(wiretest.Hi())); err != nil {
			t.Fatal(err)
		}
	}
}
