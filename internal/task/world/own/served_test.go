package own_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/mcp"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A web is an MCP server over HTTP whose way to answer a tool can be broken.
type web struct {
	*httptest.Server
	real   http.Handler
	tool   string // whose calls are broken
	breaks func(w *web, rw http.ResponseWriter, call *exchange)
	total  atomic.Int64 // what add has added up
}

// An exchange is a call on its way: its request, its ID as JSON, and how the real server answers it.
type exchange struct {
	*http.Request
	id   string
	real func() *httptest.ResponseRecorder
}

type number struct {
	N int64 `json:"n"`
}

// serveWeb starts a server with the tools prepare, add and total. It answers with events, or with
// plain JSON.
func serveWeb(t *testing.T, plain bool) *web {
	t.Helper()
	w := &web{}
	w.real = sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server {
		s := sdk.NewServer(&sdk.Implementation{Name: "sums"}, nil)
		add := func(_ context.Context, _ *sdk.CallToolRequest, in number) (
			*sdk.CallToolResult, number, error,
		) {
			if in.N < 0 {
				return nil, number{}, errors.New("a number is negative")
			}
			return nil, number{w.total.Add(in.N)}, nil
		}
		sdk.AddTool(s, &sdk.Tool{Name: "prepare"}, add)
		sdk.AddTool(s, &sdk.Tool{Name: "add"}, add)
		sdk.AddTool(s, &sdk.Tool{Name: "total"}, func(
			context.Context, *sdk.CallToolRequest, struct{},
		) (*sdk.CallToolResult, number, error) {
			return nil, number{w.total.Load()}, nil
		})
		return s
	}, &sdk.StreamableHTTPOptions{JSONResponse: plain})
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	return w
}

// ServeHTTP implements [http.Handler].
func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has gone
	}
	again := func() *http.Request {
		r := r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		return r
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	_ = json.Unmarshal(body, &m) // the end of a session has no body
	if m.Method != "tools/call" || m.Params.Name != w.tool {
		w.real.ServeHTTP(rw, again())
		return
	}
	w.breaks(w, rw, &exchange{Request: again(), id: string(m.ID), real: func() *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		w.real.ServeHTTP(rec, again())
		return rec
	}})
}

// say answers with a status, a type and a text.
func say(rw http.ResponseWriter, status int, media, text string) {
	rw.Header().Set("Content-Type", media)
	rw.WriteHeader(status)
	fmt.Fprint(rw, text)
}

// reset ends the connection.
func reset(rw http.ResponseWriter) {
	conn, _, err := rw.(http.Hijacker).Hijack()
	if err != nil {
		panic(err)
	}
	_ = conn.(*net.TCPConn).SetLinger(0) // so that Close resets it
	_ = conn.Close()
}

const (
	asJSON   = "application/json"
	asHTML   = "text/html; charset=utf-8"
	asEvents = "text/event-stream"
)

// rpcError is an error as a message that answers the request id.
func rpcError(id string, code int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"oh no"}}`, id, code)
}

// withStatus returns a breakage that answers with a status and HTML.
func withStatus(status int) func(*web, http.ResponseWriter, *exchange) {
	return func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, status, asHTML, "<html>the upstream is unavailable</html>")
	}
}

// breakages are the ways in which a server of tools, or what lies before it, fails to answer.
var breakages = map[string]func(*web, http.ResponseWriter, *exchange){
	"HTTP 401": withStatus(401),
	"HTTP 429": withStatus(429),
	"HTTP 500": withStatus(500),
	"HTTP 502": withStatus(502),
	"HTTP 503": withStatus(503),
	"HTTP 504": withStatus(504),
	"it resets the connection": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		reset(rw)
	},
	"it carries the call out and loses the answer": func(_ *web, rw http.ResponseWriter, call *exchange) {
		call.real()
		reset(rw)
	},
	"it dies": func(w *web, rw http.ResponseWriter, _ *exchange) {
		_ = w.Listener.Close()
		reset(rw)
	},
	"a session expires": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 404, asJSON, rpcError("null", -32001))
	},
	"a session expires, in a reply to the call": func(_ *web, rw http.ResponseWriter, call *exchange) {
		say(rw, 404, asJSON, rpcError(call.id, -32001))
	},
	"a session expires, in a reply to nothing": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 400, asJSON, rpcError(`"server-error"`, -32600))
	},
	"a token expires, in a reply to the call": func(_ *web, rw http.ResponseWriter, call *exchange) {
		say(rw, 401, asJSON, rpcError(call.id, -32001))
	},
	"HTTP 500 with a reply to the call": func(_ *web, rw http.ResponseWriter, call *exchange) {
		say(rw, 500, asJSON, rpcError(call.id, -32603))
	},
	"a refusal of another call": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 400, asJSON, rpcError("4711", -32602))
	},
	"events end in the middle": func(_ *web, rw http.ResponseWriter, call *exchange) {
		say(rw, 200, asEvents, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+call.id+",\"res")
	},
	"events end before the reply": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 200, asEvents, "event: message\nid: 1\ndata: \n\n")
	},
	"events with a reply to another call": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 200, asEvents, "event: message\ndata: "+rpcError("4711", -32602)+"\n\n")
	},
	"events without JSON": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 200, asEvents, "data: <html>\n\n")
	},
	"a body ends in the middle": func(_ *web, rw http.ResponseWriter, call *exchange) {
		rw.Header().Set("Content-Length", "4000")
		say(rw, 200, asJSON, rpcError(call.id, -32602))
	},
	"HTML": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 200, asHTML, "<html>Log in first.</html>")
	},
	"HTML that is called JSON": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 200, asJSON, "<html>Log in first.</html>")
	},
	"another content type": func(_ *web, rw http.ResponseWriter, call *exchange) {
		say(rw, 200, "text/plain", rpcError(call.id, -32602))
	},
	"no body": func(_ *web, rw http.ResponseWriter, _ *exchange) { rw.WriteHeader(202) },
	"a reply to another call": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 200, asJSON, rpcError("4711", -32602))
	},
	"a reply to nothing": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		say(rw, 200, asJSON, rpcError("null", -32602))
	},
	"a reply without a result": func(_ *web, rw http.ResponseWriter, call *exchange) {
		say(rw, 200, asJSON, `{"jsonrpc":"2.0","id":`+call.id+`}`)
	},
	"a redirect": func(_ *web, rw http.ResponseWriter, _ *exchange) {
		rw.Header().Set("Location", "/elsewhere")
		rw.WriteHeader(307)
	},
}

// attempt begins an attempt with the server's tools, and returns how to end it.
func (w *web) attempt(t *testing.T) (calls spec.World, end func() (json.RawMessage, error)) {
	t.Helper()
	config := &assay.MCPServer{URL: w.URL}
	tools, err := mcp.Describe(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	catalog := assay.NewCatalog(tools).With(assay.Script{}, config)
	world := own.Definition.Begin(t.Context(), catalog, trialOf(1, "", 1), &assay.Task{
		Setup:   []assay.Expected{{Tool: "prepare", Arguments: json.RawMessage(`{"n":1}`)}},
		Observe: map[string]assay.Expected{"sum": {Tool: "total"}},
	})
	return world, world.(spec.Ender).End
}

// TestTransportsNeverAnswer breaks a server of tools over HTTP in every way, in the calls before an
// attempt, of the agent and after it. Each is a fault of the server. None is an answer, so nothing
// can be scored.
func TestTransportsNeverAnswer(t *testing.T) {
	t.Parallel()
	for name, breaks := range breakages {
		for phase, tool := range map[string]string{"setup": "prepare", "call": "add", "observe": "total"} {
			t.Run(phase+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := serveWeb(t, false)
				w.tool, w.breaks = tool, breaks
				world, end := w.attempt(t)
				rec, err := world.Call(1, "add", `{"n":41}`)
				if phase == "observe" && (err != nil || !rec.OK) {
					t.Fatalf("the call is %+v, %v", rec, err)
				}
				state, endErr := end()
				if phase != "observe" {
					endErr = err
				}
				var f *assay.Fault
				if !errors.As(endErr, &f) || f.Kind != assay.ToolServer || f.Hopeless {
					t.Fatalf("the call is %+v, the state %s, the error %v", rec, state, endErr)
				}
				if strings.HasPrefix(name, "HTTP ") && !strings.Contains(f.Detail, name[:8]) {
					t.Errorf("the fault is %q, which does not say why", f.Detail)
				}
				if len(world.Calls()) > 0 && phase != "observe" {
					t.Errorf("the calls are %+v, want none", world.Calls())
				}
			})
		}
	}
}

// TestAnswersOverHTTP has a server's own errors. They are its answers, whatever carries them, and are
// the agent's mistake or the state that is observed.
func TestAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*web, http.ResponseWriter, *exchange){
		"events": func(_ *web, rw http.ResponseWriter, call *exchange) {
			say(rw, 200, asEvents, "event: message\ndata: "+rpcError(call.id, -32602)+"\n\n")
		},
		"JSON": func(_ *web, rw http.ResponseWriter, call *exchange) {
			say(rw, 200, asJSON+"; charset=utf-8", rpcError(call.id, -32603))
		},
		"refused arguments": func(_ *web, rw http.ResponseWriter, call *exchange) {
			say(rw, 400, asJSON, rpcError(call.id, -32602))
		},
		"the code of a rejection by the transport": func(_ *web, rw http.ResponseWriter, call *exchange) {
			say(rw, 200, asJSON, rpcError(call.id, -32005))
		},
	} {
		for phase, tool := range map[string]string{"call": "add", "observe": "total"} {
			t.Run(phase+"/"+name, func(t *testing.T) {
				t.Parallel()
				w := serveWeb(t, false)
				w.tool, w.breaks = tool, breaks
				world, end := w.attempt(t)
				rec, err := world.Call(1, "add", `{"n":41}`)
				if err != nil || rec.Mistake != (phase == "call") {
					t.Fatalf("the call is %+v, %v", rec, err)
				}
				want := `{"sum":{"error":"oh no"}}`
				if phase == "call" {
					want = `{"sum":{"n":1}}`
				}
				if state, err := end(); err != nil || string(state) != want {
					t.Errorf("the state is %s, %v, want %s", state, err, want)
				}
			})
		}
	}
	for _, plain := range []bool{false, true} {
		world, end := serveWeb(t, plain).attempt(t)
		rec, err := world.Call(1, "add", `{"n":-1}`)
		if err != nil || !rec.Mistake || rec.Error != "a number is negative" {
			t.Errorf("the refused call is %+v, %v", rec, err)
		}
		if rec, err = world.Call(2, "add", `{"n":41}`); err != nil || !rec.OK {
			t.Errorf("the call is %+v, %v", rec, err)
		}
		if state, err := end(); err != nil || string(state) != `{"sum":{"n":42}}` {
			t.Errorf("the state is %s, %v", state, err)
		}
	}
}
