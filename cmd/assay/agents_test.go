package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// agents are agents that we did not write, by the folder into which examples/agents/install.sh
// installs them. Their scripts are in examples/agents.
var agents = []struct{ folder, script string }{
	{"openai-agents", "openai_agents.py"},
	{"langgraph", "langgraph_agent.py"},
	{"pydantic-ai", "pydantic_agent.py"},
	{"agno", "agno_agent.py"},
	{"strands", "strands_agent.py"},
	{"adk", "adk_agent.py"},
	{"autogen", "autogen_agent.py"},
	{"npm", "vercel_ai.mjs"},
	{"npm", "openai_agents.mjs"},
}

// TestAgentsOfOthers checks that agents that we did not write solve a task over MCP, with the model
// that the gateway serves them, and that all of them meet the same two faults.
func TestAgentsOfOthers(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_AGENTS")
	if home == "" {
		t.Skip("ASSAY_AGENTS does not name a directory with agents; make test-all sets it")
	}
	dir := t.TempDir()
	var names []string
	providers := "agents:\n"
	for _, a := range agents {
		if _, err := os.Stat(filepath.Join(home, a.folder, "done")); err != nil {
			t.Logf("%s is not installed", a.folder)
			continue
		}
		name := strings.NewReplacer("_agent.py", "", ".", "-").Replace(a.script)
		names = append(names, name)
		providers += "  " + name + ":\n    model: sim/optimal\n    command: [" +
			strings.Join(agentCommand(t, home, a.folder, a.script), ", ") + "]\n"
	}
	if len(names) == 0 {
		t.Skip("no agent is installed")
	}
	run := must(t, nil, "run", file(t, dir, "agents.yaml", `name: agents
models: [`+strings.Join(names, ", ")+`]
variants: [baseline]
difficulties: [easy]
task_types: [simple_task]
reliabilities: [0.7]
tools: listed
seed: 1
tasks_per_type: 1
`), "--providers", file(t, dir, "providers.yaml", providers),
		"--store", filepath.Join(dir, "assay.db"), "--display", "none")
	out := must(t, nil, "export", "--store", filepath.Join(dir, "assay.db"), "--format", "jsonl")
	seen := 0
	for line := range strings.Lines(out.out) {
		var a assay.Attempt
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		seen++
		if a.Level != assay.FullSuccess || a.Requests != 5 || a.InputTokens == 0 ||
			a.ToolCalls != 4 || a.FaultsMet != 2 || a.Failures != 2 || a.Unmetered {
			t.Errorf("%s: %s, ended by %s%s, %d requests, %d calls, %d faults met", a.Model,
				a.Level, a.Ended, a.FaultDetail, a.Requests, a.ToolCalls, a.FaultsMet)
		}
	}
	if seen != len(names) {
		t.Errorf("%d attempts of %d agents\n%s", seen, len(names), run.err)
	}
}

// agentCommand returns the command of an agent. A script in JavaScript finds its packages beside it.
func agentCommand(t *testing.T, home, folder, script string) []string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", "..", "examples", "agents", script))
	if err != nil {
		t.Fatal(err)
	}
	if folder != "npm" {
		return []string{filepath.Join(home, folder, "bin", "python"), source}
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"node", file(t, filepath.Join(home, folder), script, string(text))}
}
