package bridge_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/agent/bridge"
)

// The program of an agent is only the program file and the files that its command names.
func TestDigestsOfPrograms(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("run", "x")
	write("agent.py", "one")
	write("beside.py", "one")
	write("rules", "one")
	read := func() map[string]string {
		return bridge.Agent{
			Command: []string{"./run", "agent.py", "--rules=rules", "--missing=gone", "word", "/"},
		}.At(home).Program()
	}
	first := read()
	names := slices.Sorted(maps.Keys(first))
	if diff := cmp.Diff([]string{"agent.py", "rules", "run"}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	write("beside.py", "two")
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("a file that the command does not name counts:\n%s", diff)
	}
	write("rules", "two")
	second := read()
	if second["rules"] == first["rules"] || second["agent.py"] != first["agent.py"] {
		t.Errorf("after a change of rules: %v, before: %v", second, first)
	}
	if p := (bridge.Agent{URL: "http://x"}).Program(); len(p) > 0 {
		t.Errorf("a service has the program %v", p)
	}
}
