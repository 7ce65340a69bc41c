package main

import (
	"bufio"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// TestKilledAtAnyMoment kills a run of 1,350 trials ten times with SIGKILL, at random moments, and
// restarts it each time. The store never loses a trial that was shown as done, and in the end
// every trial is done exactly once.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	const kills, planned = 10, 1350
	dir := t.TempDir()
	experiment := file(t, dir, "killed.yaml", `
models: [sim/listed, sim/optimal, sim/obedient]
reliabilities: [0.9, 0.8, 0.7, 0.6, 0.5]
tasks_per_type: 6
`)
	db := filepath.Join(dir, "killed.db")
	shown := 0
	for kill := range kills {
		delay := time.Duration(100+rand.IntN(1300)) * time.Millisecond
		shown = max(shown, killAfter(t, delay,
			"run", experiment, "--store", db, "--display", "json", "--sim-latency", "70ms"))
		if shown == 0 {
			continue // the first kill may come before there is a store
		}
		if done := settled(t, db); done < shown {
			t.Fatalf("kill %d after %v: the store has %d outcomes, but %d were shown as done",
				kill+1, delay, done, shown)
		}
	}
	if shown == planned {
		t.Fatal("the run was over before it was killed ten times: the test proves nothing")
	}

	mustProgram(t, "run", experiment, "--store", db, "--display", "none", "--sim-latency", "0")
	if done := settled(t, db); done != planned {
		t.Errorf("%d trials done in the end, want %d", done, planned)
	}
	again := must(t, nil, "run", experiment, "--store", db, "--display", "json")
	done := lastEvent(t, again.out)
	if done["event"] != "done" || done["requests"] != 0.0 || done["pending"] != 0.0 {
		t.Errorf("another run did something: %v", done)
	}
	if first, _, _ := strings.Cut(again.out, "\n"); !strings.Contains(first, `"event":"start"`) {
		t.Errorf("the first line of another run is not its start:\n%s", again.out)
	}
}

// startQuickstart starts a quickstart as a separate process and returns its output.
func startQuickstart(t *testing.T, db, latency string) (*exec.Cmd, io.ReadCloser) {
	t.Helper()
	cmd := program(t, "run", "--store", db, "--display", "json", "--sim-latency", latency)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// A run goes on to the end if the reader of its output disappears.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "assay.db")
	cmd, out := startQuickstart(t, db, "5ms")
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the run ended with %v", err)
	}
	if done := settled(t, db); done != quickstartTrials {
		t.Errorf("%d trials done, want %d", done, quickstartTrials)
	}
}

// The first signal lets episodes in flight finish. The exit code reports the interruption, and the
// same command continues the run.
func TestSoftStopBySignal(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "assay.db")
	cmd, out := startQuickstart(t, db, "100ms")
	var last struct {
		Event                 string
		Done, Pending, Parked int
		Stopped               bool
	}
	stopped := false
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_ = json.Unmarshal(lines.Bytes(), &last)
		if last.Event == "progress" && !stopped {
			stopped = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d, want %d", code, exitInterrupted)
	}
	inStore := settled(t, db)
	if last.Event != "done" || !last.Stopped || last.Pending == 0 || last.Done != inStore ||
		last.Done+last.Pending+last.Parked != quickstartTrials {
		t.Errorf("last event %+v, %d done in the store", last, inStore)
	}

	mustProgram(t, "run", "--store", db, "--display", "none", "--sim-latency", "0")
	if done := settled(t, db); done != quickstartTrials {
		t.Errorf("%d trials done in the end, want %d", done, quickstartTrials)
	}
}

// killAfter starts the program and kills it after a delay. It returns the largest number of trials
// that the program showed as done.
func killAfter(t *testing.T, delay time.Duration, args ...string) (shown int) {
	t.Helper()
	cmd := program(t, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(delay, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()

	for lines := bufio.NewScanner(out); lines.Scan(); {
		var event struct {
			Done int
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // the kill cut the line off, or it is the start, whose models are names
		}
		shown = max(shown, event.Done)
	}
	_ = cmd.Wait()
	return shown
}

// settled counts the outcomes in a store and checks that each is of a different trial. It returns 0
// if the store does not exist yet.
func settled(t *testing.T, db string) int {
	t.Helper()
	if matches, _ := filepath.Glob(db); len(matches) == 0 {
		return 0
	}
	return len(settledOnce(t, attempts(t, db)))
}

// quickstartTrials is the number of trials in the quickstart.
const quickstartTrials = 588

// settledOnce returns the outcomes of all trials that are done, and checks that each trial has at
// most one.
func settledOnce(t *testing.T, all []assay.Attempt) map[assay.TrialID]assay.Outcome {
	t.Helper()
	done := make(map[assay.TrialID]assay.Outcome)
	for _, a := range all {
		if !a.Settles() {
			continue
		}
		if _, dup := done[a.ID]; dup {
			t.Errorf("trial %s is settled twice", a.ID)
		}
		done[a.ID] = a.Outcome
	}
	return done
}
