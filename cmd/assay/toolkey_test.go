package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/assay-eval/assay"
)

// echoingServer repeats its key wherever a server of tools can. It refuses every third call of the
// tool break, with the key in the reason.
func echoingServer(t *testing.T, key string) (url string) {
	t.Helper()
	text := func(s string) *sdk.CallToolResult {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "echo " + key}, nil)
	s.AddTool(&sdk.Tool{
		Name: "whoami", Description: "Your key is " + key,
		InputSchema: map[string]any{"type": "object", "description": "for " + key},
	}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(`{"key": "` + key + `"}`), nil
	})
	s.AddTool(&sdk.Tool{Name: "fail", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			r := text("no such order for " + key)
			r.IsError = true
			return r, nil
		})
	s.AddTool(&sdk.Tool{Name: "break", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return nil, errors.New("broken for " + key)
		})
	var breaks atomic.Int64
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case r.Header.Get("Authorization") != "Bearer "+key:
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case bytes.Contains(body, []byte(`"name":"break"`)) && breaks.Add(1)%3 == 0:
			http.Error(w, "the key "+key+" is spent", http.StatusForbidden)
		default:
			h.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	return web.URL
}

// TestKeyOfServerAppearsNowhere searches everything that a run with a server of tools leaves for
// the server's key.
func TestKeyOfServerAppearsNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "tools.yaml", "mcp: {url: \""+echoingServer(t, canary)+"\", key: TOOLS_KEY}\n")
	file(t, dir, "tasks.yaml", `tools: tools.yaml
tasks:
  - id: a
    prompt: Find out who you are.
    observe: {me: {tool: whoami}}
    judge: {calls: [{tool: whoami}]}
    plan: [{tool: fail}, {tool: break}, {tool: whoami}]
`)
	file(t, dir, "e.yaml", "library: tasks.yaml\nmodels: [sim/optimal, sim/listed]\n"+
		"variants: [optimal]\nrepeats: 4\n")
	redacted, faults := 0, 0
	for _, line := range []string{
		"library call whoami {} --library tasks.yaml", "library import tasks.yaml -o tasks.db",
		"run e.yaml --display plain --log-level debug --debug-trials all",
		"report --format html --transcripts 9 --output report.html",
		"export --output out.jsonl --calls calls.jsonl", "export --format inspect --output logs",
	} {
		cmd := program(t, strings.Fields(line)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TOOLS_KEY="+canary)
		out, _ := cmd.CombinedOutput() // some trials are faults
		noCanary(t, line, string(out))
	}
	for _, a := range attempts(t, filepath.Join(dir, "assay.db")) {
		out := must(t, nil, "show", string(a.ID), "--store", filepath.Join(dir, "assay.db")).out
		noCanary(t, "show", out)
		redacted += strings.Count(out, "[redacted]")
		if a.FaultKind == assay.ToolServer {
			faults++
		}
	}
	noFileHasCanary(t, dir)
	if redacted == 0 || faults == 0 {
		t.Errorf("%d places in transcripts are redacted, and %d attempts are faults", redacted,
			faults)
	}
}
