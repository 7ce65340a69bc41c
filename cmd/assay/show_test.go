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

// TestShowWithoutTranscript: the verdict is shown although the transcript was deleted.
func TestShowWithoutTranscript(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	trial := string(attempts(t, path)[0].ID)
	must(t, nil, "delete", "--store", path, "--transcripts-only", "--model", attempts(t, path)[0].Model, "--yes")
	r := must(t, nil, "show", "--store", path, trial)
	if !strings.Contains(r.out, "there is no transcript") || !strings.Contains(r.out, "required ") {
		t.Errorf("show of a trial without its transcript:\n%s", r.out)
	}
	var shown struct {
		Attempt    assay.Attempt
		Transcript *assay.Transcript
	}
	if err := json.Unmarshal([]byte(must(t, nil, "show", "--store", path, "--json", trial).out), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.Transcript != nil || string(shown.Attempt.ID) != trial {
		t.Errorf("show --json: %+v", shown)
	}
	if r := call(t, nil, "show", "--store", path, "--prompt", trial); r.code != exitError || !strings.Contains(r.err, "there is no transcript") {
		t.Errorf("show --prompt: %d %s", r.code, r.err)
	}
}

// refusing fails after some bytes.
type refusing struct {
	left int
	err  error
}

func (w *refusing) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, w.err
	}
	return len(b), nil
}

// TestOutputThatEnds: who reads only the beginning has what they want, and a full disk
// is an error, whatever the command. Neither changes how a run ended.
func TestOutputThatEnds(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	to := func(w io.Writer, args ...string) (int, string) {
		var errs bytes.Buffer
		code := run(args, &process{in: strings.NewReader(""), out: w, err: &errs, name: "assay", env: func(string) (string, bool) { return "", false }})
		return code, errs.String()
	}
	for _, args := range [][]string{{"status"}, {"report"}, {"export"}, {"plan"}, {"suites"}, {"library", "inspect"}, {"verify"}} {
		switch args[0] {
		case "suites", "library":
		default:
			args = append(args, "--store", path)
		}
		if code, said := to(&refusing{10, syscall.EPIPE}, args...); code != exitOK || strings.Contains(said, "pipe") {
			t.Errorf("%v, whose reader went away: %d %s", args, code, said)
		}
		if code, said := to(&refusing{10, syscall.ENOSPC}, args...); code != exitError || !strings.Contains(said, syscall.ENOSPC.Error()) {
			t.Errorf("%v on a full disk: %d %s", args, code, said)
		}
	}
	if code, said := to(&refusing{10, syscall.EPIPE}, "run", "--suite", "models", "--model", "sim/optimal", "--limit", "3", "--sim-latency", "0s", "--display", "none", "--store", path); code != exitOK {
		t.Errorf("a complete run whose reader went away: %d %s", code, said)
	}
	if code, said := to(&refusing{10, syscall.EPIPE}, "show", "--store", path, "zzzz"); code != exitUsage && code != exitError || said == "" {
		t.Errorf("an error beside a reader who went away: %d %s", code, said)
	}
	both := errors.Join(fmt.Errorf("x: %w", syscall.EPIPE), errors.New("imported before"))
	if brokenPipe(both) || !brokenPipe(errors.Join(fmt.Errorf("x: %w", syscall.EPIPE), syscall.EPIPE)) {
		t.Error("an error beside that of a broken pipe is overlooked, or that alone is not")
	}
	if code, said := to(&refusing{10, errors.New("x")}, "run", "--debug-trials", "ZZZ", "--store", path); code != exitUsage || !strings.Contains(said, "hex digits") {
		t.Errorf("--debug-trials ZZZ: %d %s", code, said)
	}
}

// TestAllSettledByOthers: an experiment whose trials another one has settled is known by
// its own name, once.
func TestAllSettledByOthers(t *testing.T) {
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
			t.Errorf("run of what is done:\n%s", r.out)
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

// TestOtherPlans: what the latest plan of a name does not have is said to be there.
func TestOtherPlans(t *testing.T) {
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
		t.Errorf("status of an edited experiment with %d other attempts:\n%s", gone, r.out)
	}
	if r := must(t, nil, "report", "--store", path); !strings.Contains(r.out, "Results of other plans are not counted") {
		t.Errorf("report of an edited experiment:\n%s", r.out)
	}
}
