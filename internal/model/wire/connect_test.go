package wire_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/model/wire"
)

// TestRequestsShareConnections lets a thousand requests start together. All of them are in flight
// at once. Over HTTP/2 they share connections, each for 100, instead of opening one each; over
// HTTP/1.1 each has its own.
func TestRequestsShareConnections(t *testing.T) {
	t.Parallel()
	const requests, streams = 1000, 100
	for _, http2 := range []bool{true, false} {
		var opened, here atomic.Int64
		everybody := make(chan struct{})
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if here.Add(1) == requests {
				close(everybody)
			}
			select {
			case <-everybody:
			case <-r.Context().Done():
			}
		}))
		s.EnableHTTP2 = http2
		s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
		s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				opened.Add(1)
			}
		}
		s.StartTLS()
		defer s.Close()
		client := wire.NewClient(wire.ClientOptions{
			DialTimeout: time.Minute, TLSTimeout: time.Minute,
		})
		wire.Trust(client, s.Certificate())
		var all sync.WaitGroup
		for range requests {
			all.Go(func() {
				resp, err := client.Get(s.URL)
				if err != nil {
					t.Error(err)
					return
				}
				if _ = resp.Body.Close(); (resp.ProtoMajor == 2) != http2 {
					t.Errorf("answered over %s", resp.Proto)
				}
			})
		}
		all.Wait()
		n := opened.Load()
		t.Logf("HTTP/2 %t: %d connections for %d requests", http2, n, requests)
		if http2 && n > requests/10 || !http2 && n != requests {
			t.Errorf("HTTP/2 %t: %d connections for %d requests", http2, n, requests)
		}
	}
}
