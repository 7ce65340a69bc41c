//go:build !race

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay"
)

// A failingWriter returns an error after a number of bytes.
type failingWriter struct {
	left int
	err  error
}

func (w *failingWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, w.err
	}
	return len(b), nil
}

// TestOutputErrors checks that a command succeeds if the reader of its output goes away, and fails
// if the disk is full. Neither changes the exit code of a run.
func TestOutputErrors(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	to := func(w io.Writer, args ...string) (int, string) {
		var errs bytes.Buffer
		env := func(string) (string, bool) { return "", false }
		code := run(args,
			&process{in: strings.NewReader(""), out: w, err: &errs, name: "assay", env: env})
		return code, errs.String()
	}
	for _, args := range [][]string{
		{"status"},
		{"report"},
		{"export"},
		{"plan"},
		{"library", "suites"},
		{"library", "inspect"},
		{"store", "verify"},
	} {
		switch args[0] {
		case "suites", "library":
		default:
			args = append(args, "--store", path)
		}
		code, errs := to(&failingWriter{10, syscall.EPIPE}, args...)
		if code != exitOK || strings.Contains(errs, "pipe") {
			t.Errorf("%v, whose reader went away: exit code %d, %s", args, code, errs)
		}
		code, errs = to(&failingWriter{10, syscall.ENOSPC}, args...)
		if code != exitError || !strings.Contains(errs, syscall.ENOSPC.Error()) {
			t.Errorf("%v on a full disk: exit code %d, %s", args, code, errs)
		}
	}

	// One table goes to a file, and the reader of the other goes away.
	out := filepath.Join(t.TempDir(), "a.jsonl")
	code, errs := to(&failingWriter{10, syscall.EPIPE}, "export", "--store", path, "-o", out,
		"--calls", "-")
	if _, err := os.Stat(out); code != exitError || !strings.Contains(errs, "nothing was written") ||
		err == nil {
		t.Errorf("a lost table: exit code %d, %s", code, errs)
	}
	code, errs = to(&failingWriter{10, syscall.EPIPE}, "run", "--suite", "models", "--model",
		"sim/optimal",
		"--limit", "3", "--sim-latency", "0s", "--display", "none", "--store", path)
	if code != exitOK {
		t.Errorf("a complete run whose reader went away: exit code %d, %s", code, errs)
	}
	code, errs = to(&failingWriter{10, syscall.EPIPE}, "show", "--store", path, "zzzz")
	if code != exitUsage && code != exitError || errs == "" {
		t.Errorf("an error while the reader went away: exit code %d, %q", code, errs)
	}
	both := errors.Join(fmt.Errorf("x: %w", syscall.EPIPE), errors.New("imported before"))
	if brokenPipe(both) ||
		!brokenPipe(errors.Join(fmt.Errorf("x: %w", syscall.EPIPE), syscall.EPIPE)) {
		t.Error("brokenPipe is true although there is another error, or false without one")
	}
	code, errs = to(&failingWriter{10, errors.New("x")}, "run", "--debug-trials", "ZZZ", "--store",
		path)
	if code != exitUsage || !strings.Contains(errs, "hex digits") {
		t.Errorf("--debug-trials ZZZ: exit code %d, %s", code, errs)
	}
}

// TestShowPrintsCallsAndPrompt checks the output for trials with the protocol tags: the luck of all
// calls, the mistakes, the verdict, and the prompt.
func TestShowPrintsCallsAndPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tags.db")
	experiment := file(t, dir, "tags.yaml", `
models: [sim/obedient]
variants: [flawed_parameter_error]
severities: [light]
reliabilities: [0.6]
protocol: tags
tasks_per_type: 4
`)
	mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	worked := regexp.MustCompile(`(?m)^    \((\w+): chance 0\.600, luck 0\.\d{3}: worked\)$`)
	unlucky := regexp.MustCompile(
		`(?m)^    \((\w+): chance 0\.600, luck [01]\.\d{3}: failed, [A-Z_]+\)$`)
	mistaken := regexp.MustCompile(`(?m)^    \((\w+): a mistake, INVALID_INPUT\)$`)
	n := make(map[string]int)
	for _, a := range attempts(t, path) {
		text := must(t, nil, "show", string(a.ID), "--store", path).out
		found := map[string]int{
			"worked":  len(worked.FindAllString(text, -1)),
			"failed":  len(unlucky.FindAllString(text, -1)),
			"mistake": len(mistaken.FindAllString(text, -1)),
		}
		want := map[string]int{
			"worked": len(a.ExecutedTools), "failed": a.Failures,
			"mistake": a.Mistakes,
		}
		for what, count := range want {
			if found[what] != count {
				t.Errorf("trial %s: show prints %d calls as %s, want %d\n%s", a.ID, found[what],
					what, count, text)
			}
			n[what] += count
		}
		for _, want := range []string{
			"flawed_parameter_error (light)", "protocol tags", "\n  <tool_call>",
			fmt.Sprintf("\n%s, ended by %s after %d turns and %d calls\n", a.Level, a.Ended,
				a.Outcome.Turns, a.ToolCalls),
			"\n  calls: " + assay.Counted(a.Mistakes, "mistake") + fmt.Sprintf(", %d failed by chance", a.Failures),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the text of trial %s lacks %q:\n%s", a.ID, want, text)
			}
		}
		prompt := must(t, nil, "show", string(a.ID), "--store", path, "--prompt").out
		system, user, ok := strings.Cut(strings.TrimPrefix(prompt, "── system ──\n"),
			"\n\n── user ──\n")
		replied := strings.Contains(prompt, "assistant") || worked.MatchString(prompt)
		system = strings.ReplaceAll(system, "\n", "\n  ") // as show indents it
		if !ok || user == "" || replied || !strings.Contains(text, system) {
			t.Errorf("trial %s does not begin with its prompt:\n%s", a.ID, prompt)
		}
	}
	for what, count := range n {
		if count == 0 {
			t.Errorf("no call of the experiment is shown as %s", what)
		}
	}
}
