package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
)

const (
	stepTools = `
file: tools.star
tools:
  - {name: first, description: The first step., effect: steps, parameters: {n: {type: integer}}}
  - {name: second, description: The second step., effect: steps, parameters: {n: {type: integer}}}
  - {name: third, description: The third step., effect: steps, parameters: {n: {type: integer}}}
  - {name: fourth, description: The fourth step., effect: steps, parameters: {n: {type: integer}}}
  - {name: fifth, description: The fifth step., effect: steps, parameters: {n: {type: integer}}}
`
	stepScript = `
def step(state, name):
    state["done"] = state["done"] + [name]
    return {"done": state["done"]}

def first(state, n): return step(state, "first")
def second(state, n): return step(state, "second")
def third(state, n): return step(state, "third")
def fourth(state, n): return step(state, "fourth")
def fifth(state, n): return step(state, "fifth")
`
	stepTasks = `
tools: tools.yaml
state: {done: []}
tasks:
  - id: steps
    prompt: Make the five steps with n = 7.
    judge: {state: {done: [first, second, third, fourth, fifth]}}
    plan:
      - {tool: first, arguments: {n: 7}}
      - {tool: second, arguments: {n: 7}}
      - {tool: third, arguments: {n: 7}}
      - {tool: fourth, arguments: {n: 7}}
      - {tool: fifth, arguments: {n: 7}}
`
)

// allAtOnce is a model that asks for all steps in its first reply, and then claims to be done.
func allAtOnce(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Model    string
		Messages []struct{ Role string }
		Tools    []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	message := map[string]any{"role": "assistant", "content": nil}
	finish, calls := "tool_calls", []any{}
	for i, step := range []string{"first", "second", "third", "fourth", "fifth"} {
		for _, t := range request.Tools { // frameworks put prefixes before names
			if name := t.Function.Name; strings.HasSuffix(name, step) {
				calls = append(calls, map[string]any{
					"id": fmt.Sprint("call_", i), "type": "function",
					"function": map[string]any{"name": name, "arguments": `{"n":7}`},
				})
			}
		}
	}
	message["tool_calls"] = calls
	for _, m := range request.Messages {
		if m.Role == "tool" {
			message, finish = map[string]any{"role": "assistant", "content": "TASK_COMPLETED"}, "stop"
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"id": "r", "object": "chat.completion", "created": 1, "model": request.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}},
		"usage":   map[string]any{"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18},
	})
}

// TestParallelCallsHaveOneVerdict checks that agents that we did not write, many of which carry out
// the calls of a reply at once, play each of eight trials as their model does alone: with the same
// calls in the same order, the same luck and the same verdict.
func TestParallelCallsHaveOneVerdict(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_AGENTS")
	if home == "" || os.Getenv("ASSAY_AGENTS_ALL") == "" {
		t.Skip("ASSAY_AGENTS and ASSAY_AGENTS_ALL are not set; make strangers sets them")
	}
	for _, a := range agents {
		t.Run(strings.TrimSpace(a.script+" "+a.option), func(t *testing.T) {
			command := installed(t, home, a.folder, a.script, true)
			if a.option != "" {
				command = append(command, a.option)
			}
			agreeOnOrder(t, command, a.leavesOut)
		})
	}
}

func agreeOnOrder(t *testing.T, command []string, leavesOut bool) {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(allAtOnce))
	t.Cleanup(model.Close)
	dir := t.TempDir()
	file(t, dir, "tools.yaml", stepTools)
	file(t, dir, "tools.star", stepScript)
	file(t, dir, "tasks.yaml", stepTasks)
	store := filepath.Join(dir, "order.db")
	must(t, map[string]string{"KEY": "canary-order-0123456789"},
		"run", file(t, dir, "experiment.yaml", `name: order
models: [eager, agent]
library: tasks.yaml
variants: [baseline]
reliabilities: [0.9]
repeats: 8
seed: 1
`), "--providers", file(t, dir, "providers.yaml", fmt.Sprintf(`providers:
  own:
    base_url: %s/v1
    keys: [KEY]
    models: {eager: {}}
agents:
  agent: {model: eager, timeout: 1h, concurrency: 2, command: [%s]}
`, model.URL, strings.Join(command, ", "))), "--store", store, "--display", "none")

	type verdict struct {
		Level      assay.Level
		Ended      assay.Ended
		Cause      assay.Cause
		Executed   []string
		Failures   int
		Deviations string
	}
	alone := make(map[string]verdict)
	played := attempts(t, store)
	key := func(a *assay.Attempt) string { return fmt.Sprint(a.Reliability, a.Repeat) }
	verdictOf := func(a *assay.Attempt) verdict {
		return verdict{a.Level, a.Ended, a.Cause, a.ExecutedTools, a.Failures, a.Deviations}
	}
	for _, a := range played {
		if a.Model == "eager" {
			alone[key(&a)] = verdictOf(&a)
		}
	}
	if len(played) != 16 || len(alone) != 8 {
		t.Fatalf("%d attempts, %d of the model alone", len(played), len(alone))
	}
	equal, deviations := 0, make(map[string]int)
	for _, a := range played {
		if a.Model == "eager" {
			continue
		}
		deviations[a.Deviations]++
		if diff := cmp.Diff(alone[key(&a)], verdictOf(&a)); diff == "" {
			equal++
		} else if !leavesOut {
			t.Errorf("trial %s (-alone +agent): %s\n%s", key(&a), a.FaultDetail, diff)
		}
		if leavesOut && a.Cause != assay.ByFramework {
			t.Errorf("trial %s: %s, %s, not by the framework", key(&a), a.Level, a.Cause)
		}
	}
	t.Logf("%d of %d trials as the model alone; deviations %v", equal, len(alone), deviations)
}
