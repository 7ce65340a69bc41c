package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/acp-go-sdk"
)

// speak is an agent that speaks the Agent Client Protocol. It plans, asks for a permission, works on each
// prompt, and tells its answer in two parts.
func speak(how string) {
	a := &acpAgent{how: how}
	a.conn = acp.NewConnection(a.handle, os.Stdout, os.Stdin)
	<-a.conn.Done()
	if how == "linger" {
		time.Sleep(time.Hour)
	}
}

type acpAgent struct {
	how       string
	conn      *acp.Connection
	connected atomic.Bool // to its tools
}

func (a *acpAgent) handle(ctx context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	switch method {
	case acp.AgentMethodInitialize:
		if a.how == "crash" {
			fmt.Fprintln(os.Stderr, "cannot begin")
			os.Exit(3)
		}
		version := 1
		if a.how == "future" {
			version = 99
		}
		return map[string]any{
			"protocolVersion": version, "authMethods": []any{map[string]any{"id": "x", "name": "Log in with X"}},
			"agentCapabilities": map[string]any{"mcpCapabilities": map[string]any{"http": a.how != "stdio"}},
		}, nil
	case acp.AgentMethodSessionNew:
		if a.how == "login" {
			return nil, &acp.RequestError{Code: -32000, Message: "Authentication required"}
		}
		if a.how == "odd" {
			return []string{"s"}, nil
		}
		var p acp.NewSessionRequest
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, acp.NewInvalidParams(err.Error())
		}
		server := p.McpServers[0].Http
		os.Setenv("ASSAY_MCP_URL", server.Url)
		os.Setenv("ASSAY_TOKEN", strings.TrimPrefix(server.Headers[0].Value, "Bearer "))
		connect := func() {
			_, err := mcp("tools/list")
			a.connected.Store(err == nil)
		}
		switch a.how {
		case "late": // it connects in the background
			time.AfterFunc(300*time.Millisecond, connect)
		case "lazy": // it connects when it is prompted
		default:
			connect()
		}
		return map[string]any{"sessionId": "s", "modes": map[string]any{
			"currentModeId": "auto", "availableModes": []any{map[string]any{"id": "auto"}, map[string]any{"id": "default"}},
		}}, nil
	case acp.AgentMethodSessionSetMode:
		return map[string]any{}, nil
	case acp.AgentMethodSessionPrompt:
		return a.prompt(ctx, params)
	}
	return nil, acp.NewMethodNotFound(method)
}

func (a *acpAgent) prompt(ctx context.Context, params json.RawMessage) (any, *acp.RequestError) {
	var p acp.PromptRequest
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.NewInvalidParams(err.Error())
	}
	a.tell(ctx, map[string]any{"sessionUpdate": "plan", "entries": []any{
		map[string]any{"content": "look for tools", "priority": "high", "status": "pending"},
		map[string]any{"content": "use them", "priority": "high", "status": "pending"},
	}})
	a.tell(ctx, map[string]any{"sessionUpdate": "a kind of the future"})
	kind := "other"
	if a.how == "execute" {
		kind = "execute"
	}
	allowed, err := acp.SendRequest[acp.RequestPermissionResponse](a.conn, ctx,
		acp.ClientMethodSessionRequestPermission, map[string]any{
			"sessionId": "s", "toolCall": map[string]any{"toolCallId": "1", "kind": kind},
			"options": []any{
				map[string]any{"optionId": "yes", "kind": "allow_once", "name": "Yes"},
				map[string]any{"optionId": "no", "kind": "reject_once", "name": "No"},
			},
		})
	if err != nil {
		return nil, acp.NewInternalError(err.Error())
	}
	if s := allowed.Outcome.Selected; s == nil || s.OptionId != "yes" {
		a.say(ctx, "I may not")
	}
	if a.how == "late" && !a.connected.Load() {
		return nil, acp.NewInternalError("there are no tools")
	}
	answer := respond(p.Prompt[0].Text.Text)
	switch a.how {
	case "break":
		os.Exit(5)
	case "hang":
		<-ctx.Done()
		time.Sleep(time.Hour)
	case "refuse":
		return map[string]any{"stopReason": "refusal"}, nil
	}
	if a.how == "chatter" {
		for range 20_000 {
			a.say(ctx, "blah ")
		}
		a.tell(ctx, map[string]any{"sessionUpdate": "tool_call"})
	}
	if a.how == "shout" {
		a.say(ctx, strings.Repeat("blah ", 10<<20))
	}
	_ = a.conn.SendNotification(ctx, acp.ClientMethodSessionUpdate, map[string]any{
		"sessionId": "another", "update": map[string]any{
			"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": "ANOTHER"},
		},
	})
	half := len(answer) / 2
	a.say(ctx, answer[:half])
	a.say(ctx, answer[half:])
	return map[string]any{"stopReason": "end_turn"}, nil
}

func (a *acpAgent) say(ctx context.Context, text string) {
	a.tell(ctx, map[string]any{
		"sessionUpdate": "agent_message_chunk", "content": map[string]any{"type": "text", "text": text},
	})
}

func (a *acpAgent) tell(ctx context.Context, update map[string]any) {
	_ = a.conn.SendNotification(ctx, acp.ClientMethodSessionUpdate,
		map[string]any{"sessionId": "s", "update": update}) // the client is gone, which ends the agent
}
