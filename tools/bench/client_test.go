package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// countingServer answers every request with one status after a delay.
type countingServer struct {
	status int
	delay  time.Duration

	mu          sync.Mutex
	requests    map[string]int // guarded by mu, like the fields below
	inFlight    int
	maxInFlight int
}

func (c *countingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	if c.requests == nil {
		c.requests = make(map[string]int)
	}
	c.requests[r.Method+" "+r.Header.Get("Authorization")+" "+string(body)]++
	c.inFlight++
	c.maxInFlight = max(c.maxInFlight, c.inFlight)
	c.mu.Unlock()

	time.Sleep(c.delay)

	c.mu.Lock()
	c.inFlight--
	c.mu.Unlock()
	w.WriteHeader(c.status)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	handler := &countingServer{status: http.StatusOK, delay: time.Millisecond}
	server := httptest.NewServer(handler)
	defer server.Close()

	bodies := [][]byte{[]byte("a"), []byte("b")}
	got, err := client{url: server.URL, key: "k", bodies: bodies, connections: 3}.
		replay(t.Context(), 10)
	if err != nil || got.Requests != 10 || got.Failed != 0 || got.Wall <= 0 {
		t.Errorf("replay() = %+v, %v", got, err)
	}
	want := map[string]int{"POST Bearer k a": 5, "POST Bearer k b": 5}
	if diff := cmp.Diff(want, handler.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if handler.maxInFlight > 3 {
		t.Errorf("%d requests at once, want 3 at most", handler.maxInFlight)
	}
}

func TestReplayCountsFailures(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&countingServer{status: http.StatusTooManyRequests})
	c := client{url: server.URL, bodies: [][]byte{nil}, connections: 2}
	if got, err := c.replay(t.Context(), 5); err != nil || got.Failed != 5 {
		t.Errorf("replay() = %+v, %v, want 5 failures", got, err)
	}
	server.Close()
	if got, err := c.replay(t.Context(), 5); err == nil {
		t.Errorf("replay() = %+v without an error, but the server is closed", got)
	}
}
