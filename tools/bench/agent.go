package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// agentVerb makes this program act as a foreign agent whose attempt is in the environment.
const agentVerb = "agent"

// A job is what a foreign agent gets for an attempt.
type job struct {
	Prompt   string `json:"prompt"`
	MCPURL   string `json:"mcp_url"`
	ModelURL string `json:"model_url"` // without /v1
	Token    string `json:"token"`
}

// runAgent carries out the attempt that the environment describes and prints the answer.
func runAgent(ctx context.Context, out io.Writer) error {
	answer, err := job{
		Prompt: os.Getenv("ASSAY_PROMPT"), MCPURL: os.Getenv("ASSAY_MCP_URL"),
		ModelURL: os.Getenv("ANTHROPIC_BASE_URL"), Token: os.Getenv("ASSAY_TOKEN"),
	}.do(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, answer)
	return err
}

// serveAgent returns a server that is a foreign agent.
func serveAgent() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var j job
		err := json.NewDecoder(r.Body).Decode(&j)
		var answer string
		if err == nil {
			answer, err = j.do(r.Context())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"text": answer}) // Assay notices
	}))
}

// message is a message of Chat Completions.
type message struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	CallID  string     `json:"tool_call_id,omitempty"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// do asks the model and makes the calls that it asks for until it asks for none. It returns the
// last reply.
func (j job) do(ctx context.Context) (answer string, err error) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	httpClient := &http.Client{Transport: bearer{transport, j.Token}}
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{
		Endpoint: j.MCPURL, HTTPClient: httpClient, DisableStandaloneSSE: true,
	}, nil)
	if err != nil {
		return "", err
	}
	defer session.Close()
	functions, err := functionsOf(ctx, session)
	if err != nil {
		return "", err
	}
	conversation := []message{{Role: "user", Content: j.Prompt}}
	for {
		reply, err := j.ask(ctx, httpClient, conversation, functions)
		if err != nil || len(reply.Calls) == 0 {
			return reply.Content, err
		}
		conversation = append(conversation, reply)
		for _, c := range reply.Calls {
			result, err := session.CallTool(ctx, &mcp.CallToolParams{
				Name: c.Function.Name, Arguments: json.RawMessage(c.Function.Arguments),
			})
			if err != nil {
				return "", err
			}
			conversation = append(conversation,
				message{Role: "tool", CallID: c.ID, Content: textOf(result)})
		}
	}
}

// functionsOf returns the tools of a server as Chat Completions has them.
func functionsOf(ctx context.Context, session *mcp.ClientSession) (functions []any, err error) {
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		function := map[string]any{
			"name": tool.Name, "description": tool.Description, "parameters": tool.InputSchema,
		}
		functions = append(functions, map[string]any{"type": "function", "function": function})
	}
	return functions, nil
}

func (j job) ask(
	ctx context.Context, client *http.Client, conversation []message, functions []any,
) (reply message, err error) {
	body, err := json.Marshal(map[string]any{
		"model": "any", "messages": conversation, "tools": functions,
	})
	if err != nil {
		return reply, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost,
		j.ModelURL+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		return reply, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return reply, err
	}
	var completion struct{ Choices []struct{ Message message } }
	if err := json.Unmarshal(text, &completion); err != nil || len(completion.Choices) == 0 {
		return reply, fmt.Errorf("the gateway answered %s: %s", resp.Status, text)
	}
	return completion.Choices[0].Message, nil
}

func textOf(result *mcp.CallToolResult) (text string) {
	for _, c := range result.Content {
		if part, ok := c.(*mcp.TextContent); ok {
			text += part.Text
		}
	}
	return text
}

// bearer sends requests with a token.
type bearer struct {
	next  http.RoundTripper
	token string
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}
