package wiretest

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// CheckEncoding checks that a protocol sends random requests as its vendor's SDK does. sdk returns
// the document that the SDK sends.
func CheckEncoding(
	t *testing.T, protocol *wire.Protocol, hello string,
	requests *rapid.Generator[assay.Request], sdk func(t *rapid.T, req assay.Request) any,
) {
	t.Helper()
	endpoint := &Canned{Body: hello}
	p := endpoint.Provider(t, protocol)
	rapid.Check(t, func(t *rapid.T) {
		req := requests.Draw(t, "request")
		if _, err := p.Chat(context.Background(), &req); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(sdk(t, req), Decoded(t, endpoint.Sent)); d != "" {
			t.Errorf("body differs from the SDK's (-sdk +got):\n%s", d)
		}
	})
}

// FuzzReply checks that any reply is answered or is a fault, that all its calls have IDs, and that
// it can be sent back, without anything that matches never. The seeds are hello and the replies in
// testdata.
func FuzzReply(f *testing.F, protocol *wire.Protocol, hello string, never *regexp.Regexp) {
	f.Add(hello)
	for _, body := range Bodies(f, "replies.txt") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		endpoint := &Canned{Body: body}
		p := endpoint.Provider(t, protocol)
		req := Hi()
		resp, err := p.Chat(t.Context(), &req)
		if !Answered(t, err) {
			return
		}
		req.Messages = append(req.Messages, resp.Message)
		for _, c := range resp.Message.Calls {
			if c.ID == "" {
				t.Error("a call without an ID")
			}
			req.Messages = append(req.Messages, assay.Message{Role: assay.ToolRole, CallID: c.ID})
		}
		endpoint.Body = hello
		if _, err := p.Chat(t.Context(), &req); err != nil || !json.Valid(endpoint.Sent) ||
			never.Match(endpoint.Sent) {
			t.Errorf("sent %s, %v", endpoint.Sent, err)
		}
	})
}
