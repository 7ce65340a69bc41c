package bridge

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-eval/assay/internal/agent/episode"
)

// toolServer returns the MCP server of an attempt.
func toolServer(stage *episode.Stage) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "assay", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	known := make(map[string]bool)
	for _, f := range stage.Functions() {
		known[f.Name] = true
		s.AddTool(&mcp.Tool{
			Name: f.Name, Description: f.Description, InputSchema: objectSchema(f.Parameters),
		}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return callTool(stage, req.Params), nil
		})
	}
	// A name that is not a tool's gets the answer that a model would get, and is recorded.
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && !known[p.Name] {
				return callTool(stage, p), nil
			}
			return next(ctx, method, req)
		}
	})
	return s
}

// objectSchema returns the schema of a tool's arguments with the type that MCP demands.
func objectSchema(schema json.RawMessage) map[string]any {
	fields := make(map[string]any)
	_ = json.Unmarshal(schema, &fields) // a schema that is no object, such as true, allows anything
	if fields == nil {
		fields = make(map[string]any)
	}
	fields["type"] = "object"
	return fields
}

func callTool(stage *episode.Stage, p *mcp.CallToolParamsRaw) *mcp.CallToolResult {
	answer, failed := stage.Call(p.Name, string(p.Arguments))
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: answer}}, IsError: failed,
	}
}
