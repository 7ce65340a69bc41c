package bench_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/bench"
)

// counting is a server that answers with a status, after a time.
type counting struct {
	status int
	after  time.Duration

	mu       sync.Mutex
	bodies   map[string]int // guarded by mu, as all below
	inFlight int
	most     int
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	if c.bodies == nil {
		c.bodies = make(map[string]int)
	}
	c.bodies[r.Method+" "+r.Header.Get("Authorization")+" "+string(body)]++
	c.inFlight++
	c.most = max(c.most, c.inFlight)
	c.mu.Unlock()
	time.Sleep(c.after)
	c.mu.Lock()
	c.inFlight--
	c.mu.Unlock()
	w.WriteHeader(c.status)
}

func TestReplay(t *testing.T) {
	t.Parallel()
	c := &counting{status: http.StatusOK, after: time.Millisecond}
	server := httptest.NewServer(c)
	defer server.Close()
	got, err := bench.Client{URL: server.URL, Key: "k", Bodies: [][]byte{[]byte("a"), []byte("b")}, Connections: 3}.Replay(t.Context(), 10)
	if err != nil || got.Requests != 10 || got.Failed != 0 || got.Wall <= 0 {
		t.Errorf("Replay() = %+v, %v", got, err)
	}
	if diff := cmp.Diff(map[string]int{"POST Bearer k a": 5, "POST Bearer k b": 5}, c.bodies); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if c.most > 3 {
		t.Errorf("%d requests at once, want 3 at most", c.most)
	}
}

// TestReplayFails: other statuses are counted, and a server that is gone is an
// error.
func TestReplayFails(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(&counting{status: http.StatusTooManyRequests})
	client := bench.Client{URL: server.URL, Bodies: [][]byte{nil}, Connections: 2}
	if got, err := client.Replay(t.Context(), 5); err != nil || got.Failed != 5 {
		t.Errorf("Replay() = %+v, %v, want 5 failures", got, err)
	}
	server.Close()
	if got, err := client.Replay(t.Context(), 5); err == nil {
		t.Errorf("Replay() = %+v without an error from a server that is gone", got)
	}
}

// TestRecorder: it passes everything on and keeps the bodies of POSTs.
func TestRecorder(t *testing.T) {
	t.Parallel()
	c := &counting{status: http.StatusTeapot}
	server := httptest.NewServer(c)
	defer server.Close()
	recorder, err := bench.NewRecorder(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(recorder)
	defer proxy.Close()
	got, err := bench.Client{URL: proxy.URL, Key: "k", Bodies: [][]byte{[]byte("a")}, Connections: 1}.Replay(t.Context(), 2)
	if err != nil || got.Failed != 2 {
		t.Fatalf("Replay() = %+v, %v", got, err)
	}
	resp, err := http.Get(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if diff := cmp.Diff([][]byte{[]byte("a"), []byte("a")}, recorder.Bodies()); diff != "" {
		t.Errorf("recorded (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"POST Bearer k a": 2, "GET  ": 1}, c.bodies); diff != "" {
		t.Errorf("passed on (-want +got):\n%s", diff)
	}
}
