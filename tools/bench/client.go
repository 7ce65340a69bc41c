package main

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

// client only sends requests, so it reaches the limit of the machine, the server and net/http.
type client struct {
	url, key    string
	bodies      [][]byte // sent in turn; at least one
	connections int
}

// replayed sums up a client's requests.
type replayed struct {
	Requests int `json:"requests"`
	// Failed counts responses whose status was not 200.
	Failed int           `json:"failed"`
	Wall   time.Duration `json:"wall_ns"`
}

// replay sends n requests over all connections and reads each response. It
// stops if a request gets no response.
func (c client) replay(ctx context.Context, n int) (replayed, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	transport := &http.Transport{MaxIdleConnsPerHost: c.connections, DisableCompression: true}
	defer transport.CloseIdleConnections()
	httpClient := &http.Client{Transport: transport}

	var sent, failed atomic.Int64
	var wg sync.WaitGroup
	started := time.Now()
	for range c.connections {
		wg.Go(func() {
			for i := int(sent.Add(1)); i <= n && ctx.Err() == nil; i = int(sent.Add(1)) {
				status, err := c.send(ctx, httpClient, c.bodies[i%len(c.bodies)])
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
	return replayed{n, int(failed.Load()), time.Since(started)}, context.Cause(ctx)
}

func (c client) send(
	ctx context.Context, httpClient *http.Client, body []byte,
) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := httpClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// recorder forwards requests to a server and keeps the bodies of POSTs.
type recorder struct {
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	recorded [][]byte // guarded by mu
}

var _ http.Handler = (*recorder)(nil)

func newRecorder(server string) (*recorder, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", server, err)
	}
	return &recorder{proxy: httputil.NewSingleHostReverseProxy(u)}, nil
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if req.Method == http.MethodPost {
		r.mu.Lock()
		r.recorded = append(r.recorded, body)
		r.mu.Unlock()
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	r.proxy.ServeHTTP(w, req)
}

// bodies returns the bodies recorded so far.
func (r *recorder) bodies() [][]byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.recorded[:len(r.recorded):len(r.recorded)]
}
