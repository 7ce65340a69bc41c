package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
)

// repository is the root of the module, from this package.
const repository = "../.."

func readDocument(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repository, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// blocks returns the code blocks of a language.
func blocks(text, language string) []string {
	var out []string
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		if m[1] == language {
			out = append(out, m[2])
		}
	}
	return out
}

// TestReadme does what the README says, in a fresh directory: it writes the
// YAML blocks to the files that they name and runs every line that calls assay.
func TestReadme(t *testing.T) {
	t.Parallel()
	readme := readDocument(t, "README.md")
	dir := t.TempDir()
	server := serve(t)
	for _, yaml := range blocks(readme, "yaml") {
		name, _, _ := strings.Cut(strings.TrimPrefix(yaml, "# "), "\n")
		file(t, dir, name, strings.ReplaceAll(yaml, "http://127.0.0.1:8080", server.url))
	}
	file(t, dir, "tasks.json", `[{"id": "t1", "task_type": "basic_task", "description": "Read the file and filter it.", "required_tools": ["a_reader", "a_filter"]}]`)
	file(t, dir, "registry.json", `{"a_reader": {"name": "a_reader", "description": "Reads.", "errors": [{"code": "TIMEOUT", "description": "late"}]},
		"a_filter": {"name": "a_filter", "description": "Filters.", "errors": [{"code": "TIMEOUT", "description": "late"}], "dependencies": ["a_reader"]}}`)
	ran, trial := 0, ""
	var stop func() // ends the run that commands are for
	for _, script := range blocks(readme, "sh") {
		for line := range strings.Lines(script) {
			line, _, _ = strings.Cut(line, "#")
			line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "go run ./cmd/"))
			line, _, _ = strings.Cut(line, " > ")
			args := strings.Fields(line)
			if len(args) == 0 || args[0] != "assay" || strings.HasPrefix(line, "assay sim serve") {
				continue
			}
			if args[1] == "show" { // the trial in the text is of another store
				args[2] = trial
			}
			if args[1] == "run" {
				args = append(args, "--sim-latency", "0")
			}
			switch {
			case args[1] == "ctl" && stop == nil:
				stop = longRun(t, dir)
			case args[1] != "ctl" && stop != nil:
				stop()
				stop = nil
			}
			cmd := program(t, args[1:]...)
			cmd.Dir = dir
			cmd.Env = readmeKeys()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
			if m := regexp.MustCompile(`assay show (\w{8})`).FindSubmatch(out); m != nil {
				trial = string(m[1])
			}
			if line == "assay run" {
				sameTable(t, readme, string(out))
			}
			ran++
		}
	}
	if ran < 9 {
		t.Errorf("the README has %d commands, want at least 9: are its code blocks read?", ran)
	}
}

func readmeKeys() []string {
	return append(os.Environ(), "GATEWAY_KEY_0=any", "GATEWAY_KEY_1=any")
}

// longRun starts a run that lasts until it is stopped, for commands to it.
func longRun(t *testing.T, dir string) (stop func()) {
	t.Helper()
	file(t, dir, "long.yaml", "name: long\nmodels: [my-model]\nproviders: providers.yaml\ntasks_per_type: all\nrepeats: 100\n")
	cmd := program(t, "run", "long.yaml", "--display", "none")
	cmd.Dir, cmd.Env = dir, readmeKeys()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	t.Cleanup(stop)
	waitFor(t, func() bool { return call(t, nil, "ctl", "status", "--store", filepath.Join(dir, "assay.db")).code == 0 })
	return stop
}

// sameTable: the quickstart's table in the README is what it gives.
func sameTable(t *testing.T, readme, out string) {
	t.Helper()
	rows := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "sim/") && (strings.Contains(line, "/25") || strings.Contains(line, "/23")) {
			rows++
			if !strings.Contains(readme, line) {
				t.Errorf("the README's table does not have the row %s", line)
			}
		}
	}
	if rows != 18 {
		t.Errorf("the quickstart's table has %d rows, want 18", rows)
	}
}

// TestDocumentedTestsExist: what docs/incidents.md promises is there.
func TestDocumentedTestsExist(t *testing.T) {
	t.Parallel()
	exists := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			exists[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w+`).FindAllString(readDocument(t, "docs/incidents.md"), -1)
	for _, name := range named {
		if !exists[name] {
			t.Errorf("docs/incidents.md names %s, which does not exist", name)
		}
	}
	for _, script := range regexp.MustCompile(`[a-z-]+\.txtar`).FindAllString(readDocument(t, "docs/incidents.md"), -1) {
		if _, err := os.Stat(filepath.Join("testdata", "script", script)); err != nil {
			t.Errorf("docs/incidents.md names a script that does not exist: %v", err)
		}
	}
	if len(named) < 40 {
		t.Errorf("docs/incidents.md names %d tests: is it read?", len(named))
	}
}

// TestDocumentedFaults: docs/files.md says of every kind of fault what it does.
func TestDocumentedFaults(t *testing.T) {
	t.Parallel()
	text := readDocument(t, "docs/files.md")
	for _, kind := range assay.FaultKinds {
		if !strings.Contains(text, "`"+string(kind)+"`") {
			t.Errorf("docs/files.md does not have the fault %s", kind)
		}
	}
}

// TestTemplatesAreInTheChangelog: a change of wording is a change for users.
func TestTemplatesAreInTheChangelog(t *testing.T) {
	t.Parallel()
	if !strings.Contains(readDocument(t, "CHANGELOG.md"), episode.TemplatesHash) {
		t.Errorf("CHANGELOG.md does not have the templates %s", episode.TemplatesHash)
	}
}

// TestHelpHasExamples: every command shows how it is used.
func TestHelpHasExamples(t *testing.T) {
	t.Parallel()
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if !strings.Contains(cmd.Example, cmd.CommandPath()) && !cmd.Hidden {
			t.Errorf("%s --help has no example of it:\n%s", cmd.CommandPath(), cmd.Example)
		}
		for _, c := range cmd.Commands() {
			look(c)
		}
	}
	look(newRoot(&process{}))
	if r := must(t, nil, "run", "--help"); !strings.Contains(r.out, "Examples:") || !strings.Contains(r.out, "Usage:") {
		t.Errorf("assay run --help:\n%s", r.out)
	}
	if r := call(t, nil, "exprot"); r.code != exitUsage || !strings.Contains(r.err, "export") {
		t.Errorf("assay exprot: %d %s", r.code, r.err)
	}
	if r := must(t, nil, "completion", "bash"); !strings.Contains(r.out, "complete") {
		t.Error("no shell completion")
	}
}
