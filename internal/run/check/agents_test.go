package check_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay/internal/agent/bridge/agenttest"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/check"
)

// asAgent is the first argument of a test binary that acts as an agent.
const asAgent = "act-as-an-agent"

func init() {
	if len(os.Args) > 2 && os.Args[1] == asAgent {
		agenttest.Act(os.Args[2])
		os.Exit(0)
	}
}

// agents checks agents of the test's program with these modes, which are their names, too.
func agents(t *testing.T, modes ...string) map[string]check.Agent {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := "agents:\n"
	for _, m := range modes {
		start := "command"
		if m == "acp" {
			start = m
		}
		text += "  '" + m + "': {" + start + ": ['" + program + "', " + asAgent + ", '" +
			strings.ReplaceAll(m, "_", " ") + "'], model: sim/listed, timeout: 20s}\n"
	}
	path := filepath.Join(dir, "providers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	experiment := filepath.Join(dir, "e.yaml")
	if err := os.WriteFile(experiment, []byte("models: ['"+strings.Join(modes, "', '")+
		"']\nproviders: providers.yaml\ntask_types: [basic_task]\nlimits: {turns: 9}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := plan.Load(experiment)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	pools, err := j.Pools(os.LookupEnv, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pools.Close()
	told := 0
	var mu sync.Mutex
	all, err := check.Agents(context.Background(), j, pools, 0, func(string) {
		mu.Lock()
		defer mu.Unlock()
		told++
	})
	if err != nil || told != len(modes) {
		t.Fatalf("%v; told of %d agents", err, told)
	}
	found := make(map[string]check.Agent)
	for _, a := range all {
		found[a.Agent] = a
	}
	return found
}

// TestAgents checks what is found out about agents that do one thing wrong.
func TestAgents(t *testing.T) {
	t.Parallel()
	good := check.Agent{
		Starts: true, Offered: 5, Parallel: check.Kept, Results: check.Whole, Errors: check.Shown,
		Tokens: check.Exact, Limit: check.Kept, End: check.Clean,
	}
	cases := []struct {
		mode   string
		but    func(a *check.Agent) // what is not good
		change string               // what is advised
		note   string
	}{
		{"work", func(*check.Agent) {}, "", ""},
		{"acp", func(*check.Agent) {}, "", ""},
		{"stream", func(a *check.Agent) { a.Streamed = check.Kept }, "", ""},
		{"carry_out_only_the_last_call", func(a *check.Agent) {
			a.Parallel = check.Dropped
		}, "it leaves out calls if a reply has several", ""},
		{
			"carry_out_calls_backwards", func(a *check.Agent) { a.Parallel = check.Late },
			"it carries out the calls of a reply in another order", "",
		},
		{"strip_arguments", func(a *check.Agent) {
			a.Parallel, a.Errors, a.End = check.Changed, "", "turn limit"
		}, "it carries out calls with other names or arguments", "it met no planted failure"},
		{
			"hide_errors", func(a *check.Agent) { a.Errors = check.Lost },
			"its model does not see why a tool failed", "",
		},
		{"wrap_results", func(a *check.Agent) { a.Results = check.Wrapped }, "", "in words of its own"},
		{
			"lose_results", func(a *check.Agent) { a.Results, a.Errors = check.Lost, check.Lost },
			"its model does not see what tools answer", "",
		},
		{
			"work_until_a_tool_fails", func(a *check.Agent) { a.Errors = check.Fatal },
			"one failing tool ends it (exit status 7)", "",
		},
		{"offer_no_tools", func(a *check.Agent) {
			*a = check.Agent{Starts: true, Tokens: check.Exact, End: check.Clean}
		}, "it offers its model none of the tools", ""},
		{
			"offer_two_tools", func(a *check.Agent) { a.Offered = 2 },
			"it offers its model only 2 of 5 tools", "",
		},
		{"call", func(a *check.Agent) {
			*a = check.Agent{Starts: true, Tokens: check.Outside, End: check.Clean}
		}, "", "it asks no model through Assay"},
		{"ask_for_a_title", func(a *check.Agent) { a.Tokens = check.More }, "", "it asks its model 1 time that"},
		{
			"stop_after_five_turns", func(a *check.Agent) { a.Limit = check.Own },
			"it stops by itself after 5 of 9 turns", "",
		},
		{"ignore_signals", func(a *check.Agent) { a.End = check.Killed }, "", "SIGTERM"},
		{
			"work,_then_crash", func(a *check.Agent) { a.End = "exit status 3" },
			"it does not end well although no tool fails", "",
		},
		{"exit", func(a *check.Agent) { *a = check.Agent{} }, "it ends before it asks its model or a tool", ""},
	}
	var modes []string
	for _, tc := range cases {
		modes = append(modes, tc.mode)
	}
	found := agents(t, modes...)
	for _, tc := range cases {
		want, got := good, found[tc.mode]
		tc.but(&want)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(check.Agent{},
			"Agent", "Sandbox", "Sees", "Took", "Printed", "Changes", "Notes")); diff != "" {
			t.Errorf("%s (-want +got):\n%s%s", tc.mode, diff, strings.Join(got.Changes, "\n"))
		}
		changes, notes := strings.Join(got.Changes, "\n"), strings.Join(got.Notes, "\n")
		if !strings.Contains(changes, tc.change) || tc.change == "" && changes != "" {
			t.Errorf("%s: to change: %q, want %q", tc.mode, changes, tc.change)
		}
		if !strings.Contains(notes, tc.note) {
			t.Errorf("%s: to know: %q, want %q", tc.mode, notes, tc.note)
		}
	}
}
