package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// childRole is the environment variable that makes this test binary act as a
// child process; see TestMain.
const childRole = "ASSAY_BENCH_CHILD"

// scratch is a directory that is removed after the tests.
var scratch string

func TestMain(m *testing.M) {
	switch os.Getenv(childRole) {
	case "bench":
		main()
	case "talk":
		fmt.Println("one")
		fmt.Fprintln(os.Stderr, "oh no")
		fmt.Print("two\nthree without a newline")
		time.Sleep(100 * time.Millisecond) // long enough to sample its memory
		os.Exit(3)
	case "hang":
		fmt.Println("started")
		time.Sleep(time.Hour)
	}

	var err error
	if scratch, err = os.MkdirTemp("", "assay-bench-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// assayPath returns the path of assay, which is built once.
var assayPath = sync.OnceValues(func() (string, error) {
	return build(context.Background(), scratch)
})

// program returns a command that runs bench with a built assay.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	assay, err := assayPath()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, append([]string{"--assay", assay}, args...)...)
	// The built-in task library is created in the cache.
	cache := "XDG_CACHE_HOME=" + filepath.Join(scratch, "cache")
	cmd.Env = append(os.Environ(), childRole+"=bench", cache)
	return cmd
}

// readReport runs bench with --json and returns its report and progress. Targets may be missed,
// because other tests take the machine.
func readReport(t *testing.T, cmd *exec.Cmd) (r report, progress string) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != exitMissed {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return r, stderr.String()
}

// TestQuickMeasurements runs small measurements and checks that all rows are
// there, that counts are plausible, and that no file is left.
func TestQuickMeasurements(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "--quick", "--only", "2a", "--json")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	report, progress := readReport(t, cmd)

	if !report.Quick || report.Program == "" || report.Cores < 1 {
		t.Errorf("report of %q, quick %v, %d cores", report.Program, report.Quick, report.Cores)
	}
	var got []string
	for _, r := range report.Rows {
		got = append(got, r.Number+" "+r.What)
		switch {
		case r.What == "trials not done":
			if r.Value != 0 {
				t.Errorf("%d trials not done", int(r.Value))
			}
		case r.Value <= 0 || r.Limit != nil && *r.Limit <= 0:
			t.Errorf("%s: %v, limit %v", r.What, r.Value, r.Limit)
		case r.Unit == share && r.Value > 1:
			t.Errorf("%s: a share of %v", r.What, r.Value)
		}
	}
	want := []string{"2a ideal ÷ wall time", "2a occupancy", "2a trials not done"}
	if !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	if text := "2a  5,000 calls"; !strings.Contains(progress, text) {
		t.Errorf("progress lacks %q:\n%s", text, progress)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

// TestQuickLimitsAndKills checks that traffic is counted lane by lane, and that
// a killed run loses no results.
func TestQuickLimitsAndKills(t *testing.T) {
	t.Parallel()
	report, _ := readReport(t, program(t, "--quick", "--only", "2d,3,5", "--json"))
	for _, r := range report.Rows {
		switch {
		case r.Number == "5" && r.Value != 0:
			t.Errorf("%s: %v", r.What, r.Value)
		case r.Number == "3" && r.Value <= 0:
			t.Errorf("%s: %v", r.What, r.Value)
		// Tokens in flight are estimates, so the share can exceed 1 a little.
		case strings.HasPrefix(r.What, "used") && !(r.Value > 0 && r.Value < 1.1):
			t.Errorf("%s: %v", r.What, r.Value)
		}
	}
	if len(report.Rows) != 9 {
		t.Errorf("%d rows, want 9", len(report.Rows))
	}
}

// TestRefusedRunIsReported checks that a run that ends before its first request is not waited for.
func TestRefusedRunIsReported(t *testing.T) {
	t.Parallel()
	assay, err := assayPath()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{assay: assay, dir: t.TempDir()}
	s := scenario{model: "sim/mute", trials: 5, text: "limits: {turns: 0}", stop: time.Hour}
	_, err = r.runScenario(t.Context(), s)
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "turns is 0") {
		t.Errorf("error %v, want that of the run", err)
	}
}

func TestInterruptLeavesNoFilesOrProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := program(t, "--only", "2c")
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
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
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline") // empty on systems other than Linux
	for _, p := range processes {
		if text, _ := os.ReadFile(p); strings.Contains(string(text), dir) {
			t.Errorf("still running: %q", text)
		}
	}
}

func TestOnlySelectsByPrefix(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ only, want string }{
		{"", "2a 2c 2d 2e 2f 2h 2i 2j 2k 3 5 6 8a 8b 8c"},
		{"2", "2a 2c 2d 2e 2f 2h 2i 2j 2k"},
		{"5,2c", "2c 5"},
	} {
		t.Run("only "+tc.only, func(t *testing.T) {
			t.Parallel()
			chosen, err := choose(tc.only)
			var ids []string
			for _, m := range chosen {
				ids = append(ids, m.id)
			}
			if got := strings.Join(ids, " "); err != nil || got != tc.want {
				t.Errorf("choose() = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestWrongArguments(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, arg, want string
	}{
		{"unknown letter", "--only=2z,3", `unknown measurement "2z"`},
		{"unknown digit", "--only=0,3", `unknown measurement "0"`},
		{"empty prefix", "--only=,3", `unknown measurement ""`},
		{"unknown flag", "--slow", "not defined: -slow"},
		{"argument", "2a", `unexpected argument "2a"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{tc.arg}, &out, &errs)
			if code != exitUsage || !strings.Contains(errs.String(), tc.want) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, exitUsage, tc.want, &errs)
			}
		})
	}
}

func TestHelpShowsExamplesAndMeasurements(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"--help"}, &out, &errs); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"go run ./tools/bench --only 2a,2h", "  2c   10,000 episodes"} {
		if !strings.Contains(errs.String(), want) {
			t.Errorf("help lacks %q:\n%s", want, &errs)
		}
	}
}
