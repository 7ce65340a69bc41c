package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/bench"
)

// TestBench measures a few numbers in small, with the built program: they are
// all there, what has to be counted is counted, and no file is left.
func TestBench(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "bench", "--quick", "--only", "1,2a,4", "--json")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	var report bench.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !report.Quick || report.Program == "" || report.Cores < 1 {
		t.Errorf("report of %q, quick %v, %d cores", report.Program, report.Quick, report.Cores)
	}
	var got []string
	for _, r := range report.Rows {
		got = append(got, r.Number+" "+r.What)
		switch {
		case r.What == "trials not done":
			if r.Value != 0 || !r.Aim.Reached {
				t.Errorf("%d trials not done", int(r.Value))
			}
		case r.Value <= 0 || r.Limit != nil && *r.Limit <= 0:
			t.Errorf("%s: %v, limit %v", r.What, r.Value, r.Limit)
		case r.Unit == bench.Share && r.Number != "1" && r.Value > 1:
			t.Errorf("%s: %v is more than all", r.What, r.Value)
		}
	}
	want := []string{
		"1 calls a second", "1 of the bare client's calls a second", "1 CPU a call",
		"2a ideal of the wall time", "2a occupancy", "2a trials not done",
		"4 a row on disk", "4 a transcript on disk", "4 of the transcript's JSON",
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	for _, text := range []string{"1   calls a second", "2a  5,000 calls", "4   bytes on disk"} {
		if !strings.Contains(errs.String(), text) {
			t.Errorf("progress does not have %q:\n%s", text, &errs)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

// TestBenchOfLimits: what a run sends and what the server lets through are
// counted lane by lane, and a run that is killed loses nothing.
func TestBenchOfLimits(t *testing.T) {
	t.Parallel()
	out, err := program(t, "bench", "--quick", "--only", "2d,3,5", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var report bench.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Rows {
		switch {
		case r.Number == "5" && r.Value != 0:
			t.Errorf("%s: %v", r.What, r.Value)
		case r.Number == "3" && r.Value <= 0:
			t.Errorf("%s: %v", r.What, r.Value)
		case strings.HasPrefix(r.What, "used of") && !(r.Value > 0 && r.Value < 1.1): // tokens in flight are estimates
			t.Errorf("%s: %v", r.What, r.Value)
		}
	}
	if len(report.Rows) != 9 {
		t.Errorf("%d rows, want 9", len(report.Rows))
	}
}

// TestBenchInterrupted: neither files nor processes are left.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "bench", "--only", "2c")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for { // until the run has a store
		if files, _ := filepath.Glob(filepath.Join(dir, "*", "*.db")); len(files) > 0 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline") // none elsewhere than on Linux
	for _, p := range processes {
		if text, _ := os.ReadFile(p); strings.Contains(string(text), dir) {
			t.Errorf("still runs: %q", text)
		}
	}
}

func TestBenchOnly(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		only []string
		want string
	}{
		{nil, "1 2a 2b 2c 2d 2e 2f 3 4 5"},
		{[]string{"2"}, "2a 2b 2c 2d 2e 2f"},
		{[]string{"5", "2c"}, "2c 5"},
	} {
		chosen, err := benchFlags{only: tc.only}.chosen()
		var ids []string
		for _, n := range chosen {
			ids = append(ids, n.id)
		}
		if got := strings.Join(ids, " "); err != nil || got != tc.want {
			t.Errorf("--only %v: %s, %v, want %s", tc.only, got, err, tc.want)
		}
	}
	for _, only := range []string{"2g", "9", ""} {
		if r := call(t, nil, "bench", "--only="+only+",1"); r.code != exitUsage || !strings.Contains(r.err, "no such number") {
			t.Errorf("--only %q: exit code %d\n%s", only, r.code, r.err)
		}
	}
}
