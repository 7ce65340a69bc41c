package mcp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// strangers are servers from the registries, each with a call and a part of its result. NPM and PY
// stand for the directories of their programs.
var strangers = map[string]struct {
	command         []string
	set             map[string]string
	tool, arguments string
	want            string
}{
	"everything": {
		[]string{"NPM/mcp-server-everything"}, nil, "get-sum", `{"a": 2, "b": 3}`, "2 and 3 is 5",
	},
	"filesystem": {
		[]string{"NPM/mcp-server-filesystem", "{scratch}"},
		nil,
		"write_file", `{"path": "note.txt", "content": "hello"}`, "Successfully wrote",
	},
	"memory": {
		[]string{"NPM/mcp-server-memory"},
		map[string]string{"MEMORY_FILE_PATH": "{scratch}/memory.jsonl"},
		"create_entities",
		`{"entities": [{"name": "Ada", "entityType": "person", "observations": ["writes"]}]}`,
		`"entityType":"person"`,
	},
	"sequential-thinking": {
		[]string{"NPM/mcp-server-sequential-thinking"},
		nil, "sequentialthinking",
		`{"thought": "hm", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1}`,
		`"thoughtNumber":1`,
	},
	"git": {
		[]string{"PY/mcp-server-git"}, nil, "git_status", `{"repo_path": "/nowhere"}`, "",
	},
	"time": {
		[]string{"PY/mcp-server-time", "--local-timezone", "UTC"},
		nil,
		"convert_time",
		`{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}`, "21:00",
	},
	"sqlite": {
		[]string{"PY/mcp-server-sqlite", "--db-path", "{scratch}/test.db"},
		nil,
		"create_table", `{"query": "CREATE TABLE orders (id INTEGER)"}`, "created",
	},
}

// TestServersOfOthers checks that servers that we did not write start, list their tools, answer a
// call, and end.
func TestServersOfOthers(t *testing.T) {
	t.Parallel()
	home := os.Getenv("ASSAY_MCP_SERVERS")
	if home == "" {
		t.Skip("ASSAY_MCP_SERVERS does not name a directory with MCP servers; make test-all sets it")
	}
	for name, x := range strangers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &assay.MCPServer{Command: slices.Clone(x.command), Set: x.set}
			c.Command[0] = strings.NewReplacer(
				"NPM", filepath.Join(home, "node_modules", ".bin"),
				"PY", filepath.Join(home, "python", "bin"),
			).Replace(c.Command[0])
			s := open(t, c)
			t.Logf("tools: %s", strings.Join(s.Names(), ", "))
			out, err := s.Call(t.Context(), x.tool, json.RawMessage(x.arguments))
			if x.want == "" {
				if err == nil {
					t.Errorf("%s = %s, want an error", x.tool, out)
				}
				return
			}
			if err != nil || !strings.Contains(string(out), x.want) {
				t.Errorf("%s = %s, %v; want %s", x.tool, out, err, x.want)
			}
		})
	}
}
