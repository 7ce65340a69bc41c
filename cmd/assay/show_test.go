package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/session"
)

func TestShowPrintsVerdictWithoutTranscript(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	trial := string(attempts(t, path)[0].ID)
	must(t, nil, "delete", "--store", path, "--transcripts-only",
		"--model", attempts(t, path)[0].Model, "--yes")
	r := must(t, nil, "show", "--store", path, trial)
	if !strings.Contains(r.out, "there is no transcript") || !strings.Contains(r.out, "required ") {
		t.Errorf("show prints\n%s", r.out)
	}
	var shown struct {
		Attempt    assay.Attempt
		Transcript *assay.Transcript
	}
	decode(t, must(t, nil, "show", "--store", path, "--json", trial).out, &shown)
	if shown.Transcript != nil || string(shown.Attempt.ID) != trial {
		t.Errorf("show --json prints %+v", shown)
	}
	wantError(t, exitError, "there is no transcript", "show", "--store", path, "--prompt", trial)
}

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
		code := run(args, &process{in: strings.NewReader(""), out: w, err: &errs, name: "assay", env: env})
		return code, errs.String()
	}
	for _, args := range [][]string{
		{"status"}, {"report"}, {"export"}, {"plan"}, {"suites"}, {"library", "inspect"}, {"verify"},
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

	code, errs := to(&failingWriter{10, syscall.EPIPE}, "run", "--suite", "models", "--model", "sim/optimal",
		"--limit", "3", "--sim-latency", "0s", "--display", "none", "--store", path)
	if code != exitOK {
		t.Errorf("a complete run whose reader went away: exit code %d, %s", code, errs)
	}
	code, errs = to(&failingWriter{10, syscall.EPIPE}, "show", "--store", path, "zzzz")
	if code != exitUsage && code != exitError || errs == "" {
		t.Errorf("an error while the reader went away: exit code %d, %q", code, errs)
	}
	both := errors.Join(fmt.Errorf("x: %w", syscall.EPIPE), errors.New("imported before"))
	if brokenPipe(both) || !brokenPipe(errors.Join(fmt.Errorf("x: %w", syscall.EPIPE), syscall.EPIPE)) {
		t.Error("brokenPipe must be true for broken pipes only, and false if there is another error")
	}
	code, errs = to(&failingWriter{10, errors.New("x")}, "run", "--debug-trials", "ZZZ", "--store", path)
	if code != exitUsage || !strings.Contains(errs, "hex digits") {
		t.Errorf("--debug-trials ZZZ: exit code %d, %s", code, errs)
	}
}

// TestExperimentSettledByAnotherIsListed runs an experiment whose trials another one has settled.
// The store lists it under its own name, with one run.
func TestExperimentSettledByAnotherIsListed(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	second := file(t, t.TempDir(), "second.yaml", `
name: second
models: [sim/expert]
variants: [optimal]
reliabilities: [0.9]
tasks_per_type: 3
repeats: 2
tools: listed
`)
	for range 2 {
		if r := must(t, nil, "run", second, "--store", path, "--display", "none"); !strings.Contains(r.out, "nothing was run") {
			t.Errorf("a run without pending trials prints\n%s", r.out)
		}
	}
	var all []session.Status
	if err := json.Unmarshal([]byte(must(t, nil, "status", "--store", path, "--json", "second").out), &all); err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Runs != 1 || all[0].Done != all[0].Planned || all[0].Planned == 0 {
		t.Errorf("status: %+v", all)
	}
	must(t, nil, "report", "--store", path, "second")
}

// TestAttemptsOfOlderPlansAreMentioned removes a model from an experiment. Status and report
// mention the attempts of the earlier plan.
func TestAttemptsOfOlderPlansAreMentioned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := dir + "/r.db"
	for _, models := range []string{"sim/expert, sim/obedient", "sim/expert"} {
		must(t, nil, "run", file(t, dir, "e.yaml", `
name: edited
models: [`+models+`]
variants: [optimal]
reliabilities: [0.9]
tasks_per_type: 2
`), "--store", path, "--sim-latency", "0", "--display", "none")
	}
	gone := 0
	for _, a := range attempts(t, path) {
		if a.Model == "sim/obedient" {
			gone++
		}
	}
	if r := must(t, nil, "status", "--store", path); gone == 0 || !strings.Contains(r.out, counted(gone, "attempt")+" at trials that the latest plan of this name does not have") {
		t.Errorf("status does not mention the %d attempts of the earlier plan:\n%s", gone, r.out)
	}
	if r := must(t, nil, "report", "--store", path); !strings.Contains(r.out, "Results of other plans are not counted") {
		t.Errorf("the report does not mention the earlier plan:\n%s", r.out)
	}
}
