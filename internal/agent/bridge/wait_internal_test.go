package bridge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	tools "github.com/assay-eval/assay/internal/task/mcp"
)

// A slow server of tools does not use up the agent's own time.
func TestServerTakesItsOwnTime(t *testing.T) {
	t.Parallel()
	const agentTime = time.Second
	server := mcp.NewServer(&mcp.Implementation{Name: "slow"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(
		context.Context, *mcp.CallToolRequest, struct{},
	) (*mcp.CallToolResult, any, error) {
		time.Sleep(2 * agentTime)
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server }, nil))
	defer web.Close()
	config := &assay.MCPServer{URL: web.URL}
	all, err := tools.Describe(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	catalog := assay.NewCatalog(all).With(assay.Script{}, config)
	task := assay.Task{ID: "t", Description: "Wait."}
	trial := assay.NewTrial(
		assay.Cell{Model: "agent", Variant: assay.Baseline, Reliability: 1},
		assay.TaskRef{ID: task.ID}, assay.Setting{
			World: "own-1", Protocol: assay.Native, Tools: assay.Listed, Turns: 15,
		}, 7, 0)
	stage, err := episode.NewRunner(catalog, 0).Stage(t.Context(), &trial, &task)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = stage.Conclude(assay.Finished, "", nil, nil) }()
	a := &attempt{stage: stage, ctx: t.Context(), clock: newClock(agentTime, func() {
		t.Error("the server's time counts as the agent's")
	})}
	defer a.clock.stop()
	result, _ := a.callTool(t.Context(), &mcp.CallToolParamsRaw{Name: "wait", Arguments: []byte("{}")})
	if result.IsError {
		t.Errorf("the call failed: %+v", result.Content[0])
	}
}
