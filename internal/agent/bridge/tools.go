package bridge

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// hurry is how many times faster than stated a slow call is. So it takes 0.3 to 2 s.
const hurry = 30

// toolServer returns the MCP server of an attempt.
func toolServer(a *attempt) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "assay", Version: "1"}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	known := make(map[string]bool)
	for _, f := range a.stage.Functions() {
		known[f.Name] = true
		s.AddTool(&mcp.Tool{
			Name: f.Name, Description: f.Description, InputSchema: objectSchema(f.Parameters),
		}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return a.callTool(ctx, req.Params)
		})
	}
	// A name that is not a tool's gets the answer that a model would get, and is recorded.
	s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "tools/list" {
				a.listing.Do(func() { close(a.listed) })
			}
			if p, ok := req.GetParams().(*mcp.CallToolParamsRaw); ok && !known[p.Name] {
				return a.callTool(ctx, p)
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
	properties, _ := fields["properties"].(map[string]any)
	for _, p := range properties {
		if p, ok := p.(map[string]any); ok {
			open(p)
		}
	}
	return fields
}

// open allows any properties in an object without listed ones. Some frameworks drop properties that
// a schema does not mention.
func open(schema map[string]any) {
	_, closed := schema["properties"]
	_, said := schema["additionalProperties"]
	if schema["type"] == "object" && !closed && !said {
		schema["properties"], schema["additionalProperties"] = map[string]any{}, map[string]any{}
	}
}

// callTool carries out a call. The time that it takes is not the agent's own, because the tools'
// server may be slow.
func (a *attempt) callTool(
	ctx context.Context, p *mcp.CallToolParamsRaw,
) (_ *mcp.CallToolResult, err error) {
	err = errOver // if it panics
	defer a.contain()
	defer a.clock.pause()()
	defer count(&a.calling)()
	a.called.Add(1)
	tool, arguments := a.secrets.Text(p.Name), a.secrets.Text(string(p.Arguments))
	answer, failed, slow := a.stage.Call(tool, arguments)
	if a.heard != nil {
		a.heard(tool, arguments, answer)
	}
	if slow > 0 {
		a.linger(ctx, slow/hurry)
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: answer}}, IsError: failed,
	}, nil
}

// linger holds back the answer of a slow call unless the request or the attempt ends before.
func (a *attempt) linger(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-a.ctx.Done():
	}
}
