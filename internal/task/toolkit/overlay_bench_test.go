package toolkit_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
)

// records is a script with a tool that reads a record, one that changes it, one that adds one, and
// one that looks at all of them.
const records = `
def read(state, id):
    return state["records"][id]

def change(state, id, note):
    r = state["records"][id]
    r["notes"].append(note)
    r["status"] = "changed"
    return r

def add(state, id):
    state["records"][id] = {"notes": [], "status": "new"}

def search(state, owner):
    return [id for id, r in state["records"].items() if r["owner"] == owner]
`

// large returns a state with n records of about 300 bytes.
func large(n int) json.RawMessage {
	var b strings.Builder
	b.WriteString(`{"records":{`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"r%05d":{"notes":[],"owner":"owner %d","status":"new","text":"%s"}`,
			i, i, strings.Repeat("x", 230))
	}
	b.WriteString(`}}`)
	return json.RawMessage(b.String())
}

// BenchmarkStep measures calls of tools on a large state.
func BenchmarkStep(b *testing.B) {
	state := large(10_000)
	kit, err := toolkit.New(assay.NewCatalog(nil).With(
		assay.Script{Name: "tools.star", Source: records, Base: state}, nil))
	if err != nil {
		b.Fatal(err)
	}
	for _, call := range []struct{ tool, arguments string }{
		{"read", `{"id":"r00500"}`},
		{"change", `{"id":"r00500","note":"n"}`},
		{"add", `{"id":"s"}`},
		{"search", `{"owner":"owner 7"}`},
	} {
		b.Run(fmt.Sprintf("%s in %d kB", call.tool, len(state)/1000), func(b *testing.B) {
			var s *toolkit.Session
			for i := 0; b.Loop(); i++ {
				if i%10 == 0 { // an attempt
					s = kit.Begin(nil)
				}
				_, err := s.Call(b.Context(), call.tool, json.RawMessage(call.arguments))
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
