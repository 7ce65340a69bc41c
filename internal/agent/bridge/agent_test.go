package bridge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// asAgent is the first argument of a test binary that acts as an agent.
const asAgent = "act-as-an-agent"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == asAgent {
		act(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m, // a package of Gemini's client starts this one when it is imported
		goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// act is an agent with an honest way to work and several ways to fail.
func act(mode string) {
	switch mode {
	case "work":
		fmt.Println(work())
	case "work, then crash":
		work()
		fmt.Println("almost done")
		fmt.Fprintln(os.Stderr, "panic: \x1b[31mred\x1b[0m")
		os.Exit(3)
	case "exit":
		os.Exit(1)
	case "hang":
		time.Sleep(time.Hour)
	case "chat forever":
		for {
			_, _ = post(model(), map[string]any{"model": "m", "messages": []any{
				map[string]any{"role": "user", "content": "Are we there yet?"},
			}})
		}
	case "call forever":
		for {
			_, _ = mcp("tools/call", "name", "tool_call", "arguments", map[string]any{
				"tool": "file_operations_reader", "arguments": map[string]any{},
			})
		}
	case "talk forever":
		for {
			fmt.Print(strings.Repeat("blah ", 10000))
		}
	case "leave a child":
		cmd := exec.Command("sleep", "3600")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		_ = cmd.Start()
		fmt.Println(work())
	case "environment":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "no such tool":
		answer, _ := mcp("tools/call", "name", "teleport", "arguments", map[string]any{})
		fmt.Println(answer)
	}
}

func model() string { return os.Getenv("OPENAI_BASE_URL") + "/chat/completions" }

// work asks the model and calls tools until the model has nothing left to call.
func work() string {
	prompt, _ := io.ReadAll(os.Stdin)
	list, err := mcp("tools/list")
	if err != nil {
		return err.Error()
	}
	var tools []any
	for _, t := range list["tools"].([]any) {
		t := t.(map[string]any)
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{
			"name": t["name"], "description": t["description"], "parameters": t["inputSchema"],
		}})
	}
	messages := []any{map[string]any{"role": "user", "content": string(prompt)}}
	for {
		reply, err := post(model(), map[string]any{"model": "m", "messages": messages, "tools": tools})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		m := reply["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)
		messages = append(messages, m)
		calls, _ := m["tool_calls"].([]any)
		if len(calls) == 0 {
			text, _ := m["content"].(string)
			return text
		}
		for _, c := range calls {
			f := c.(map[string]any)["function"].(map[string]any)
			result, err := mcp("tools/call", "name", f["name"],
				"arguments", json.RawMessage(f["arguments"].(string)))
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			text := result["content"].([]any)[0].(map[string]any)["text"]
			messages = append(messages, map[string]any{
				"role": "tool", "tool_call_id": c.(map[string]any)["id"], "content": text,
			})
		}
	}
}

func mcp(method string, params ...any) (map[string]any, error) {
	p := make(map[string]any)
	for i := 0; i < len(params); i += 2 {
		p[params[i].(string)] = params[i+1]
	}
	reply, err := post(os.Getenv("ASSAY_MCP_URL"), map[string]any{
		"jsonrpc": "2.0", "id": 1, "method": method, "params": p,
	})
	if err != nil {
		return nil, err
	}
	result, ok := reply["result"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no result: %v", reply)
	}
	return result, nil
}

func post(url string, body any) (map[string]any, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("ASSAY_TOKEN"))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	reply := make(map[string]any)
	err = json.NewDecoder(resp.Body).Decode(&reply)
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %v", resp.Status, reply)
	}
	return reply, err
}
