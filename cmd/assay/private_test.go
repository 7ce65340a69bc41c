//go:build !race

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// A privateStore is a store with results at the tasks of a private library.
type privateStore struct {
	path, file string
	key        string
	// texts are the tools' names and the tasks' descriptions.
	texts []string
}

func newPrivateStore(t *testing.T) privateStore {
	t.Helper()
	dir := t.TempDir()
	s := privateStore{path: filepath.Join(dir, "results.db"), file: filepath.Join(dir, "private.db")}
	must(t, nil, "library", "generate", "--private", "--tasks-per-type", "2", "-o", s.file)
	experiment := file(t, dir, "secret.yaml", `
name: secret
library: private.db
models: [sim/expert, sim/obedient]
variants: [optimal, flawed_missing_step]
difficulties: [easy]
reliabilities: [0.9]
tasks_per_type: 2
`)
	must(t, nil, "run", experiment, "--store", s.path, "--sim-latency", "0", "--display", "plain")

	lib, err := library.Open(t.Context(), s.file)
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	s.key = lib.Meta().Key
	s.texts = append(s.texts, lib.Catalog().Names()...)
	for _, typ := range assay.TaskTypes {
		refs, err := lib.Refs(t.Context(), typ, "easy")
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			task, err := lib.Task(t.Context(), ref.ID, "easy")
			if err != nil {
				t.Fatal(err)
			}
			s.texts = append(s.texts, task.Description)
		}
	}
	return s
}

// quoted returns the texts of the library that an output has.
func (s *privateStore) quoted(output string) (found []string) {
	for _, text := range append(s.texts, s.key) {
		if strings.Contains(output, text) {
			found = append(found, text)
		}
	}
	return found
}

// TestPrivateTasksStayPrivate checks that nothing that people read about a private library quotes
// it, unless they ask for it.
func TestPrivateTasksStayPrivate(t *testing.T) {
	t.Parallel()
	s := newPrivateStore(t)
	if s.key == "" || len(s.texts) < 60 {
		t.Fatalf("the library has the key %q and %d texts", s.key, len(s.texts))
	}
	trial := string(attempts(t, s.path)[0].ID)
	logs, records, calls := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "calls.jsonl")
	for _, test := range []struct {
		name     string
		args     []string
		reveals  bool // --reveal shows texts
		output   string
		required string // shown instead
	}{
		{"show", []string{"show", trial}, true, "", "tool-"},
		{"show as JSON", []string{"show", "--json", trial}, true, "", `"tool":"tool-`},
		{"prompt", []string{"show", "--prompt", trial}, true, "", "[private]"},
		{"failures", []string{"failures", "--details"}, true, "", "[private]"},
		{"failures as JSON", []string{"failures", "--json"}, true, "", "[private]"},
		{"report", []string{"report", "--details"}, false, "", "sim/obedient"},
		{"report as JSON", []string{"report", "--json"}, false, "", "sim/obedient"},
		{
			"report with transcripts",
			[]string{"report", "--format", "html", "--transcripts", "3"},
			true, "", "[private]",
		},
		{
			"comparison", []string{
				"compare", "sim/expert", "sim/obedient", "--format", "html", "--transcripts", "3",
			}, true, "", "[private]",
		},
		{"export", []string{"export"}, true, "", `"required_tools":["tool-`},
		{
			"2025", []string{
				"export", "--format", "v3", "--where", "model=sim/obedient",
				"--where", "variant=optimal",
			}, false, "", "simple",
		},
		{
			"calls",
			[]string{"export", "--calls", calls, "-o", calls + ".jsonl"},
			true, calls, `"tool":"tool-`,
		},
		{"Inspect", []string{"export", "--format", "inspect", "-o", logs}, true, logs, "[private]"},
		{"Every Eval Ever", []string{"export", "--format", "eee", "-o", records}, true, records, "[private]"},
		{"status", []string{"status"}, false, "", "secret"},
		{"plan", []string{"status", "--json"}, false, "", "secret"},
	} {
		read := func(more ...string) string {
			r := must(t, nil, append(append(test.args, "--store", s.path), more...)...)
			return r.out + r.err + textIn(t, test.output)
		}
		out := read()
		if !strings.Contains(out, test.required) {
			t.Errorf("%s lacks %q", test.name, test.required)
		}
		if found := s.quoted(out); len(found) > 0 {
			t.Errorf("%s quotes %q", test.name, found)
		}
		if test.reveals && len(s.quoted(read("--reveal"))) == 0 {
			t.Errorf("%s --reveal quotes nothing", test.name)
		}
	}
	for _, args := range [][]string{
		{"library", "inspect", s.file, "--json"}, {"library", "commit", s.file},
	} {
		if out := must(t, nil, args...).out; strings.Contains(out, s.key) {
			t.Errorf("%s prints the key", args)
		}
	}
}
