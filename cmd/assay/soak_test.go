package main

import (
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
)

// soakFaults affect about one request in nine.
var soakFaults = []string{
	"hang=0.5%", "hang-body=0.3%", "drip=0.3%", "reset=1%", "truncate=1%", "bad-json=1%",
	"empty=1%", "429=2%", "500=2%", "503=1%", "529=1%", "408=0.5%",
	"wrong-model=0.5%", "oversized=0.1%", "redirect=0.1%", "html=0.5%",
}

// soakExperiment is an experiment with more trials than any soak completes. Repeats count up from
// 1, so the same experiment with fewer repeats is a part of it.
const soakExperiment = `
name: soak
models: [sim/optimal, sim/listed, sim/obedient]
variants: [baseline, optimal]
reliabilities: [0.8]
tasks_per_type: 10
repeats: %d
limits: {request: 1s, trial: 20s}
`

// soakRepeat is the number of trials in one repeat of soakExperiment.
const soakRepeat = 3 * 2 * 5 * 10

// TestSoak runs a large experiment against a server at which everything goes wrong now and then,
// for a while or for as long as ASSAY_SOAK states. Then it stops the run with a signal and
// continues without faults. No trial is lost, doubled or scored because of a fault, memory and open
// files stay level, and all outcomes are the same as in a run without a network.
func TestSoak(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: runs under faults for a while")
	}
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "soak.db")
	stopped, done := soakUnderFaults(t, dir, db)

	// The rest is done without faults. The experiment has the repeats up to the last one in which a
	// trial began, and one more.
	repeats := 1 + slices.MaxFunc(stopped, func(a, b assay.Attempt) int {
		return a.Repeat - b.Repeat
	}).Repeat
	last := startSoak(t, dir, db, serveProgram(t), repeats).wait(t)
	if last.Done != repeats*soakRepeat || last.Pending != 0 || last.Parked != 0 {
		t.Errorf("the next run ended with %d done, %d pending and %d parked, want %d done",
			last.Done, last.Pending, last.Parked, repeats*soakRepeat)
	}
	got := settledOnce(t, attempts(t, db))
	for id, was := range done {
		if diff := cmp.Diff(was, got[id]); diff != "" {
			t.Errorf("the next run changed trial %s:\n%s", id, diff)
		}
	}

	reference := filepath.Join(dir, "reference.db")
	experiment := file(t, dir, "reference.yaml", fmt.Sprintf(soakExperiment, repeats))
	mustProgram(t, "run", experiment, "--store", reference,
		"--sim-latency", "0", "--display", "none")
	sameAsReference(t, settledOnce(t, attempts(t, reference)), got)
}

// soakUnderFaults runs the soak for a while and stops it. It returns the stored attempts and the
// outcomes among them.
func soakUnderFaults(t *testing.T, dir, db string) (
	[]assay.Attempt, map[assay.TrialID]assay.Outcome,
) {
	t.Helper()
	long := 8 * time.Second
	if text := os.Getenv("ASSAY_SOAK"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatalf("ASSAY_SOAK: %v", err)
		}
	}
	args := []string{"--latency", "100ms"}
	for _, f := range soakFaults {
		args = append(args, "--fault", f)
	}
	// At this latency, the server completes less than one repeat in a second.
	run := startSoak(t, dir, db, serveProgram(t, args...), max(40, 2*int(long.Seconds())))
	samples := run.sample(t, long)
	signalled := time.Now()
	last := run.stop(t)
	t.Logf("%d of %d trials done; stopped %v after the signal; %v", last.Done, last.Planned,
		time.Since(signalled).Round(time.Millisecond), last.Request)

	all := attempts(t, db)
	done := settledOnce(t, all)
	if len(done) < run.shown || len(done) != last.Done {
		t.Errorf("%d trials are done in the store, %d were shown at most and %d in the end",
			len(done), run.shown, last.Done)
	}
	for _, a := range all {
		noScore(t, a)
	}
	for _, kind := range []assay.FaultKind{
		assay.Timeout, assay.Network, assay.Malformed, assay.RateLimited, assay.Server,
		assay.Overloaded, assay.Identity,
	} {
		if last.Request[kind] == 0 {
			t.Errorf("no %s occurred: the test is too weak", kind)
		}
	}
	samples.level(t)
	return all, done
}

// sameAsReference compares outcomes with the outcomes of a run without a network.
func sameAsReference(t *testing.T, want, got map[assay.TrialID]assay.Outcome) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%d trials are done, want %d", len(got), len(want))
	}
	differ := 0
	for id := range want {
		if diff := cmp.Diff(want[id], got[id]); diff != "" {
			if differ++; differ <= 3 {
				t.Errorf("trial %s has another outcome without a network:\n%s", id, diff)
			}
		}
	}
	if differ > 0 {
		t.Errorf("%d of %d outcomes differ", differ, len(want))
	}
}

// A soak is a run of soakExperiment in a separate process.
type soak struct {
	cmd   *exec.Cmd
	ended chan struct{}   // closed when all output has been read
	shown int             // the most trials shown as done; valid after ended
	last  soakEvent       // valid after ended
	text  strings.Builder // standard error
}

// A soakEvent is a line of the run's output.
type soakEvent struct {
	Event                          string
	Planned, Done, Pending, Parked int
	Stopped                        bool
	Request                        map[assay.FaultKind]int `json:"request_faults"`
}

func startSoak(t *testing.T, dir, db, url string, repeats int) *soak {
	t.Helper()
	providers := providersFile(url, "{concurrency: 12}")
	file(t, dir, "providers.yaml", strings.ReplaceAll(providers, "[SIM_KEY]", "[KEY_A, KEY_B]"))
	text := fmt.Sprintf(soakExperiment, repeats) + "providers: providers.yaml\n"
	experiment := file(t, dir, "soak.yaml", text)
	s := &soak{ended: make(chan struct{})}
	s.cmd = program(t, "run", experiment, "--store", db, "--display", "json")
	s.cmd.Env = append(s.cmd.Environ(), "KEY_A=a", "KEY_B=b",
		"GOGC=100") // the default, whatever the tests have
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
			continue // in the first line, models are names
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
		t.Fatalf("the last event is %q, want done", s.last.Event)
	}
	return s.last
}

// stop sends the signal for a soft stop. Then the run ends without a second signal, because the
// episodes in flight have limits.
func (s *soak) stop(t *testing.T) soakEvent {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	last := s.wait(t)
	if !last.Stopped || last.Pending == 0 {
		t.Errorf("stopped %v with %d pending: the run ended before the signal",
			last.Stopped, last.Pending)
	}
	return last
}

// soakSamples are the memory and the open files of the process, every half second.
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

// held returns a process's resident memory in MB and the number of its open files and sockets. It
// returns false on systems other than Linux.
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

// level checks that neither memory nor open files grew from the second third to the last.
func (s soakSamples) level(t *testing.T) {
	t.Helper()
	n := len(s.mb) / 3
	if n == 0 {
		t.Log("cannot read memory and open files on this system")
		return
	}
	for _, of := range []struct {
		name          string
		values        []float64
		factor, extra float64
	}{
		{"MB resident", s.mb, 1.3, 8},
		{"open files", s.files, 1.5, 20},
	} {
		first, second := average(of.values[:n]), average(of.values[n:2*n])
		third := average(of.values[2*n:])
		t.Logf("%s: %.1f, %.1f, %.1f by thirds; at most %.1f",
			of.name, first, second, third, slices.Max(of.values))
		if third > of.factor*second+of.extra {
			t.Errorf("%.1f %s in the last third, %.1f in the one before", third, of.name, second)
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
