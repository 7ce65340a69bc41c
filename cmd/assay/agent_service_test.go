package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestServiceWithKey lets a service get its key in a header and reach the tools at a public
// address. The service sends its key back, plain and in base64, and it is in no file and no output.
func TestServiceWithKey(t *testing.T) {
	t.Parallel()
	const planted = "canary-5c1" // as long as its replacement
	var served atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var task map[string]string
		_ = json.NewDecoder(r.Body).Decode(&task)
		key := r.Header.Get("Authorization")
		post := func(url string, body any) (string, string) {
			b, _ := json.Marshal(body)
			req, _ := http.NewRequest(http.MethodPost, url, bytes.NewReader(b))
			req.Header.Set("Authorization", "Bearer "+task["token"])
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return "", err.Error()
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return string(text), resp.Status
		}
		chat := map[string]any{"model": "m", "messages": []any{
			map[string]any{"role": "user", "content": "my key is " + key},
		}}
		text, status := post(task["model_url"]+"/chat/completions", chat)
		if !strings.Contains(text, "the base URL ends with /v1, so ask POST …/v1/chat/completions") {
			t.Errorf("a path without /v1: %s: %s", status, text)
		}
		_, asked := post(task["model_url"]+"/v1/chat/completions", chat)
		_, called := post(task["mcp_url"], map[string]any{
			"jsonrpc": "2.0", "id": 1, "method": "tools/call",
			"params": map[string]any{"name": key, "arguments": map[string]any{"key": key}},
		})
		if key != "Bearer "+planted || !strings.HasPrefix(asked+called, "200") ||
			!strings.Contains(task["mcp_url"], "http://localhost:") {
			t.Error(key, asked, called, task)
		}
		coded := base64.StdEncoding.EncodeToString([]byte(planted))
		if served.Add(1)%2 == 0 {
			http.Error(w, key+coded, http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"text": key + " " + coded})
	}))
	t.Cleanup(service.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	dir := t.TempDir()
	file(t, dir, "providers.yaml", fmt.Sprintf(`agents:
  remote:
    url: %s/run
    headers: {Authorization: 'Bearer ${SERVICE_KEY}'}
    listen: 0.0.0.0:%s
    public_url: http://localhost:%s/
    model: sim/listed
`, service.URL, port, port))
	experiment := file(t, dir, "remote.yaml", "name: remote\nmodels: [remote]\n"+
		"providers: providers.yaml\ntask_types: [simple_task]\ntasks_per_type: 4\nvariants: [baseline]\n")
	db := filepath.Join(dir, "assay.db")
	env := []string{"SERVICE_KEY=" + planted}
	var all strings.Builder
	for _, args := range [][]string{
		{"check", experiment},
		{"run", experiment, "--store", db, "--display", "plain"},
		{"export", "--store", db},
		{"report", "--store", db, "--json"},
	} {
		cmd := program(t, args...)
		cmd.Env = append(os.Environ(), env...)
		out, err := cmd.CombinedOutput()
		if err != nil && args[0] == "run" {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
		all.Write(out)
	}
	for _, a := range attempts(t, db) {
		shown := must(t, nil, "show", "--store", db, "--json", string(a.ID))
		all.WriteString(shown.out)
		if n := strings.Count(shown.out, "[redacted]"); n < 4 {
			t.Errorf("only %d traces of the key: the test is too weak\n%s", n, shown.out)
		}
	}
	all.WriteString(textIn(t, dir))
	for _, text := range []string{
		planted, strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(planted)), "="),
	} {
		if strings.Contains(all.String(), text) {
			t.Errorf("%s is in a file or an output", text)
		}
	}
}

// tillWithRefunds is an environment whose user wants something back after the first answer.
const tillWithRefunds = `environment: {command: ["{dir}/envserver", "{port}", ok]}
answer: {type: message, content: "{answer}"}
tasks:
  - id: refund
    reset: {task_id: refund}
    plan:
      - {tool: pay, arguments: {euros: 25}}
      - {tool: refund, arguments: {euros: 5}, turn: 2}
    later_tools:
      - name: refund
        description: Take euros back.
        input_schema: {type: object, properties: {euros: {type: number}}, required: [euros]}
`

// TestServiceHearsTheUser lets a service hear a second message of the user, with which another tool
// is offered. The service remembers a conversation by its token.
func TestServiceHearsTheUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	programIn(t, dir, "envserver")
	programIn(t, dir, "agent")
	var paths sync.Map                                     // how often each path was called
	tools := map[string]bool{"/run": false, "/next": true} // whether refund is offered
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := paths.LoadOrStore(r.URL.Path, new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		var task map[string]string
		_ = json.NewDecoder(r.Body).Decode(&task)
		offered := strings.Contains(listed(t, task["mcp_url"], task["token"]), `"refund"`)
		if offered != tools[r.URL.Path] {
			t.Errorf("%s: refund is offered: %v", r.URL.Path, offered)
		}
		home := filepath.Join(dir, task["token"])
		_ = os.MkdirAll(home, 0o700)
		cmd := exec.Command(filepath.Join(dir, "agent"), "work and remember")
		cmd.Dir, cmd.Stdin = home, strings.NewReader(task["prompt"])
		cmd.Env = []string{
			"ASSAY_TOKEN=" + task["token"], "ASSAY_MCP_URL=" + task["mcp_url"],
			"OPENAI_BASE_URL=" + task["model_url"] + "/v1",
		}
		text, err := cmd.CombinedOutput()
		if err != nil {
			http.Error(w, string(text), http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"text": string(text)})
	}))
	t.Cleanup(service.Close)
	file(t, dir, "till.yaml", tillWithRefunds)
	file(t, dir, "providers.yaml", "agents:\n  remote: {url: "+service.URL+"/run, next: "+service.URL+
		"/next, model: sim/optimal}\n")
	experiment := file(t, dir, "e.yaml", "library: till.yaml\nmodels: [remote]\n"+
		"providers: providers.yaml\nvariants: [optimal]\nreliabilities: [1]\nrepeats: 3\n")
	store := filepath.Join(dir, "assay.db")
	must(t, nil, "run", experiment, "--store", store, "--sim-latency", "0")
	for _, a := range attempts(t, store) {
		if a.Level != "full_success" {
			t.Errorf("an attempt is %s%s", a.Level, a.FaultDetail)
		}
	}
	for _, path := range []string{"/run", "/next"} {
		if n, _ := paths.Load(path); n == nil || n.(*atomic.Int32).Load() != 3 {
			t.Errorf("%s was called %v times, want 3", path, n)
		}
	}
}

// listed returns the tools that a tool server lists.
func listed(t *testing.T, url, token string) string {
	t.Helper()
	body := strings.NewReader(`{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return ""
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}
