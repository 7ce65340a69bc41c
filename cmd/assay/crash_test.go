package main

import (
	"bufio"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// TestKilledAtAnyMoment kills a run of 2,250 trials ten times with SIGKILL, at
// random moments, and starts it again each time. Nothing that was shown as
// done is lost, and in the end every trial is done exactly once.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	const kills, planned = 10, 2250
	dir := t.TempDir()
	experiment := file(t, dir, "killed.yaml", `
models: [sim/listed, sim/optimal, sim/obedient]
reliabilities: [0.9, 0.8, 0.7, 0.6, 0.5]
tasks_per_type: 10
`)
	db := filepath.Join(dir, "killed.db")
	shown := 0
	for kill := range kills {
		delay := time.Duration(100+rand.IntN(2000)) * time.Millisecond
		shown = max(shown, killAfter(t, delay, "run", experiment, "--store", db, "--display", "json", "--sim-latency", "70ms"))
		if done := settled(t, db); done < shown {
			t.Fatalf("after kill %d at %v the store has %d outcomes, but %d were shown as done", kill+1, delay, done, shown)
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
	if done := lastEvent(t, again.out); done["event"] != "done" || done["requests"] != 0.0 || done["pending"] != 0.0 {
		t.Errorf("a further run did something: %v", done)
	}
	if !strings.Contains(strings.SplitN(again.out, "\n", 2)[0], `"event":"start"`) {
		t.Errorf("the first line of a further run is not its start:\n%s", again.out)
	}
}

// TestReaderGoesAway: a run does not notice that nobody reads its output, and
// a soft stop by a signal leaves the rest pending.
func TestReaderGoesAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	cmd := program(t, "run", "--store", db, "--display", "json", "--sim-latency", "5ms")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

// TestSoftStopBySignal: the first signal lets episodes in flight finish; the
// exit code says that it was interrupted, and the same command goes on.
func TestSoftStopBySignal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "assay.db")
	cmd := program(t, "run", "--store", db, "--display", "json", "--sim-latency", "100ms")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
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
	if last.Event != "done" || !last.Stopped || last.Pending == 0 || last.Done != settled(t, db) || last.Done+last.Pending+last.Parked != quickstartTrials {
		t.Errorf("last event %+v, %d in the store", last, settled(t, db))
	}
	must(t, nil, "run", "--store", db, "--display", "none", "--sim-latency", "0")
	if done := settled(t, db); done != quickstartTrials {
		t.Errorf("%d trials done in the end, want %d", done, quickstartTrials)
	}
}

// killAfter starts the program, kills it, and returns the highest number of
// trials that it had shown as done.
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
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var event struct {
			Done   int
			Models []struct{ Done int }
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			continue // cut off by the kill; or start, whose models are names
		}
		for _, m := range event.Models {
			event.Done += m.Done
		}
		shown = max(shown, event.Done)
	}
	_ = cmd.Wait()
	return shown
}

// settled counts the outcomes in a store, which must be of different trials; a
// store that does not exist yet has none.
func settled(t *testing.T, db string) int {
	t.Helper()
	if matches, _ := filepath.Glob(db); len(matches) == 0 {
		return 0
	}
	seen := make(map[assay.TrialID]bool)
	for _, a := range attempts(t, db) {
		if !a.Settles() {
			continue
		}
		if seen[a.ID] {
			t.Errorf("trial %s is settled twice", a.ID)
		}
		seen[a.ID] = true
	}
	return len(seen)
}

// quickstartTrials is how many trials the quickstart has.
const quickstartTrials = 438
