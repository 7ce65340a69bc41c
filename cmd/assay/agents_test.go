package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// agents are agents that we did not write, by the folder into which examples/agents/install.sh
// installs them. Their scripts are in examples/agents.
// The option is the argument of a script.
var agents = []struct{ folder, script, option string }{
	{"openai-agents", "openai_agents.py", ""},
	{"langgraph", "langgraph_agent.py", ""},
	{"pydantic-ai", "pydantic_agent.py", ""},
	{"agno", "agno_agent.py", ""},
	{"strands", "strands_agent.py", ""},
	{"adk", "adk_agent.py", ""},
	{"autogen", "autogen_agent.py", ""},
	{"npm", "vercel_ai.mjs", ""},
	{"npm", "openai_agents.mjs", ""},
	{"llama-index", "llama_index_agent.py", ""},
	{"haystack", "haystack_agent.py", ""},
	{"crewai", "crewai_agent.py", ""},
	{"semantic-kernel", "semantic_kernel_agent.py", ""},
	{"qwen-agent", "qwen.py", ""},
	{"langchain-js", "langchain_agent.mjs", ""},
	{"mastra", "mastra_agent.mjs", ""},
	{"mastra", "mastra_agent.mjs", "ai-sdk-5-openai"},
}

// TestAgentsOfOthers checks that agents that we did not write solve tasks over MCP just as the model
// does that the gateway serves them, and meet the same faults. If tools have to be found, the model
// begins with several calls in one reply.
func TestAgentsOfOthers(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_AGENTS")
	if home == "" {
		t.Skip("ASSAY_AGENTS does not name a directory with agents; make test-all sets it")
	}
	dir := t.TempDir()
	models := []string{"sim/optimal"}
	providers := "agents:\n"
	for _, a := range agents {
		if _, err := os.Stat(filepath.Join(home, a.folder, "done")); err != nil {
			t.Logf("%s is not installed", a.folder)
			continue
		}
		command := agentCommand(t, home, a.folder, a.script)
		name := strings.NewReplacer("_agent.py", "", "_agent.mjs", "-js", ".", "-").Replace(a.script)
		if a.option != "" {
			name, command = name+"-"+a.option, append(command, a.option)
		}
		models = append(models, name)
		providers += "  " + name + ":\n    model: sim/optimal\n    command: [" +
			strings.Join(command, ", ") + "]\n"
	}
	if len(models) == 1 {
		t.Skip("no agent is installed")
	}
	tasks, settings := 1, []string{assay.Listed} // for CI
	if os.Getenv("ASSAY_AGENTS_ALL") != "" {
		tasks, settings = 3, append(settings, assay.Discover)
	}
	for _, tools := range settings {
		store := filepath.Join(dir, tools+".db")
		run := must(t, nil, "run", file(t, dir, tools+".yaml", `name: agents
models: [`+strings.Join(models, ", ")+`]
variants: [baseline]
difficulties: [easy]
task_types: [simple_task]
reliabilities: [0.7]
tools: `+tools+`
seed: 1
tasks_per_type: `+strconv.Itoa(tasks)+`
`), "--providers", file(t, dir, "providers.yaml", providers), "--store", store, "--display", "none")
		agreed(t, tools, store, tasks*len(models), run.err)
	}
}

// agreed checks that all models of a store have played each task alike.
func agreed(t *testing.T, tools, store string, want int, log string) {
	t.Helper()
	describe := func(a *assay.Attempt) string {
		return fmt.Sprintf("%s, ended by %s%s, %d requests, %d calls, %d failures, %d faults met",
			a.Level, a.Ended, a.FaultDetail, a.Requests, a.ToolCalls, a.Failures, a.FaultsMet)
	}
	played := attempts(t, store)
	alone := make(map[assay.TaskID]string) // by task
	faults := 0
	for _, a := range played {
		if a.Model == "sim/optimal" {
			alone[a.Task] = describe(&a)
			faults += a.FaultsMet
		}
	}
	for _, a := range played {
		if got := describe(&a); a.Level != assay.FullSuccess || got != alone[a.Task] ||
			a.InputTokens == 0 || a.Unmetered {
			t.Errorf("%s, tools %s, %s: %s\nits model alone: %s", a.Model, tools, a.Task, got,
				alone[a.Task])
		}
	}
	if len(played) != want || faults == 0 {
		t.Errorf("%d attempts, want %d, and %d faults\n%s", len(played), want, faults, log)
	}
}

// agentCommand returns the command of an agent. A script in JavaScript finds its packages beside it.
func agentCommand(t *testing.T, home, folder, script string) []string {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("..", "..", "examples", "agents", script))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(script) != ".mjs" {
		return []string{filepath.Join(home, folder, "bin", "python"), source}
	}
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	return []string{"node", file(t, filepath.Join(home, folder), script, string(text))}
}
