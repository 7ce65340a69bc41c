package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const bareClientVerb = "bare-client"

// runBareClient sends recorded requests and prints a summary as JSON.
func runBareClient(ctx context.Context, args []string) error {
	c := client{key: "bench"}
	flags := flag.NewFlagSet(bareClientVerb, flag.ExitOnError)
	flags.StringVar(&c.url, "url", "", "where to send the requests")
	flags.IntVar(&c.connections, "connections", 1, "requests in flight at once")
	requests := flags.Int("requests", 1, "requests to send")
	_ = flags.Parse(args) // ends the program if it fails
	text, err := os.ReadFile(flags.Arg(0))
	if err == nil {
		err = json.Unmarshal(text, &c.bodies)
	}
	if err != nil {
		return err
	}
	result, err := c.replay(ctx, *requests)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

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
