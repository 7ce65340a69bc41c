//go:build !race

package main

import (
	"strings"
	"testing"
)

// TestEnvironmentsPage writes the files of docs/environments.md and runs its commands, with a server
// in the place of the one in Python.
func TestEnvironmentsPage(t *testing.T) {
	t.Parallel()
	page := readDocument(t, "docs/environments.md")
	r := reader{dir: t.TempDir()}
	programIn(t, r.dir, "envserver")
	const python = `[python, -m, uvicorn, "till_env:app", --port, "{port}"]`
	for _, text := range blocks(page, "yaml") {
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "# "), "\n")
		file(t, r.dir, name, strings.Replace(text, python, `["{dir}/envserver", "{port}", ok]`, 1))
	}
	all := commands(page)[1:] // the first example needs a package
	for i, want := range []string{"openenv  sound", "20 of 20 trials done", "sim/optimal"} {
		if out := r.run(t, all[i]); !strings.Contains(out, want) {
			t.Errorf("%s does not print %q:\n%s", all[i], want, out)
		}
	}
}
