package bridge_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay/internal/agent/bridge"
)

// Paths in a command start at the folder of the file that names the agent, wherever that is.
func TestPathsInCommands(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, path := range []string{"agent.py", "conf/a.toml", "run/x"} {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	at := func(path string) string { return filepath.Join(home, path) }
	for _, tc := range []struct{ command, want []string }{
		{[]string{"python3", "agent.py", "-v"}, []string{"python3", at("agent.py"), "-v"}},
		{[]string{"./venv/bin/python", "../x"}, []string{at("venv/bin/python"), "../x"}},
		{[]string{"uv", "run", "agent.py"}, []string{"uv", "run", at("agent.py")}},
		{[]string{"npm", "--prefix", "./conf"}, []string{"npm", "--prefix", at("conf")}},
		{[]string{"x", "--conf=conf/a.toml", "a=agent.py"}, []string{"x", "--conf=" + at("conf/a.toml"), "a=agent.py"}},
		{[]string{"agent.py"}, []string{at("agent.py")}},
		{[]string{"/bin/sh", "/agent.py", "", "{prompt}"}, []string{"/bin/sh", "/agent.py", "", "{prompt}"}},
	} {
		a := bridge.Agent{Command: tc.command, Next: tc.command}.At(home)
		if !slices.Equal(a.Command, tc.want) || !slices.Equal(a.Next, tc.want) {
			t.Errorf("%q became %q and %q, want %q", tc.command, a.Command, a.Next, tc.want)
		}
		elsewhere := a.At("/elsewhere").Command
		for i, arg := range tc.want {
			if rel, ok := trimHome(arg, home); ok && elsewhere[i] != "/elsewhere/"+rel {
				t.Errorf("%q became %q on another machine", arg, elsewhere[i])
			}
		}
	}
}

// TestNextIsChecked looks for both programs of an agent, and hashes the files of both.
func TestNextIsChecked(t *testing.T) {
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "next.py"), []byte("again"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := bridge.Agent{Command: []string{"go"}, Next: []string{"go", "next.py"}}.At(home)
	if err := a.Check(); err != nil {
		t.Error(err)
	}
	if program := a.Program(); program["next.py"] == "" || program["go"] == "" {
		t.Errorf("the files are %v", program)
	}
	a.Next = []string{"no-such-program"}
	if err := a.Check(); err == nil {
		t.Error("a program that is missing is not noticed")
	}
	service := bridge.Agent{URL: "http://127.0.0.1/run", Next: []string{"http://127.0.0.1/next"}}
	if service = service.At(home); service.Check() != nil || len(service.Program()) > 0 ||
		service.Next[0] != "http://127.0.0.1/next" {
		t.Errorf("a service became %+v", service)
	}
}

func trimHome(arg, home string) (string, bool) {
	rel, err := filepath.Rel(home, arg)
	return rel, err == nil && filepath.IsAbs(arg) && filepath.IsLocal(rel)
}
