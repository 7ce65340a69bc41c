package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/assay-eval/assay"
)

// A lostCall is what the transport reports about a call whose answer has not come: never the answer
// of the server, although the SDK gives it the same type. The call may have been carried out.
type lostCall struct{ error }

func (l *lostCall) Unwrap() error { return l.error }

// lostIn returns the lost call in err's chain, or nil.
func lostIn(err error) *lostCall {
	lost := (*lostCall)(nil)
	errors.As(err, &lost)
	return lost
}

type callKey struct{}

// asCall returns the context of a call of a tool.
func asCall(ctx context.Context) context.Context { return context.WithValue(ctx, callKey{}, true) }

// A carrier sends requests, counts replies, and sends a key as a bearer token unless it is empty.
// It tells the answers to calls from everything else that can come back.
type carrier struct {
	meter *meter
	key   string
}

// client returns a client that follows no redirects, because the key is for one host.
func (c *carrier) client() *http.Client {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: c, CheckRedirect: stay}
}

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		resp.Body = c.meter.reader(resp.Body)
	}
	if r.Context().Value(callKey{}) == nil {
		return resp, err
	}
	if err == nil {
		err = answered(r, resp)
	}
	if err != nil {
		return nil, &lostCall{fmt.Errorf("no answer: %w", err)}
	}
	return resp, nil
}

// answered returns an error unless a response has the server's answer to a call: a message with the
// call's ID. The status says whether the call succeeded on its way; only from MCP 2026-07-28 on, it
// is 400 if the server has refused the arguments.
func answered(r *http.Request, resp *http.Response) error {
	accepted := resp.StatusCode/100 == 2
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if accepted && media == "text/event-stream" {
		return nil // the client looks for the ID among the events
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMessage+1))
	_ = resp.Body.Close() // it has been read
	resp.Body = io.NopCloser(bytes.NewReader(text))
	switch {
	case err != nil:
		return err
	case len(text) > maxMessage:
		return errTooLong
	}
	sent, err := r.GetBody()
	if err != nil {
		return err
	}
	var call, answer struct {
		ID    any
		Error struct{ Code int64 }
	}
	if err := json.NewDecoder(sent).Decode(&call); err != nil || call.ID == nil {
		return err // a notification has no answer
	}
	unread := media != "application/json" || json.Unmarshal(text, &answer) != nil
	refused := resp.StatusCode == http.StatusBadRequest && answer.Error.Code == jsonrpc.CodeInvalidParams
	switch {
	case !accepted && (unread || !refused || answer.ID != call.ID):
		return fmt.Errorf("HTTP %d %s: %q", resp.StatusCode, http.StatusText(resp.StatusCode), head(text))
	case unread:
		return fmt.Errorf("it sent %q instead of a JSON-RPC message: %q", media, head(text))
	case answer.ID != call.ID:
		return fmt.Errorf("it answered request %v instead of %v: %q", answer.ID, call.ID, head(text))
	}
	return nil
}

// head returns the beginning of a text for an error.
func head(text []byte) string {
	const shown = 80
	return assay.Head(string(bytes.ToValidUTF8(bytes.TrimSpace(text), nil)), shown)
}
