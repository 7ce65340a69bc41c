package session_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// All models together use a server of tools no more often at once than its concurrency, although
// their lanes would allow more attempts.
func TestServersKeepTheirConcurrency(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	tools := mcp.NewServer(&mcp.Implementation{Name: "test"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "add"},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			defer now.Add(-1)
			for n := now.Add(1); n > most.Load(); {
				most.Store(n)
			}
			time.Sleep(100 * time.Millisecond)
			return &mcp.CallToolResult{}, nil, nil
		})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return tools }, nil))
	defer web.Close()

	sum := play(t, t.TempDir(), 0, &recorder{}, map[string]string{
		"tools.yaml": "mcp: {url: \"" + web.URL + "\", concurrency: 3}\n",
		"tasks.yaml": "tools: tools.yaml\ntasks: [{id: a, prompt: Add., " +
			"judge: {calls: [{tool: add}]}, plan: [{tool: add}]}]\n",
		"e.yaml": "library: tasks.yaml\nmodels: [sim/optimal, sim/listed]\n" +
			"variants: [optimal]\nrepeats: 4\n",
	})
	if sum.Done != 8 {
		t.Fatalf("%+v", sum)
	}
	if n := most.Load(); n < 2 || n > 3 {
		t.Errorf("%d attempts at once at most, want 3", n)
	}
}
