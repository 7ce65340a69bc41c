//go:build !race

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
)

// mlflowReader prints what MLflow shows of each trace but that of the run, by its ID.
const mlflowReader = `import json, mlflow
traces = {}
for t in mlflow.search_traces(locations=["1"], return_type="list", max_results=500):
    if t.data.spans[0].name.startswith("experiment "):
        continue
    types, labels = {}, []
    for s in t.data.spans:
        kind = f"{s.name.split()[0]} {s.span_type}"
        types[kind] = types.get(kind, 0) + 1
        labels += [e.attributes["gen_ai.evaluation.score.label"] for e in s.events]
    traces[t.info.trace_id] = {
        "types": types, "labels": labels, "failed": t.info.state.value != "OK",
        "input": t.info.token_usage["input_tokens"], "output": t.info.token_usage["output_tokens"],
        "feedback": [[f.name, f.value, f.rationale or ""] for f in t.info.assessments],
        "answered": all(s.outputs for s in t.data.spans if s.span_type == "CHAT_MODEL")}
print(json.dumps(traces))`

// A mlflowTrace is what mlflowReader prints of a trace.
type mlflowTrace struct {
	Types         map[string]int
	Labels        []string
	Failed        bool
	Input, Output int
	Feedback      [][]any
	Answered      bool
}

// mlflowTraceOf returns the ID of an attempt's trace, and what MLflow should show of it.
func mlflowTraceOf(a *assay.Attempt) (id string, shown mlflowTrace) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d", a.Run, a.ID, a.Number))
	shown = mlflowTrace{
		Types:  map[string]int{"trial None": 1, "invoke_agent AGENT": 1, "chat CHAT_MODEL": a.Turns},
		Labels: []string{string(a.Level)}, Input: a.InputTokens, Output: a.OutputTokens, Answered: true,
		Feedback: [][]any{{"success", a.Level == assay.FullSuccess, string(a.Cause)}},
	}
	if a.ToolCalls > 0 {
		shown.Types["execute_tool TOOL"] = a.ToolCalls
	}
	return "tr-" + hex.EncodeToString(sum[:16]), shown
}

// TestMLflowPage follows the part of docs/telemetry.md about MLflow with its server. It then compares
// what MLflow shows of each attempt with the export.
func TestMLflowPage(t *testing.T) {
	t.Parallel()
	bin := stranger(t, "ASSAY_MLFLOW")
	_, page, _ := strings.Cut(readDocument(t, "docs/telemetry.md"), "### MLflow")
	port := fmt.Sprint(freePort(t))
	script := strings.ReplaceAll(blocks(page, "sh")[0], "5000", port)
	start := regexp.MustCompile("(?m)^mlflow (server .*) &$").FindStringSubmatch(script)
	if start == nil {
		t.Fatalf("no server is started by\n%s", script)
	}
	dir := t.TempDir()
	file(t, dir, "experiment.yaml", "models: [sim/careful, sim/brittle]\nreliabilities: [0.6]\n"+
		"variants: [optimal]\ntasks_per_type: 1\n")
	if err := os.Symlink(program(t).Path, filepath.Join(dir, "assay")); err != nil {
		t.Fatal(err)
	}
	url := "http://127.0.0.1:" + port
	env := append(os.Environ(), "PATH="+bin+":"+dir+":"+os.Getenv("PATH"),
		"MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false", "MLFLOW_TRACKING_URI="+url)

	server := exec.Command(filepath.Join(bin, "mlflow"), // whose end is below
		append(strings.Fields(start[1]), "--port", port, "--workers", "1")...)
	server.Dir, server.Env = dir, env
	startStranger(t, url+"/health", server)
	t.Cleanup(func() { // it ends its own processes, if it is asked to
		_ = server.Process.Signal(syscall.SIGTERM)
		for conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil; {
			conn.Close()
			time.Sleep(100 * time.Millisecond)
			conn, err = net.Dial("tcp", "127.0.0.1:"+port)
		}
	})
	run := func(name string, args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		var errors strings.Builder
		cmd.Dir, cmd.Env, cmd.Stderr = dir, env, &errors
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v\n%s%s", err, out, errors.String())
		}
		return out
	}
	run("sh", "-e", "-c", strings.Replace(script, start[0], "", 1))
	run(filepath.Join(bin, "python"), "-c", blocks(page, "python")[0])

	shown, want := make(map[string]mlflowTrace), make(map[string]mlflowTrace)
	if err := json.Unmarshal(run(filepath.Join(bin, "python"), "-c", mlflowReader), &shown); err != nil {
		t.Fatal(err)
	}
	for _, a := range attempts(t, filepath.Join(dir, "assay.db")) {
		id, trace := mlflowTraceOf(&a)
		want[id] = trace
	}
	if diff := cmp.Diff(want, shown); diff != "" || len(want) != 10 {
		t.Errorf("%d traces (-export +MLflow):\n%s", len(want), diff)
	}
}
