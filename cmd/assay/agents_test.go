package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
)

// agents are agents that we did not write, by the folder into which examples/agents/install.sh
// installs them. Their scripts, which may take an option, are in examples/agents.
var agents = []struct {
	name, main             string // as the docs name it, and the package with its version; @ ends those of npm
	folder, script, option string
	leavesOut              bool // all calls of a reply but one
}{
	{"OpenAI Agents SDK", "openai-agents", "openai-agents", "openai_agents.py", "", false},
	{"LangGraph", "langgraph", "langgraph", "langgraph_agent.py", "", false},
	{"Pydantic AI", "pydantic-ai-slim", "pydantic-ai", "pydantic_agent.py", "", false},
	{"Agno", "agno", "agno", "agno_agent.py", "", false},
	{"Strands", "strands-agents", "strands", "strands_agent.py", "", false},
	{"Google ADK", "google-adk", "adk", "adk_agent.py", "", false},
	{"AutoGen", "autogen-agentchat", "autogen", "autogen_agent.py", "", false},
	{"Vercel AI SDK", "ai@", "npm", "vercel_ai.mjs", "", false},
	{"OpenAI Agents SDK, JS", "@openai/agents@", "npm", "openai_agents.mjs", "", false},
	{"LlamaIndex", "llama-index-core", "llama-index", "llama_index_agent.py", "", false},
	{"Haystack", "haystack-ai", "haystack", "haystack_agent.py", "", false},
	{"CrewAI", "crewai", "crewai", "crewai_agent.py", "", false},
	{"Semantic Kernel", "semantic-kernel", "semantic-kernel", "semantic_kernel_agent.py", "", false},
	{"Qwen-Agent", "qwen-agent", "qwen-agent", "qwen.py", "", false},
	{"LangChain.js", "langchain@", "langchain-js", "langchain_agent.mjs", "", false},
	{"Mastra", "@mastra/core@", "mastra", "mastra_agent.mjs", "", false},
	{"Mastra, AI SDK 5", "@mastra/core@", "mastra", "mastra_agent.mjs", "ai-sdk-5-openai", false},
	{"Deep Agents", "deepagents", "deepagents", "deepagents_agent.py", "", false},
	{"mcp-use", "mcp-use", "mcp-use", "mcp_use_agent.py", "", false},
	{"Strands, JS", "@strands-agents/sdk@", "strands-js", "strands_agent.mjs", "", false},
	{"Strands, JS, chat", "@strands-agents/sdk@", "strands-js", "strands_agent.mjs", "chat", true},
	{"AG2", "ag2", "ag2", "ag2_agent.py", "", false},
	{"Copilot CLI", "@github/copilot@", "copilot", "copilot.mjs", "", false},
}

// TestAgentsOfOthers checks that agents that we did not write solve tasks over MCP just as the
// model does that the gateway serves them, and meet the same faults. If tools have to be found, the
// model begins with several calls in one reply. One agent plays after the other, because many keep
// a machine busy while they start.
func TestAgentsOfOthers(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_AGENTS")
	if home == "" {
		t.Skip("ASSAY_AGENTS does not name a directory with agents; make test-all sets it")
	}
	tasks, settings := 1, []string{assay.Listed} // for CI
	all := os.Getenv("ASSAY_AGENTS_ALL") != ""
	if all {
		tasks, settings = 3, append(settings, assay.Discover)
	}
	for _, a := range agents {
		for _, tools := range settings {
			if a.leavesOut && tools == assay.Discover {
				continue // the model begins with several calls
			}
			t.Run(strings.TrimSpace(a.script+" "+a.option)+"/"+tools, func(t *testing.T) {
				command := installed(t, home, a.folder, a.script, all)
				if a.option != "" {
					command = append(command, a.option)
				}
				playAlike(t, tools, tasks, "command: ["+strings.Join(command, ", ")+"]", true)
			})
		}
	}
}

// TestPresets does the same with known agents, also by the Agent Client Protocol. It skips those that are
// not installed.
func TestPresets(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_AGENTS")
	if home == "" || os.Getenv("ASSAY_AGENTS_ALL") == "" {
		t.Skip("ASSAY_AGENTS and ASSAY_AGENTS_ALL are not set; make strangers sets them")
	}
	for _, preset := range bridge.Presets() {
		t.Run(preset, func(t *testing.T) {
			if err := (bridge.Agent{}).WithPreset(preset).Check(); err != nil {
				t.Skip(err) // one needs a newer Python than some systems have
			}
			playAlike(t, assay.Listed, 3, "preset: "+preset, false)
		})
	}
}

// presetPackages have the names and the packages of presets.
var presetPackages = map[string][2]string{
	"claude-code":     {"Claude Code", "@anthropic-ai/claude-code"},
	"claude-code-acp": {"Claude Code, ACP", "@zed-industries/claude-code-acp"},
	"codex":           {"Codex", "@openai/codex"},
	"copilot-acp":     {"Copilot CLI, ACP", "@github/copilot"},
	"fast-agent-acp":  {"fast-agent, ACP", "fast-agent-mcp"},
	"gemini-cli":      {"Gemini CLI", "@google/gemini-cli"},
	"kimi-code-acp":   {"Kimi Code, ACP", "@moonshot-ai/kimi-code"},
	"opencode":        {"OpenCode", "opencode-ai"},
	"opencode-acp":    {"OpenCode, ACP", "opencode-ai"},
	"qwen-code":       {"Qwen Code", "@qwen-code/qwen-code"},
	"qwen-code-acp":   {"Qwen Code, ACP", "@qwen-code/qwen-code"},
}

// TestAgentsInDocs checks the table of agents in docs/agents.md, which is the output of the check. With
// -update it writes the table, for which all agents have to be installed.
func TestAgentsInDocs(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_AGENTS")
	if home == "" || os.Getenv("ASSAY_AGENTS_ALL") == "" {
		t.Skip("ASSAY_AGENTS and ASSAY_AGENTS_ALL are not set; make strangers sets them")
	}
	providers := "agents:\n"
	add := func(name, main, start string) {
		providers += fmt.Sprintf("  %q: {%s, model: sim/optimal, timeout: 1h}\n", name+" "+versionOf(t, main), start)
	}
	for _, a := range agents {
		command := installed(t, home, a.folder, a.script, true)
		if a.option != "" {
			command = append(command, a.option)
		}
		add(a.name, a.main, "command: ["+strings.Join(command, ", ")+"]")
	}
	add("smolagents", "smolagents",
		"command: ["+strings.Join(installed(t, home, "smolagents", "smolagents_agent.py", true), ", ")+"]")
	for _, preset := range bridge.Presets() {
		p, ok := presetPackages[preset]
		if !ok {
			t.Errorf("preset %s has no name here", preset)
		} else if err := (bridge.Agent{}).WithPreset(preset).Check(); err != nil {
			t.Logf("the row of %s is not checked: %v", preset, err)
			if golden.FlagUpdate() {
				t.FailNow()
			}
		} else {
			add(p[0], p[1], "preset: "+preset)
		}
	}
	out := call(t, nil, "check", "--agents", "--timeout", "1h", "--providers",
		file(t, t.TempDir(), "providers.yaml", providers)).out
	table, _, _ := strings.Cut(out, "\n\n")

	path := filepath.Join("..", "..", "docs", "agents.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begins = "parallel  streamed\n"
	head, rest, _ := strings.Cut(string(text), begins)
	rows, tail, _ := strings.Cut(rest, "\n```")
	_, fresh, _ := strings.Cut(table, begins)
	if golden.FlagUpdate() {
		indent := strings.Repeat(" ", strings.Index(table, strings.TrimSpace(begins)))
		head = strings.TrimRight(head, " ") + indent
		if err := os.WriteFile(path, []byte(head+begins+strings.TrimRight(fresh, "\n")+"\n```"+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for row := range strings.Lines(fresh) {
		words := strings.Fields(row)
		if !slices.ContainsFunc(strings.Split(rows, "\n"), func(r string) bool {
			return slices.Equal(words, strings.Fields(r))
		}) {
			t.Errorf("%s has not the row\n%s", path, row)
		}
	}
}

// versionOf returns the version of a package in examples/agents/install.sh.
func versionOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "agents", "install.sh"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`[\s']` + regexp.QuoteMeta(name) + `(?:\[[^]]*\])?(?:==|@)?([0-9.]+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("install.sh has no version of %s", name)
	}
	return string(found[1])
}

// playAlike lets an agent and its model alone play the same tasks, and checks that they play alike. Some
// agents ask their model for more, such as a title.
func playAlike(t *testing.T, tools string, tasks int, start string, asksAlike bool) {
	t.Helper()
	dir := t.TempDir()
	store := filepath.Join(dir, "agents.db")
	run := must(t, nil, "run", file(t, dir, "experiment.yaml", `name: agents
models: [sim/optimal, agent]
variants: [baseline]
difficulties: [easy]
task_types: [simple_task]
reliabilities: [0.7]
tools: `+tools+`
seed: 1
tasks_per_type: `+strconv.Itoa(tasks)+`
`), "--providers", file(t, dir, "providers.yaml", `agents:
  agent:
    model: sim/optimal
    timeout: 1h # on a busy machine
    concurrency: 2
    `+start+`
`), "--store", store, "--display", "none")
	played := attempts(t, store)
	if len(played) != 2*tasks {
		t.Errorf("%d attempts, want %d\n%s", len(played), 2*tasks, run.err)
	}
	agreed(t, played, asksAlike)
}

// agreed checks that all models have played each task alike, and met faults.
func agreed(t *testing.T, played []assay.Attempt, asksAlike bool) {
	t.Helper()
	describe := func(a *assay.Attempt) string {
		text := fmt.Sprintf("%s, ended by %s%s, %d calls, %d failures, %d faults met",
			a.Level, a.Ended, a.FaultDetail, a.ToolCalls, a.Failures, a.FaultsMet)
		if asksAlike {
			text += fmt.Sprintf(", %d requests", a.Requests)
		}
		return text
	}
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
			t.Errorf("%s of %s: %s\nits model alone: %s", a.Task, a.Model, got, alone[a.Task])
		}
	}
	t.Logf("%d attempts; the model alone met %d faults", len(played), faults)
	if faults == 0 {
		t.Error("no fault was met")
	}
}

// installed returns the command of an agent. It skips the test if the agent is not installed, or
// fails if it has to be. A script in JavaScript finds its packages beside it.
func installed(t *testing.T, home, folder, script string, all bool) []string {
	t.Helper()
	_, err := os.Stat(filepath.Join(home, folder, "done"))
	if err != nil && all {
		t.Fatalf("%s is not installed", folder)
	} else if err != nil {
		t.Skipf("%s is not installed", folder)
	}
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
