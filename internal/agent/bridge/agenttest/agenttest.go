// Package agenttest is a foreign agent for tests. It talks to its servers as any agent does, and
// needs only the variables that agents get.
package agenttest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Act is an agent with an honest way to work and several ways to fail.
func Act(mode string) {
	if moment, end, ok := strings.Cut(mode, ": "); ok {
		halt = func(now string) {
			if now == moment {
				finish(end)
			}
		}
		fmt.Println(work())
		return
	}
	if how, ok := strings.CutPrefix(mode, "acp"); ok {
		speak(strings.TrimPrefix(how, " "))
		return
	}
	switch mode {
	case "work":
		fmt.Println(work())
	case "work and remember": // what was said, in the scratch directory
		memory = "conversation.json"
		fmt.Println(work())
	case "work and ask again": // until the model replies
		patient = true
		fmt.Println(work())
	case "work until a tool fails":
		fragile = true
		fmt.Println(work())
	case "strip arguments":
		meddle = func(name string, _ json.RawMessage) (string, json.RawMessage) {
			return name, json.RawMessage("{}")
		}
		fmt.Println(work())
	case "carry out only the last call": // of each reply
		skips = func(i, n int) bool { return i < n-1 }
		fmt.Println(work())
	case "carry out calls backwards":
		order = slices.Reverse[[]any]
		fmt.Println(work())
	case "hide errors":
		show = func(text string, failed bool) string {
			if failed {
				return "Something went wrong."
			}
			return text
		}
		fmt.Println(work())
	case "wrap results":
		show = func(text string, _ bool) string { return "The tool says: " + text }
		fmt.Println(work())
	case "lose results":
		show = func(string, bool) string { return "done" }
		fmt.Println(work())
	case "offer no tools":
		offers = 0
		fmt.Println(work())
	case "offer two tools":
		offers = 2
		fmt.Println(work())
	case "ask for a title":
		_, _ = post(model(), map[string]any{"model": "m", "messages": []any{
			map[string]any{"role": "user", "content": "Find a title."},
		}})
		fmt.Println(work())
	case "stop after five turns":
		most = 5
		fmt.Println(work())
	case "stream":
		streams = true
		fmt.Println(work())
	case "ignore signals":
		patient = true
		signal.Ignore(syscall.SIGTERM)
		fmt.Println(work())
	case "rename tools":
		meddle = func(name string, arguments json.RawMessage) (string, json.RawMessage) {
			return strings.ReplaceAll(name, "_", ""), arguments
		}
		fmt.Println(work())
	case "guess names, then work":
		for n := range 2000 {
			_, _ = mcp("tools/call", "name", fmt.Sprint("guess", n), "arguments", map[string]any{})
		}
		fmt.Println(work())
	case "guess names":
		for n := range 2000 {
			_, _ = mcp("tools/call", "name", fmt.Sprint("guess", n), "arguments", map[string]any{})
		}
	case "work, then crash":
		work()
		fmt.Println("almost done")
		fmt.Fprintln(os.Stderr, "panic: \x1b[31mred\x1b[0m")
		os.Exit(3)
	case "watch": // work or crash, as the prompt has it
		watch(os.Args[2])
	case "exit":
		os.Exit(1)
	case "crash at import":
		dir, _ := os.Getwd()
		fmt.Fprintf(os.Stderr, "Traceback (most recent call last):\n  File \"%s/agent.py\", line 1, in "+
			"<module>\n    import agents\nModuleNotFoundError: No module named 'agents'\n", dir)
		os.Exit(1)
	case "list, then crash":
		_, _ = mcp("tools/list")
		fmt.Fprintln(os.Stderr, "no such tool")
		os.Exit(3)
	case "ask in no language, then crash":
		_, err := post(model(), map[string]any{"messages": 1})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	case "call":
		_, _ = mcp("tools/call", "name", "teleport", "arguments", map[string]any{})
		fmt.Println("done")
	case "call, then crash":
		_, _ = mcp("tools/call", "name", "teleport", "arguments", map[string]any{})
		os.Exit(3)
	case "ask past the gateway": // as if another model had asked for the calls
		_, _ = post(model(), map[string]any{"model": "m", "messages": []any{
			map[string]any{"role": "user", "content": "hi"},
		}})
		for range 3 {
			_, _ = mcp("tools/call", "name", "tool_search", "arguments", map[string]any{"query": "x"})
		}
		fmt.Println("TASK_COMPLETED")
	case "kill itself":
		_, _ = mcp("tools/call", "name", "teleport", "arguments", map[string]any{})
		finish("signal")
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

// halt is told of the moments of the work, and may end it.
var halt = func(moment string) {}

// finish ends the agent.
func finish(end string) {
	switch end {
	case "exit 0":
		os.Exit(0)
	case "exit 3":
		os.Exit(3)
	case "signal":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		select {} // until the signal arrives
	case "hang":
		fmt.Println("hanging")
		time.Sleep(time.Hour)
	default: // words
		fmt.Println(end)
		os.Exit(0)
	}
}

// fragile means that the agent does not survive the failure of a tool.
var fragile bool

// patient means that the agent asks its model again after every failure.
var patient bool

// memory is a file with the conversation so far, if the agent keeps one.
var memory string

// meddle changes a call on its way to the tool server.
var meddle = func(name string, arguments json.RawMessage) (string, json.RawMessage) {
	return name, arguments
}

// skips reports whether the agent leaves out the i-th of n calls of a reply.
var skips = func(i, n int) bool { return false }

// order changes the order of the calls of a reply.
var order = func([]any) {}

// show changes the answer of a tool on its way to the model.
var show = func(text string, failed bool) string { return text }

// offers is how many tools the model is told of, most how many replies the agent asks for, and streams is
// whether in streams.
var offers, most, streams = 1_000_000, 1_000_000, false

func model() string { return os.Getenv("OPENAI_BASE_URL") + "/chat/completions" }

// seen gets all that the agent sees.
var seen io.Writer = io.Discard

// watch writes all that the agent sees to a file in dir. It uses the token of another attempt
// there, and writes how that ended.
func watch(dir string) {
	f, err := os.CreateTemp(dir, "seen")
	if err != nil {
		panic(err)
	}
	seen = f
	fmt.Fprintln(f, strings.Join(os.Environ(), "\n"))
	token := os.Getenv("ASSAY_TOKEN")
	others, _ := filepath.Glob(filepath.Join(dir, "token*"))
	mine := filepath.Join(dir, "token-"+token[len(token)-10:])
	if err := os.WriteFile(mine, []byte(token), 0o600); err != nil {
		panic(err)
	}
	answer, prompt := workOn()
	if len(others) > 0 {
		other, _ := os.ReadFile(others[len(others)-1])
		os.Setenv("ASSAY_TOKEN", string(other))
		_, err := mcp("tools/list")
		_, model := post(model(), map[string]any{"model": "m"})
		fmt.Fprintf(f, "\nTOKEN OF ANOTHER: %v; %v\n", err, model)
	}
	if crc32.ChecksumIEEE([]byte(prompt))%4 == 0 {
		os.Exit(3)
	}
	fmt.Println(answer)
}

func work() string {
	answer, _ := workOn()
	return answer
}

// workOn asks the model and calls tools until a reply has no calls.
func workOn() (answer, prompt string) {
	all, _ := io.ReadAll(os.Stdin)
	prompt = string(all)
	return respond(prompt), prompt
}

// held is the conversation so far of an agent that goes on in one process.
var held []any

// respond works on a message of the user.
func respond(prompt string) (answer string) {
	halt("before the first request")
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
	messages := held
	if b, err := os.ReadFile(memory); err == nil {
		_ = json.Unmarshal(b, &messages) // written below
	}
	messages = append(messages, map[string]any{"role": "user", "content": prompt})
	for n := 0; ; n++ {
		if n == most {
			return "These are enough steps."
		}
		request := map[string]any{"model": "m", "messages": messages, "tools": tools[:min(offers, len(tools))]}
		if offers == 0 {
			delete(request, "tools")
		}
		reply, err := ask(request)
		if err != nil && patient {
			continue
		}
		if err != nil {
			fmt.Fprintln(seen, err)
			fmt.Println(err)
			os.Exit(1)
		}
		m := reply["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)
		calls, _ := m["tool_calls"].([]any)
		if patient && !sound(m["content"], calls) {
			continue
		}
		messages = append(messages, m)
		if len(calls) == 0 {
			halt("after all work")
			text, _ := m["content"].(string)
			if memory != "" {
				b, _ := json.Marshal(messages)
				_ = os.WriteFile(memory, b, 0o600) // an agent without memory fails the test
			}
			held = messages
			return text
		}
		halt("after the first reply")
		order(calls)
		for i, c := range calls {
			if skips(i, len(calls)) {
				messages = append(messages, map[string]any{
					"role": "tool", "tool_call_id": c.(map[string]any)["id"], "content": "skipped",
				})
				continue
			}
			f := c.(map[string]any)["function"].(map[string]any)
			name, arguments := meddle(f["name"].(string), json.RawMessage(f["arguments"].(string)))
			result, err := mcp("tools/call", "name", name, "arguments", arguments)
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			if fragile && result["isError"] == true {
				fmt.Fprintln(os.Stderr, "gave up")
				os.Exit(7)
			}
			text := show(result["content"].([]any)[0].(map[string]any)["text"].(string), result["isError"] == true)
			messages = append(messages, map[string]any{
				"role": "tool", "tool_call_id": c.(map[string]any)["id"], "content": text,
			})
			halt("between calls")
		}
	}
}

// ask asks the model, and puts the pieces of a stream together.
func ask(request map[string]any) (map[string]any, error) {
	if !streams {
		return post(model(), request)
	}
	request["stream"] = true
	resp, err := send(model(), request)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	content, calls := "", []any{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string
					Calls   []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
			}
		}
		data, _ := strings.CutPrefix(lines.Text(), "data: ")
		if json.Unmarshal([]byte(data), &chunk) != nil || len(chunk.Choices) == 0 {
			continue // an empty line, or the end
		}
		content += chunk.Choices[0].Delta.Content
		for _, c := range chunk.Choices[0].Delta.Calls {
			if c.Index == len(calls) {
				calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{
					"name": c.Function.Name, "arguments": "",
				}})
			}
			f := calls[c.Index].(map[string]any)["function"].(map[string]any)
			f["arguments"] = f["arguments"].(string) + c.Function.Arguments
		}
	}
	message := map[string]any{"role": "assistant", "content": content}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	return map[string]any{"choices": []any{map[string]any{"message": message}}}, lines.Err()
}

// sound reports whether a reply says something, and its calls can be read.
func sound(content any, calls []any) bool {
	for _, c := range calls {
		f := c.(map[string]any)["function"].(map[string]any)
		if !json.Valid([]byte(f["arguments"].(string))) {
			return false
		}
	}
	text, _ := content.(string)
	return len(calls) > 0 || text != ""
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
	resp, err := send(url, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	reply := make(map[string]any)
	fmt.Fprintln(seen, resp.Header)
	err = json.NewDecoder(io.TeeReader(resp.Body, seen)).Decode(&reply)
	if resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %v", resp.Status, reply)
	}
	return reply, err
}

func send(url string, body any) (*http.Response, error) {
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
	client := http.Client{}
	if patient {
		client.Timeout = 3 * time.Second // longer than any reply of a simulated model takes
	}
	return client.Do(req)
}
