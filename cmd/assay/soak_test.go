package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// soakFaults befall one request in nine.
var soakFaults = []string{
	"hang=0.5%", "hang-body=0.3%", "drip=0.3%", "reset=1%", "truncate=1%", "bad-json=1%", "empty=1%",
	"429=2%", "500=2%", "503=1%", "529=1%", "408=0.5%",
	"wrong-model=0.5%", "oversized=0.1%", "redirect=0.1%", "html=0.5%",
}

// soakExperiment has more trials than any soak gets through; repeats count up
// from 1, so that fewer of them are a part of the same experiment.
const soakExperiment = `
name: soak
models: [sim/optimal, sim/listed, sim/obedient]
variants: [baseline, optimal]
reliabilities: [0.8]
tasks_per_type: 10
repeats: %d
limits: {request: 1s, trial: 20s}
`

// soakRepeat is how many trials each repeat adds to soakExperiment.
const soakRepeat = 3 * 2 * 5 * 10

// TestSoak runs a large experiment against a server at which everything goes
// wrong now and then, for a while or for as long as ASSAY_SOAK says, stops it
// with a signal, and goes on without faults. Nothing is lost, doubled or scored
// from a fault, memory and open files stay level, and what is done is what a
// run without a network gives.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it keeps a run under faults for a while")
	}
	t.Parallel()
	long := 20 * time.Second
	if text := os.Getenv("ASSAY_SOAK"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("ASSAY_SOAK: %v", err)
		}
	}
	dir := t.TempDir()
	db := filepath.Join(dir, "soak.db")
	args := []string{"--latency", "100ms"}
	for _, f := range soakFaults {
		args = append(args, "--fault", f)
	}
	stormy := serveProgram(t, args...)
	// A server with this latency gets through less than a repeat in a second.
	run := startSoak(t, dir, db, stormy, max(40, 2*int(long.Seconds())))
	samples := run.sample(t, long)
	stopped := time.Now()
	last := run.stop(t)
	t.Logf("%d of %d trials done; after the signal it took %v; %v", last.Done, last.Planned, time.Since(stopped).Round(time.Millisecond), last.Request)

	all := storedAttempts(t, db)
	done := settledOnce(t, all)
	if len(done) < run.shown || len(done) != last.Done {
		t.Errorf("%d trials are done in the store, %d were shown at most and %d in the end", len(done), run.shown, last.Done)
	}
	for _, a := range all {
		if a.FaultKind != "" && (a.Level != "" || a.Ended != "" || a.ErrorCategory != "") {
			t.Errorf("trial %s has the fault %s and the level %q", a.ID, a.FaultKind, a.Level)
		}
	}
	for _, kind := range []assay.FaultKind{assay.Timeout, assay.Network, assay.Malformed, assay.RateLimited, assay.Server, assay.Overloaded, assay.Identity} {
		if last.Request[kind] == 0 {
			t.Errorf("no %s was met: the test is too weak", kind)
		}
	}
	samples.level(t)

	// Without faults the rest is done. The repeats up to the last one of which
	// a trial was begun are a part of the experiment; two more are new.
	repeats := 2 + slices.MaxFunc(all, func(a, b assay.Attempt) int { return a.Repeat - b.Repeat }).Repeat
	calm := serveProgram(t)
	rest := startSoak(t, dir, db, calm, repeats)
	if last := rest.wait(t); last.Done != repeats*soakRepeat || last.Pending != 0 || last.Parked != 0 {
		t.Errorf("the next run ended with %d done, %d pending and %d parked, want %d done", last.Done, last.Pending, last.Parked, repeats*soakRepeat)
	}
	got := settledOnce(t, storedAttempts(t, db))
	for id, was := range done {
		if diff := cmp.Diff(was, got[id]); diff != "" {
			t.Errorf("trial %s was changed by the next run:\n%s", id, diff)
		}
	}

	reference := filepath.Join(dir, "reference.db")
	experiment := file(t, dir, "reference.yaml", fmt.Sprintf(soakExperiment, repeats))
	mustProgram(t, "run", experiment, "--store", reference, "--sim-latency", "0", "--display", "none")
	want := settledOnce(t, storedAttempts(t, reference))
	if len(want) != len(got) {
		t.Errorf("%d trials are done, want %d", len(got), len(want))
	}
	differ := 0
	for id := range want {
		if diff := cmp.Diff(want[id], got[id]); diff != "" {
			if differ++; differ <= 3 {
				t.Errorf("outcome of trial %s differs from that without a network:\n%s", id, diff)
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d outcomes differ", differ, len(want))
	}
}

// storedAttempts reads a store's attempts.
func storedAttempts(t *testing.T, path string) []assay.Attempt {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []assay.Attempt
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// settledOnce returns the outcomes, of which each trial has at most one.
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

// serveProgram starts `assay sim serve` as a process of its own, kills it at
// the end of the test, and returns its address.
func serveProgram(t *testing.T, args ...string) string {
	t.Helper()
	cmd := program(t, append([]string{"sim", "serve", "--addr", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, url, ok := strings.Cut(lines.Text(), "base_url: "); ok {
			return strings.TrimSuffix(url, "/v1") // what follows fits into the pipe
		}
	}
	t.Fatal("sim serve printed no address")
	return ""
}

// soak is a run of soakExperiment as a process of its own.
type soak struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when all that it printed was read
	shown int           // the most trials that it showed as done; to be read after ended
	last  soakEvent
	text  strings.Builder // of its errors
}

// soakEvent is what the run's last line tells.
type soakEvent struct {
	Event                          string
	Planned, Done, Pending, Parked int
	Stopped                        bool
	Request                        map[assay.FaultKind]int `json:"request_faults"`
	Models                         []struct{ Done int }    // of a line about progress
}

func startSoak(t *testing.T, dir, db, url string, repeats int) *soak {
	t.Helper()
	providers := strings.ReplaceAll(providersFile(url, "{concurrency: 12}"), "[SIM_KEY]", "[KEY_A, KEY_B]")
	file(t, dir, "providers.yaml", providers)
	experiment := file(t, dir, "soak.yaml", fmt.Sprintf(soakExperiment, repeats)+"providers: providers.yaml\n")
	s := &soak{ended: make(chan struct{})}
	s.cmd = program(t, "run", experiment, "--store", db, "--display", "json")
	s.cmd.Env = append(s.cmd.Environ(), "KEY_A=a", "KEY_B=b")
	s.cmd.Stderr = &s.text
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read(out)
	return s
}

func (s *soak) read(out io.Reader) {
	defer close(s.ended)
	for lines := json.NewDecoder(out); ; {
		var line json.RawMessage
		var event soakEvent
		if lines.Decode(&line) != nil {
			return
		}
		if json.Unmarshal(line, &event) != nil {
			continue // the start, whose models are names
		}
		for _, m := range event.Models {
			event.Done += m.Done
		}
		s.shown = max(s.shown, event.Done)
		s.last = event
	}
}

// wait waits for the end and returns the last event.
func (s *soak) wait(t *testing.T) soakEvent {
	t.Helper()
	<-s.ended
	if err := s.cmd.Wait(); err != nil && s.cmd.ProcessState.ExitCode() != exitInterrupted {
		t.Fatalf("the run ended with %v\n%s", err, s.text.String())
	}
	if s.last.Event != "done" {
		t.Fatalf("the last line tells of %q", s.last.Event)
	}
	return s.last
}

// stop sends the signal for a soft stop. The run has to end by itself: what is
// in flight has the limits of its episode.
func (s *soak) stop(t *testing.T) soakEvent {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	last := s.wait(t)
	if !last.Stopped || last.Pending == 0 {
		t.Errorf("stopped %v with %d pending: the run was over before the signal", last.Stopped, last.Pending)
	}
	return last
}

// soakSamples are what the process held, each half second.
type soakSamples struct{ mb, files []float64 }

// sample watches the run for a while.
func (s *soak) sample(t *testing.T, long time.Duration) (samples soakSamples) {
	t.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(long); ; {
		select {
		case <-tick.C:
			if mb, files, ok := held(s.cmd.Process.Pid); ok {
				samples.mb = append(samples.mb, mb)
				samples.files = append(samples.files, files)
			}
		case <-s.ended:
			t.Fatalf("the run ended before the signal: %+v\n%s", s.last, s.text.String())
		case <-end:
			return samples
		}
	}
}

// held is how much memory a process has resident, in MB, and how many files and
// sockets it has open, where the system tells.
func held(pid int) (mb, files float64, ok bool) {
	if runtime.GOOS != "linux" {
		return 0, 0, false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, false
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kb, err := strconv.ParseFloat(strings.Fields(rest + " ?")[0], 64)
	if err != nil {
		return 0, 0, false
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return kb / 1024, float64(len(open)), err == nil
}

// level checks that neither memory nor open files grew from the second third
// to the last.
func (s soakSamples) level(t *testing.T) {
	t.Helper()
	n := len(s.mb) / 3
	if n == 0 {
		t.Log("this system does not tell what a process holds")
		return
	}
	for _, of := range []struct {
		what          string
		values        []float64
		factor, extra float64
	}{{"MB resident", s.mb, 1.3, 8}, {"open files", s.files, 1.5, 20}} {
		second, third := average(of.values[n:2*n]), average(of.values[2*n:])
		t.Logf("%s: %.1f, %.1f, %.1f by thirds; at most %.1f", of.what, average(of.values[:n]), second, third, slices.Max(of.values))
		if third > of.factor*second+of.extra {
			t.Errorf("%.1f %s in the last third, %.1f in the one before", third, of.what, second)
		}
	}
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
