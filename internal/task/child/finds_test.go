package child_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay/internal/task/child"
)

// What a command needs never shows a hidden folder or the user's home, whatever links lead there.
func TestFindsShowNothingHidden(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	at := func(name string) string { return filepath.Join(home, name) }
	for _, dir := range []string{"exp/tools", "exp/venv/bin", "node/node_modules/x/bin", "agent", ".local/bin"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{
		"agent.py", "exp/agent.py", "exp/tools/agent.py", "exp/venv/bin/python", "node/node_modules/x/bin/x",
		"agent/agent.py", ".local/bin/agent",
	} {
		if err := os.WriteFile(at(file), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"alias": "exp", "exp/here": ".", "exp/up": "..", "exp/x": "../agent/agent.py"} {
		if err := os.Symlink(target, at(link)); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"agent.py":                  "agent.py", // not the home
		"exp/agent.py":              "exp/agent.py",
		"exp/here/agent.py":         "exp/here/agent.py",
		"alias/agent.py":            "alias/agent.py",
		"exp/up/agent.py":           "exp/up/agent.py",
		"exp/tools/agent.py":        "exp/tools",
		"exp/venv/bin/python":       "exp/venv",
		"node/node_modules/x/bin/x": "node/node_modules",
		"agent/agent.py":            "agent",
		".local/bin/agent":          ".local/bin",
		"exp":                       "", // a folder that is hidden
		"exp/here":                  "",
		"exp/up":                    "",
	} {
		got := child.Finds([]string{"/bin/sh", at(command)}, []string{at("exp")})
		var all []string
		if want != "" {
			all = []string{at(want)}
		}
		if !slices.Equal(got, all) {
			t.Errorf("%s finds %v, want %v", command, got, all)
		}
	}
	if got, want := child.Finds([]string{at("exp/x")}, []string{at("exp")}), []string{at("agent"), at("exp/x")}; !slices.Equal(got, want) {
		t.Errorf("a link finds %v, want %v", got, want)
	}
}
