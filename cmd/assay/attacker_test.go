//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// An attacker is a model whose first reply calls a few of the offered tools with crafted arguments.
// All others say that it is done.
type attacker struct {
	arguments []map[string]any
}

// ServeHTTP answers Chat Completions.
func (a *attacker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type said struct{ Role string }
	var asked struct {
		Messages []said
		Tools    []struct{ Function struct{ Name string } }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	message, finish := doc{"role": "assistant", "content": "Done. TASK_COMPLETED"}, "stop"
	if !slices.ContainsFunc(asked.Messages, func(m said) bool { return m.Role == "assistant" }) {
		var calls []any
		for _, tool := range asked.Tools[:min(2, len(asked.Tools))] {
			for _, arguments := range a.arguments {
				calls = append(calls, doc{
					"id": fmt.Sprint("call", len(calls)), "type": "function",
					"function": doc{"name": tool.Function.Name, "arguments": text(arguments)},
				})
			}
		}
		message, finish = doc{"role": "assistant", "content": nil, "tool_calls": calls}, "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, text(doc{
		"object": "chat.completion", "model": "attacker",
		"usage":   doc{"prompt_tokens": 1, "completion_tokens": 1},
		"choices": []any{doc{"index": 0, "message": message, "finish_reason": finish}},
	}))
}

// crafted returns arguments whose names are Python that leaves a mark and makes an adapter's verdicts good,
// or names of parts of adapters and libraries.
func crafted(mark string) []map[string]any {
	code := fmt.Sprintf(`open(%q, "w"), [setattr(m, "judged", (lambda judged: lambda *_: judged(True))(m.judged)) `+
		`for name, m in list(__import__("sys").modules.items()) if name.endswith("_env")]`, mark)
	all := []map[string]any{
		{"x=[" + code + "] and 0, y": "a"},
		{"**[" + code + "] and {}, y": "a"},
		{"x": 0, "y=[" + code + "], z": 0},
		{"x": "'+str([" + code + "])+'"},
		{"x": map[string]any{"'+str([" + code + "])+'": 1}},
	}
	for _, name := range []string{
		"self", "state", "requestor", "tool_name", "kwargs", "environment", "__class__",
		"{0.__class__}", "../../verdict", "reward", "done", "free", "", " ", "a'b\"c\n",
	} {
		all = append(all, map[string]any{name: "user"})
	}
	return append(all, map[string]any{"x": json.RawMessage(strings.Repeat("[", 99) + strings.Repeat("]", 99))},
		map[string]any{"x": json.RawMessage("1e999")})
}

// The tools that a script carries out for an attacker. One has a parameter that is not for models.
const (
	attackedScript = `
def pay(state, x = None, free = False):
    if free:
        state["paid"] = 25
    return state["paid"]

def paid(state, calls, answer):
    return state["paid"] == 25
`
	attackedTools = `file: tools.star
tools:
  - name: pay
    description: Pay x euros.
    parameters: {type: object, properties: {x: {}}}
`
	attackedTasks = `tools: tools.yaml
tasks:
  - {id: pay, prompt: Pay 25 euros., state: {paid: 0}, judge: {check: paid}}
`
)

// TestAttackers lets a model attack what carries out its calls, alone and from an agent. It solves
// no task and breaks nothing, so each of its trials is a failure, never a fault. The examples of
// environments are attacked if they are installed.
func TestAttackers(t *testing.T) {
	t.Parallel()
	t.Run("own tools", func(t *testing.T) {
		t.Parallel()
		attack(t, map[string]string{
			"tools.star": attackedScript, "tools.yaml": attackedTools, "library.yaml": attackedTasks,
		}, 1)
	})
	examples, err := filepath.Abs("../../examples/environments")
	if err != nil {
		t.Fatal(err)
	}
	for name, tasks := range map[string][]string{
		"bfcl":      numbered("multi_turn_base_%d", 10),
		"agentdojo": numbered("workspace-user_task_%d", 10),
		"tau2":      numbered("%d", 10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			python := filepath.Join(examples, "."+name, "bin", "python")
			if _, err := os.Stat(python); err != nil {
				t.Skipf("examples/environments/install.sh %s installs it", name)
			}
			if testing.Short() {
				t.Skip("-short: starts servers in Python")
			}
			if name == "tau2" && os.Getenv("TAU2") == "" {
				t.Skip("TAU2 names no checkout of tau2-bench, which is not a package")
			}
			library := fmt.Sprintf("environment:\n"+
				"  command: [%q, -m, uvicorn, \"%s_env:app\", --port, \"{port}\", --log-level, warning]\n"+
				"  set: {PYTHONPATH: %q}\n  env: [TAU2]\n"+
				"answer: {type: message, content: \"{answer}\"}\ntasks:\n", python, name, examples)
			for _, id := range tasks {
				library += fmt.Sprintf("  - {id: %q, reset: {task_id: %q}}\n", "task-"+id, id)
			}
			attack(t, map[string]string{"library.yaml": library}, len(tasks))
		})
	}
}

func numbered(format string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf(format, i))
	}
	return all
}

// attack plays the tasks of library.yaml, alone and from an agent.
func attack(t *testing.T, files map[string]string, tasks int) {
	t.Helper()
	dir := t.TempDir()
	mark := filepath.Join(dir, "mark")
	server := httptest.NewServer(&attacker{crafted(mark)})
	defer server.Close()
	for name, text := range files {
		file(t, dir, name, text)
	}
	file(t, dir, "providers.yaml", fmt.Sprintf(`providers:
  p: {base_url: %s/v1, keys: [K], models: {attacker: {}}}
agents:
  agent:
    command: [agent, work and remember]
    next: [agent, work and remember]
    model: attacker
`, server.URL))
	experiment := file(t, dir, "experiment.yaml", `library: library.yaml
providers: providers.yaml
models: [attacker, agent]
variants: [baseline]
limits: {turns: 120, calls: 100}
`)
	run := program(t, "run", experiment, "--store", dir+"/a.db", "--display", "none")
	run.Env = append(os.Environ(), "K=any")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("the run: %v\n%s", err, out)
	}
	levels := make(map[string]int)
	for _, a := range attempts(t, dir+"/a.db") {
		levels[strings.TrimSpace(fmt.Sprint(a.Model, " ", a.Level, a.FaultKind))]++
	}
	t.Log(levels)
	for _, model := range []string{"attacker", "agent"} {
		if got := levels[model+" "+string(assay.Failure)]; got != tasks {
			t.Errorf("%d of %d trials of %s are failures: %v", got, tasks, model, levels)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("code of the model was carried out")
	}
}
