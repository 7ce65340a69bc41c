package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// toolServers are servers that we did not write, each with a call of a tool. NPM and PY stand for
// the directories of their programs.
var toolServers = map[string][2]string{
	"everything": {`[NPM/mcp-server-everything]`, `{tool: get-sum, arguments: {a: 2, b: 3}}`},
	"filesystem": {
		`[NPM/mcp-server-filesystem, "{scratch}"]`,
		`{tool: write_file, arguments: {path: note.txt, content: hello}}`,
	},
	"memory": {
		`[NPM/mcp-server-memory], set: {MEMORY_FILE_PATH: "{scratch}/memory.jsonl"}`,
		`{tool: read_graph, arguments: {}}`,
	},
	"time": {
		`[PY/mcp-server-time, --local-timezone, UTC]`,
		`{tool: get_current_time, arguments: {timezone: UTC}}`,
	},
	"sqlite": {
		`[PY/mcp-server-sqlite, --db-path, "{scratch}/test.db"]`,
		`{tool: list_tables, arguments: {}}`,
	},
}

// TestToolServersOfOthers checks that tools of servers that we did not write meet the same faults
// under each model, and that no process and no file is left.
func TestToolServersOfOthers(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_MCP_SERVERS")
	if home == "" {
		t.Skip("ASSAY_MCP_SERVERS does not name a directory with MCP servers; make test-all sets it")
	}
	place := strings.NewReplacer("NPM", filepath.Join(home, "node_modules", ".bin"),
		"PY", filepath.Join(home, "python", "bin"))
	for name, x := range toolServers {
		t.Run(name, func(t *testing.T) {
			dir, temp := t.TempDir(), t.TempDir()
			file(t, dir, "tools.yaml", place.Replace("mcp: {command: "+x[0]+"}\n"))
			file(t, dir, "tasks.yaml", fmt.Sprintf("tools: tools.yaml\ntasks:\n  - {id: a, "+
				"prompt: Make the call., judge: {calls: [%[1]s]}, plan: [%[1]s]}\n", x[1]))
			file(t, dir, "e.yaml", `{library: tasks.yaml, models: [sim/optimal, sim/listed],
				variants: [optimal], seed: 1, reliabilities: [0.3], failures: {kinds: {before: 0.2,
				after: 0.2, slow: 0.2, wrong_shape: 0.2, stale: 0.2}}}`)
			for _, line := range []string{
				"run e.yaml --sim-latency 0 --display none",
				"export --output out.jsonl --calls calls.jsonl",
			} {
				cmd := program(t, strings.Fields(line)...)
				cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+temp)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%s: %v\n%s", line, err, out)
				}
			}
			sameSchedule(t, dir)
			nothingLeft(t, temp)
		})
	}
}

// sameSchedule checks that each call has the luck and the fault that it has under the other model,
// and that some call meets a fault.
func sameSchedule(t *testing.T, dir string) {
	t.Helper()
	trials := 0
	for line := range strings.Lines(read(t, filepath.Join(dir, "out.jsonl"))) {
		var a struct{ Trial, Level string }
		if err := json.Unmarshal([]byte(line), &a); err != nil {
			t.Fatal(err)
		}
		if a.Level == "" {
			t.Errorf("attempt %s is a fault", a.Trial)
		}
		trials++
	}
	counts, thrown := make(map[string]int), make(map[string]string)
	shared, faults := 0, 0
	for line := range strings.Lines(read(t, filepath.Join(dir, "calls.jsonl"))) {
		var c struct {
			Trial, Tool string
			Luck        *float64
			Fault       string `json:"tool_fault"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if c.Luck == nil {
			continue // a mistake spends no luck
		}
		if c.Fault != "" {
			faults++
		}
		counts[c.Trial+c.Tool]++
		key := fmt.Sprint(c.Tool, counts[c.Trial+c.Tool])
		got := fmt.Sprint(*c.Luck, c.Fault)
		if was, ok := thrown[key]; ok {
			shared++
			if was != got {
				t.Errorf("call %s has %s under one model and %s under the other", key, was, got)
			}
		}
		thrown[key] = got
	}
	if trials != 2 || shared == 0 || faults == 0 {
		t.Errorf("%d attempts with %d calls in common and %d faults", trials, shared, faults)
	}
}

// nothingLeft checks that no file is left in a directory, and no process that was given it.
func nothingLeft(t *testing.T, temp string) {
	t.Helper()
	left, err := os.ReadDir(temp)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the directory: %v, %v", left, err)
	}
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range processes {
		if env, err := os.ReadFile(path); err == nil && strings.Contains(string(env), temp) {
			t.Errorf("a process is left: %s", path)
		}
	}
}
