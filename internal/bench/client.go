package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// A Client sends requests and does nothing else: what it reaches is the limit
// of the machine, the server and net/http.
type Client struct {
	// URL is where each request goes.
	URL, Key string
	// Bodies are sent in turn; there must be one.
	Bodies      [][]byte
	Connections int
}

// Replayed is what a [Client] did.
type Replayed struct {
	Requests int           `json:"requests"`
	Failed   int           `json:"failed"` // with another status than 200
	Wall     time.Duration `json:"wall_ns"`
}

// Replay sends n requests over all connections at once and reads each response
// whole. It ends at the first that gets no response.
func (c Client) Replay(ctx context.Context, n int) (Replayed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	transport := &http.Transport{MaxIdleConnsPerHost: c.Connections, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var sent, failed atomic.Int64
	var wg sync.WaitGroup
	started := time.Now()
	for range c.Connections {
		wg.Go(func() {
			for i := int(sent.Add(1)); i <= n && ctx.Err() == nil; i = int(sent.Add(1)) {
				status, err := c.send(ctx, client, c.Bodies[i%len(c.Bodies)])
				if err != nil {
					cancel(err)
				}
				if status != http.StatusOK {
					failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return Replayed{n, int(failed.Load()), time.Since(started)}, context.Cause(ctx)
}

func (c Client) send(ctx context.Context, client *http.Client, body []byte) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.Key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// A Recorder passes requests on to a server and keeps the bodies of POSTs.
type Recorder struct {
	proxy *httputil.ReverseProxy

	mu     sync.Mutex
	bodies [][]byte // guarded by mu
}

var _ http.Handler = (*Recorder)(nil)

// NewRecorder returns a recorder in front of the server at an address.
func NewRecorder(server string) (*Recorder, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", server, err)
	}
	return &Recorder{proxy: httputil.NewSingleHostReverseProxy(u)}, nil
}

func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if req.Method == http.MethodPost {
		r.mu.Lock()
		r.bodies = append(r.bodies, body)
		r.mu.Unlock()
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.proxy.ServeHTTP(w, req)
}

// Bodies returns what was recorded so far.
func (r *Recorder) Bodies() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies[:len(r.bodies):len(r.bodies)]
}
