package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/task/library"
)

// binary builds the program once for all tests that kill it or run for long. It has no race
// detector.
var binary = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "program")
	build := exec.Command("go", "build", "-o", path, ".")
	build.Env = environment
	out, err := build.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// scratch is a directory that is removed after all tests.
var scratch string

// environment is the environment of builds: the one that the tests began with, which has the user's
// build cache, without C, so that `go build` has compiled all packages before.
var environment = append(os.Environ(), "CGO_ENABLED=0")

// TestMain runs the tests, or the program that stories run.
func TestMain(m *testing.M) { testscript.Main(tests{m}, map[string]func(){"assay": main}) }

// tests run with a scratch directory, and with the programs of stories in $PATH.
type tests struct{ *testing.M }

func (t tests) Run() int {
	var err error
	if scratch, err = os.MkdirTemp("", "assay-test"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(scratch)
	// All tests share a cache of the built-in library that is not the user's.
	os.Setenv("XDG_CACHE_HOME", scratch)
	if err := buildPrograms(filepath.Join(scratch, "bin")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return t.M.Run()
}

// buildPrograms builds the programs that stories start, and adds their directory to $PATH.
func buildPrograms(bin string) error {
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "agent"), "./testdata/programs")
	build.Env = environment
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	acp := filepath.Join(os.Getenv("ASSAY_AGENTS"), "acp", "node_modules", ".bin") // of agents, if they are installed
	os.Setenv("PATH", strings.Join([]string{bin, acp, os.Getenv("PATH")}, string(os.PathListSeparator)))
	return errors.Join(os.Symlink("agent", filepath.Join(bin, "envserver")),
		os.Symlink("agent", filepath.Join(bin, "toolserver")))
}

// programIn makes one of the programs that stories start in a directory.
func programIn(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Symlink(filepath.Join(scratch, "bin", name), filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// program returns a command that runs the built program.
func program(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), path, args...)
}

// mustProgram runs the built program and fails the test if it fails.
func mustProgram(t testing.TB, args ...string) {
	t.Helper()
	if out, err := program(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("assay %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// A result is the outcome of a command line.
type result struct {
	code     int
	out, err string
}

// call runs a command line in this process.
func call(t testing.TB, env map[string]string, args ...string) result {
	t.Helper()
	return callAs(t, "assay", env, args...)
}

// callAs runs a command line in this process, which was started by a command.
func callAs(t testing.TB, name string, env map[string]string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(args, &process{
		in: strings.NewReader(""), out: &out, err: &errs, name: name,
		env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
	})
	return result{code, out.String(), errs.String()}
}

// must runs a command line and fails the test if it fails.
func must(t testing.TB, env map[string]string, args ...string) result {
	t.Helper()
	r := call(t, env, args...)
	if r.code != 0 {
		t.Fatalf("assay %s: exit code %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r
}

// file writes a file into dir and returns its path.
func file(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// exportedBytes returns the export of a store. The built program writes it, because reading a
// store is slow under the race detector.
func exportedBytes(t testing.TB, store string) []byte {
	t.Helper()
	out, err := program(t, "export", "--store", store).Output()
	if err != nil {
		t.Fatalf("assay export: %v", err)
	}
	return out
}

// attempts returns the attempts in the export of a store.
func attempts(t testing.TB, store string) []assay.Attempt {
	t.Helper()
	var all []assay.Attempt
	for a, err := range export.Read(bytes.NewReader(exportedBytes(t, store))) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// lastEvent returns the last JSON line of a run with --display json.
func lastEvent(t testing.TB, out string) map[string]any {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var event map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &event); err != nil {
		t.Fatalf("last line %q: %v", lines[len(lines)-1], err)
	}
	return event
}

// pilotLibrary imports the library of the 2025 original, or skips the test without its data.
func pilotLibrary(t testing.TB, dir string) string {
	t.Helper()
	data := filepath.Join("..", "..", "..", "shared", "data", "pilot")
	if _, err := os.Stat(filepath.Join(data, "task_library_630.json")); err != nil {
		t.Skipf("the data of the original is missing: %v", err)
	}
	out := filepath.Join(dir, "pilot.db")
	must(t, nil, "library", "import", filepath.Join(data, "task_library_630.json"),
		"--tools", filepath.Join(data, "tool_registry.json"), "-o", out)
	return out
}

func builtinLibrary(t testing.TB) *library.Library {
	t.Helper()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	return lib
}

// textIn returns the text of a file, or of all files of a directory, whose logs it unpacks.
func textIn(t *testing.T, path string) string {
	t.Helper()
	if path == "" {
		return ""
	}
	var all strings.Builder
	err := filepath.WalkDir(path, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if filepath.Ext(path) == ".eval" {
			return unzip(&all, path)
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// smallStore runs the experiment once for all tests.
var smallStore = sync.OnceValues(func() ([]byte, error) {
	experiment, path := filepath.Join(scratch, "small.yaml"), filepath.Join(scratch, "small.db")
	if err := os.WriteFile(experiment, []byte(`
name: small
models: [sim/expert, sim/obedient]
variants: [baseline, optimal, flawed_missing_step]
reliabilities: [0.9, 0.6]
tasks_per_type: 3
repeats: 2
tools: listed
`), 0o600); err != nil {
		return nil, err
	}
	program, err := binary()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command(program, "run", experiment, "--store", path, "--sim-latency", "0",
		"--display", "none").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	return os.ReadFile(path)
})

// smallRun returns a copy of the store of an experiment with two models, three variants, two
// reliabilities and repeats.
func smallRun(t testing.TB) string {
	t.Helper()
	small, err := smallStore()
	if err != nil {
		t.Fatal(err)
	}
	return file(t, t.TempDir(), "r.db", string(small))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func decode(t *testing.T, text string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), to); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

func unzip(to io.Writer, path string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		if _, err := io.Copy(to, r); err != nil {
			return err
		}
	}
	return nil
}
