package bridge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An attempt may end while a request of its agent is answered.
func TestAttemptEndsWhileItsAgentAsks(t *testing.T) {
	t.Parallel()
	b := &Bridge{attempts: make(map[string]*attempt)}
	a := &attempt{}
	b.open(a)
	tools := sync.OnceValue(func() *mcp.Server {
		b.forget(a)
		return mcp.NewServer(&mcp.Implementation{Name: "assay"}, nil)
	})
	a.tools.Store(&tools)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/"+a.id+"/mcp",
		strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	r.Header = http.Header{
		"Authorization": {"Bearer " + a.token}, "Content-Type": {"application/json"},
		"Accept": {"application/json, text/event-stream"},
	}
	w := httptest.NewRecorder()
	b.handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK || len(b.attempts) > 0 {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// A panic in a call of a tool ends the attempt. The SDK carries out calls in goroutines of its own, so
// it would end the whole program.
func TestPanicOfACallIsContained(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	a := &attempt{end: cancel, clock: newClock(time.Hour, func() {})} // without a stage
	defer a.clock.stop()
	_, err := a.callTool(ctx, &mcp.CallToolParamsRaw{Name: "x"})
	if err == nil || a.bug.Load() == nil || context.Cause(ctx) != errOver {
		t.Errorf("%v, cause %v, bug %v", err, context.Cause(ctx), a.bug.Load())
	}
}
