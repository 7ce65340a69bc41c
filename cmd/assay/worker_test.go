package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// A coordinator is a run that lets workers carry out its attempts.
type coordinator struct {
	*says
	cmd *exec.Cmd
	url string
	// Paths of the run's experiment and of its store, if the arguments name one.
	experiment, store string
	args              []string // of a worker
	env               []string // of a worker, in addition to the test's
	done              chan error
}

var connectLine = regexp.MustCompile(`workers: assay worker --connect (\S+)(.*)\n`)

// coordinate starts a run that serves workers, and waits until they can connect.
func coordinate(t *testing.T, args ...string) *coordinator {
	t.Helper()
	return coordinateAt(t, "", nil, args...)
}

// coordinateAt starts such a run in a directory, with further environment variables.
func coordinateAt(t *testing.T, dir string, env []string, args ...string) *coordinator {
	t.Helper()
	cmd := program(t, append([]string{"run"}, args...)...)
	c := &coordinator{
		says: newSays("workers: assay worker"), cmd: cmd, experiment: args[0], done: make(chan error, 1),
	}
	if i := slices.Index(args, "--store"); i >= 0 {
		c.store = args[i+1]
	}
	cmd.Dir, cmd.Stderr, cmd.Env = dir, c.says, append(os.Environ(), env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() { c.done <- cmd.Wait() }()
	select {
	case <-c.heard:
	case err := <-c.done:
		t.Fatalf("the run serves no workers: %v\n%s", err, c)
	}
	m := connectLine.FindStringSubmatch(c.String())
	c.url = m[1]
	c.args = append([]string{"worker", "--connect", c.url, "--once"}, strings.Fields(m[2])...)
	return c
}

// wait waits for the end of the run.
func (c *coordinator) wait(t *testing.T) {
	t.Helper()
	if err := <-c.done; err != nil {
		t.Fatalf("the run failed: %v\n%s", err, c)
	}
}

// worker starts a worker of the run, and waits until it has been accepted.
func (c *coordinator) worker(t *testing.T, args ...string) (w *exec.Cmd, says *says) {
	t.Helper()
	w, says = program(t, append(c.args, args...)...), newSays("works on")
	w.Stderr, w.Env = says, append(os.Environ(), c.env...)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Process.Kill() })
	select {
	case <-says.heard:
	case <-time.After(time.Minute):
		t.Fatalf("the worker does not work:\n%s", says)
	}
	return w, says
}

// says keeps the output of a program, and closes heard when it has printed a text.
type says struct {
	mu    sync.Mutex
	text  strings.Builder
	until string
	heard chan struct{}
}

func newSays(until string) *says { return &says{until: until, heard: make(chan struct{})} }

func (s *says) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := strings.Contains(s.text.String(), s.until)
	s.text.Write(p)
	if !before && strings.Contains(s.text.String(), s.until) {
		close(s.heard)
	}
	return len(p), nil
}

func (s *says) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

const workersExperiment = `
name: workers
models: [sim/optimal, sim/claimer, bot]
variants: [baseline, optimal]
task_types: [simple_task, basic_task]
tasks_per_type: 5
providers: providers.yaml
`

// workersProviders has an agent that asks no model.
const workersProviders = `
agents:
  bot: {command: [sh, -c, 'cat > /dev/null; sleep .1; agent call'], model: sim/listed}
`

// TestThreeWorkersAreOneProcess runs an experiment in one process and on three workers. The exports
// are equal but for times and runs.
func TestThreeWorkersAreOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	experiment := file(t, dir, "workers.yaml", workersExperiment)
	file(t, dir, "providers.yaml", workersProviders)
	alone, served := filepath.Join(dir, "alone.db"), filepath.Join(dir, "fleet.db")
	mustProgram(t, "run", experiment, "--store", alone, "--sim-latency", "5ms", "--quiet")

	c := coordinate(t, experiment, "--store", served, "--sim-latency", "5ms", "--serve", ":0")
	var workers []*exec.Cmd
	var outputs []*says
	for _, name := range []string{"one", "two", "three"} {
		w, out := c.worker(t, "--name", name, "--slots", "4")
		workers, outputs = append(workers, w), append(outputs, out)
	}
	c.wait(t)
	for i, w := range workers {
		if err := w.Wait(); err != nil {
			t.Errorf("worker %d: %v\n%s", i+1, err, outputs[i])
		}
		if !strings.Contains(outputs[i].String(), "attempts of workers") {
			t.Errorf("worker %d does not say what it did:\n%s", i+1, outputs[i])
		}
	}
	mustProgram(t, "store", "verify", "--store", served) // also attempts of an agent that asks no model
	want, got := timeless(t, alone), timeless(t, served)
	if len(want) != 60 || len(got) != len(want) {
		t.Fatalf("%d attempts in one process and %d on workers, want 60", len(want), len(got))
	}
	for id, a := range want {
		if got[id] != a {
			t.Errorf("trial %s\n alone: %s\nworker: %s", id, a, got[id])
		}
	}
}

// timeless returns the attempts of a store by trial, without times, runs and workers.
func timeless(t *testing.T, store string) map[assay.TrialID]string {
	t.Helper()
	all := make(map[assay.TrialID]string)
	for _, a := range attempts(t, store) {
		if byWorker := a.Worker != ""; byWorker != strings.HasSuffix(store, "fleet.db") {
			t.Errorf("trial %s was carried out by worker %q", a.ID, a.Worker)
		}
		a.Run, a.Worker, a.QueuedMS, a.WorkingMS = "", "", 0, 0
		a.StartedAt, a.FinishedAt = time.Time{}, time.Time{}
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		all[a.ID] = string(b)
	}
	return all
}

// TestKilledWorker kills a worker with a hundred attempts in flight. Others carry them out, and no
// attempt is lost or counted twice.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hold := file(t, dir, "hold", "")
	experiment := file(t, dir, "killed.yaml", `
name: killed
models: [bot]
variants: [baseline, optimal]
task_types: [simple_task, basic_task]
tasks_per_type: 30
providers: providers.yaml
workers: {lease: 10s}
`)
	file(t, dir, "providers.yaml", `
providers:
  never-asked:
    base_url: http://127.0.0.1:1/v1
    keys: none
    models:
      m: {limits: {concurrency: 100}}
agents:
  bot:
    model: m
    command: [sh, -c, 'cat > /dev/null; if [ -e "$0" ]; then exec sleep 3600; fi; agent call', `+
		hold+`]
`)
	db := filepath.Join(dir, "fleet.db")
	c := coordinate(t, experiment, "--store", db, "--serve", ":0")
	killed, _ := c.worker(t, "--name", "killed", "--slots", "100")
	c.waitForTrials(t, "killed", 100)
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := killed.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(hold); err != nil { // a worker that still lives could finish attempts
		t.Fatal(err)
	}
	c.worker(t, "--name", "other", "--slots", "100")
	c.wait(t)
	lost := regexp.MustCompile(`heard from worker killed for \d+ s; its (9\d|100) attempts go to others`)
	if !lost.MatchString(c.String()) {
		t.Errorf("the run does not tell of the lost worker:\n%s", c)
	}
	all := attempts(t, db)
	if len(all) != 120 {
		t.Errorf("%d attempts, want 120", len(all))
	}
	for _, a := range all {
		if !a.Settles() || a.Number != 1 || a.Worker != "other" {
			t.Errorf("trial %s: attempt %d of worker %s has fault %q", a.ID, a.Number, a.Worker,
				a.FaultDetail)
		}
	}
}

// TestInterruptedWorkers interrupts workers with attempts in flight, which they finish.
func TestInterruptedWorkers(t *testing.T) {
	t.Parallel()
	c := coordinateSlow(t, "100ms")
	for _, name := range []string{"a", "b", "c"} {
		c.interrupt(t, name, 1)
	}
	c.worker(t, "--name", "last", "--slots", "20")
	c.wait(t)
	for _, name := range []string{"a", "b", "c"} {
		if !strings.Contains(c.String(), "worker "+name+" has gone\n") {
			t.Errorf("worker %s did not finish its attempts:\n%s", name, c)
		}
	}
}

// TestWorkerGivesAttemptsBack interrupts a worker twice, whose attempts would take hours.
func TestWorkerGivesAttemptsBack(t *testing.T) {
	t.Parallel()
	c := coordinateSlow(t, "1h")
	c.interrupt(t, "twice", 2)
	waitFor(t, func() bool {
		return strings.Contains(c.String(), "worker twice has gone; its 2 attempts go to others")
	})
}

// coordinateSlow starts a run of 40 trials whose models take some time for each reply.
func coordinateSlow(t *testing.T, latency string) *coordinator {
	t.Helper()
	dir := t.TempDir()
	experiment := file(t, dir, "workers.yaml", strings.Replace(workersExperiment, ", bot]", "]", 1))
	file(t, dir, "providers.yaml", workersProviders)
	return coordinate(t, experiment, "--store", filepath.Join(dir, "slow.db"), "--serve", ":0",
		"--sim-latency", latency)
}

// waitForTrials waits until a worker has n trials in flight.
func (c *coordinator) waitForTrials(t *testing.T, worker string, n int) {
	t.Helper()
	waitFor(t, func() bool {
		var state terminal.Progress
		r := call(t, nil, "ctl", "status", "--json", "--store", c.store) // before it can be asked, too
		return r.code == 0 && json.Unmarshal([]byte(r.out), &state) == nil &&
			slices.ContainsFunc(state.Workers, func(w terminal.Worker) bool {
				return w.Name == worker && len(w.Trials) == n
			})
	})
}

// interrupt starts a worker with two slots, interrupts it several times as soon as both are taken,
// and waits for its end.
func (c *coordinator) interrupt(t *testing.T, name string, times int) {
	t.Helper()
	w, says := c.worker(t, "--name", name, "--slots", "2")
	c.waitForTrials(t, name, 2)
	for range times {
		if err := w.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return strings.Contains(says.String(), "finishes its attempts") })
	}
	if err := w.Wait(); err != nil {
		t.Errorf("worker %s: %v\n%s", name, err, says)
	}
}

// TestKilledRunGoesOn kills a run with workers, and starts it again with the same command. Its
// worker waits, gets in with the same token, and carries out the rest.
func TestKilledRunGoesOn(t *testing.T) {
	t.Parallel()
	c := coordinateSlow(t, "300ms")
	db := c.store
	w, says := c.worker(t, "--slots", "4")
	waitFor(t, func() bool { return len(attempts(t, db)) > 3 })
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.done
	_, port, _ := strings.Cut(c.url, "127.0.0.1")
	again := coordinate(t, c.experiment, "--store", db, "--sim-latency", "0", "--serve", port)
	again.wait(t)
	if err := w.Wait(); err != nil {
		t.Errorf("the worker: %v\n%s", err, says)
	}
	if all := attempts(t, db); len(all) != 40 {
		t.Errorf("%d attempts, want 40", len(all))
	}
	for _, suffix := range []string{".nats", ".token"} {
		switch info, err := os.Stat(db + suffix); {
		case suffix == ".nats" && err == nil:
			t.Error("the run leaves a directory of its server behind")
		case suffix == ".token" && (err != nil || info.Mode() != 0o600):
			t.Errorf("the token's file: %v, %v", info, err)
		}
	}
}

// TestWorkerGoesBeforeItsRun interrupts a worker whose run has not begun.
func TestWorkerGoesBeforeItsRun(t *testing.T) {
	t.Parallel()
	w, says := program(t, "worker", "--connect", "nats://127.0.0.1:1"), newSays("waiting for")
	w.Stderr = says
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	<-says.heard
	if err := w.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := w.Wait(); err != nil {
		t.Errorf("the worker: %v\n%s", err, says)
	}
}

// TestWorkersAreRefused lets strangers try to work, without the token and with a wrong one. Other
// machines cannot reach a run without TLS at all.
func TestWorkersAreRefused(t *testing.T) {
	t.Parallel()
	c := coordinateSlow(t, "1h")
	for name, env := range map[string]map[string]string{
		"no token":    nil,
		"wrong token": {tokenVariable: "guess"},
	} {
		r := call(t, env, "worker", "--connect", c.url)
		if r.code != 1 || !strings.Contains(r.err, "Authorization Violation") ||
			!strings.Contains(r.err, "hint: ") {
			t.Errorf("%s: exit code %d\n%s", name, r.code, r.err)
		}
	}
	r := call(t, nil, "run", c.experiment, "--store", filepath.Join(t.TempDir(), "y.db"),
		"--serve", "0.0.0.0:0")
	if r.code != 2 || !strings.Contains(r.err, "cert: FILE") {
		t.Errorf("an open port without TLS: exit code %d\n%s", r.code, r.err)
	}
}

// TestDrainedWorker lets one of two workers go while a run works.
func TestDrainedWorker(t *testing.T) {
	t.Parallel()
	c := coordinateSlow(t, "300ms")
	db := c.store
	drained, says := c.worker(t, "--name", "drained", "--slots", "3")
	c.worker(t, "--name", "stays", "--slots", "20")
	var state terminal.Progress
	waitFor(t, func() bool {
		state = terminal.Progress{}
		r := call(t, nil, "ctl", "status", "--json", "--store", db) // fails until the run can be asked
		return json.Unmarshal([]byte(r.out), &state) == nil && len(state.Workers) == 2 &&
			len(state.Workers[0].Trials) == 3 && len(state.Workers[1].Trials) == 20
	})
	if text := must(t, nil, "ctl", "status", "--store", db).out; !strings.Contains(text, "drained") {
		t.Errorf("ctl status does not list the worker:\n%s", text)
	}
	r := call(t, nil, "ctl", "drain", "nobody", "--store", db)
	if r.code != 1 || !strings.Contains(r.err, "no worker is called nobody") {
		t.Errorf("draining nobody: exit code %d\n%s", r.code, r.err)
	}
	must(t, nil, "ctl", "drain", "drained", "--store", db)
	if err := drained.Wait(); err != nil {
		t.Errorf("the drained worker: %v\n%s", err, says)
	}
	c.wait(t)
	by := make(map[string]int)
	for _, a := range attempts(t, db) {
		by[a.Worker]++
		if !a.Settles() || a.Number != 1 {
			t.Errorf("trial %s: attempt %d has fault %q", a.ID, a.Number, a.FaultDetail)
		}
	}
	if by["drained"] == 0 || by["stays"] <= by["drained"] || by["drained"]+by["stays"] != 40 {
		t.Errorf("attempts by worker: %v", by)
	}
}
