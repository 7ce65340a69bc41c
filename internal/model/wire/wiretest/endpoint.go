// Package wiretest holds the shared parts of protocol tests: endpoints with canned replies, and
// random requests and replies.
package wiretest

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Canned is a transport that always returns the same response and keeps the latest request's body.
// The status is 200 if it is 0, and the content type is JSON unless the header has another one.
type Canned struct {
	Status int
	Header http.Header
	Body   string
	Sent   []byte
}

// RoundTrip implements [http.RoundTripper].
func (c *Canned) RoundTrip(r *http.Request) (*http.Response, error) {
	var err error
	c.Sent, err = io.ReadAll(r.Body)
	header := http.Header{"Content-Type": {"application/json"}}
	maps.Copy(header, c.Header)
	return &http.Response{
		StatusCode: cmp.Or(c.Status, http.StatusOK), Header: header,
		Body: io.NopCloser(strings.NewReader(c.Body)),
	}, err
}

// Client returns a client with the transport.
func (c *Canned) Client() *http.Client { return &http.Client{Transport: c} }

// Provider returns a provider with the transport.
func (c *Canned) Provider(t rapid.TB, protocol *wire.Protocol) *wire.Provider {
	t.Helper()
	p, err := protocol.New(wire.Config{
		Key: wire.NewSecret(key), KeyName: "KEY", Deployment: "small", Client: c.Client(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// key is hard to scrub, because JSON may escape it.
const key = "sk-canary/0123"

// Hi returns the shortest conversation.
func Hi() assay.Request {
	return assay.Request{
		Model: "small", Messages: []assay.Message{{Role: assay.User, Content: "hi"}},
	}
}

// Endpoint answers requests with replies in turn, and the last of them for ever. It keeps the
// bodies of the requests, and the latest header and URI.
type Endpoint struct {
	Replies []string
	// Status returns the status of a reply. Nil means 200.
	Status func(reply string) int

	Header http.Header
	URI    string
	Bodies []map[string]any
}

// ServeHTTP implements [http.Handler].
func (e *Endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.Header, e.URI = r.Header.Clone(), r.RequestURI
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		panic(err)
	}
	e.Bodies = append(e.Bodies, body)
	reply := e.Replies[0]
	if len(e.Replies) > 1 {
		e.Replies = e.Replies[1:]
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if e.Status != nil {
		w.WriteHeader(e.Status(reply))
	}
	_, _ = io.WriteString(w, reply)
}

// Last returns the body of the latest request.
func (e *Endpoint) Last() map[string]any { return e.Bodies[len(e.Bodies)-1] }

// Serve starts a server for the endpoint and returns the settings of a provider for it.
func (e *Endpoint) Serve(t testing.TB, path, deployment string) wire.Config {
	t.Helper()
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	client := wire.NewClient(wire.ClientOptions{})
	t.Cleanup(client.CloseIdleConnections)
	return wire.Config{
		BaseURL: server.URL + path, Deployment: deployment, Client: client,
		Key: wire.NewSecret(key), KeyName: "KEY",
	}
}

// Decoded returns a decoded document. Numbers keep their spelling.
func Decoded(t rapid.TB, doc []byte) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(doc)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil || d.More() {
		t.Fatalf("%s: %v", doc, err)
	}
	return v
}

// Object returns a decoded object.
func Object(t testing.TB, doc string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(doc), &v); err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	return v
}

// Chat returns the reply to a request, which has to succeed.
func Chat(t testing.TB, p assay.Provider, req assay.Request) *assay.Response {
	t.Helper()
	resp, err := p.Chat(t.Context(), &req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// Answered reports whether a request was answered. If not, the error has to be a fault with a
// short text.
func Answered(t testing.TB, err error) bool {
	t.Helper()
	var fault *assay.Fault
	if err != nil && (!errors.As(err, &fault) || err != error(fault) || len(fault.Detail) > 300) {
		t.Fatalf("Chat() = %v (%T), want a fault", err, err)
	}
	return err == nil
}
