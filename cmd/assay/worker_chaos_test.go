package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// TestChaos lets a run, three workers and a NATS server work for ten minutes while all of them are
// killed at random, workers and the server are stopped for longer than a lease, and a proxy cuts
// and delays connections. Then the faults stop, and the run ends on its own: each trial has the
// outcome that it has in one undisturbed process, once. ASSAY_SOAK is the length in Go's notation,
// or 1 for ten minutes.
func TestChaos(t *testing.T) {
	length := 10 * time.Minute
	switch text := os.Getenv("ASSAY_SOAK"); text {
	case "":
		t.Skip("it takes ten minutes; ASSAY_SOAK=1 runs it, and ASSAY_SOAK=1m a short one")
	case "1":
	default:
		var err error
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	const perSecond = 16
	dir := t.TempDir()
	text := fmt.Sprintf(`
name: chaos
models: [sim/optimal, sim/claimer, bot]
variants: [baseline, optimal]
task_types: [simple_task, basic_task]
tasks_per_type: 10
repeats: %d
providers: providers.yaml
`, max(1, int(length.Seconds()*perSecond)/120))
	experiment := file(t, dir, "chaos.yaml", text)
	file(t, dir, "providers.yaml", workersProviders)
	alone, db := filepath.Join(dir, "alone.db"), filepath.Join(dir, "fleet.db")
	mustProgram(t, "run", experiment, "--store", alone, "--sim-latency", "0", "--quiet")

	const token = "token-of-chaos"
	x := &chaos{
		t: t, until: time.Now().Add(length), env: append(os.Environ(), tokenVariable+"="+token),
		over: make(chan struct{}),
	}
	server, addr := natsCommand(t, token)
	file(t, dir, "chaos.yaml", text+"workers: {nats: nats://"+addr+", lease: 3s}\n")
	proxy := x.proxy(addr)
	var others sync.WaitGroup
	others.Go(func() {
		// In the end it is there, so that the run has no reason to fail.
		x.again("server", true, x.until.Add(-10*time.Second), server)
	})
	listens(t, addr)
	for i := range 3 {
		others.Go(func() {
			x.again("worker", true, x.until, func() *exec.Cmd {
				return program(t, "worker", "--connect", "nats://"+proxy, "--name", fmt.Sprint("w", i),
					"--slots", "12", "--once")
			})
		})
	}
	x.again("run", false, x.until, func() *exec.Cmd {
		return program(t, "run", experiment, "--store", db, "--sim-latency", "50ms",
			"--quiet")
	})
	close(x.over) // a worker may have missed the end, or have started after it
	others.Wait()
	t.Logf("what happened: %v", x.counts)
	for _, what := range []string{"run", "worker", "server"} {
		if length >= 10*time.Minute && x.counts[what+" killed"] == 0 {
			t.Errorf("no %s was killed", what)
		}
	}
	mustProgram(t, "store", "verify", "--store", db)
	want, got := outcomesOnce(t, alone), outcomesOnce(t, db)
	if len(got) != len(want) {
		t.Errorf("%d trials have an outcome, want %d", len(got), len(want))
	}
	for id, outcome := range want {
		if got[id] != outcome {
			t.Errorf("trial %s: %s, want %s", id, got[id], outcome)
		}
	}
}

// outcomesOnce returns the outcome of each trial, and fails the test if one has two.
func outcomesOnce(t *testing.T, store string) map[assay.TrialID]string {
	t.Helper()
	all := make(map[assay.TrialID]string)
	for _, a := range attempts(t, store) {
		if !a.Settles() {
			continue
		}
		if all[a.ID] != "" {
			t.Errorf("trial %s has two outcomes", a.ID)
		}
		all[a.ID] = fmt.Sprint(a.Level, a.Ended, a.ErrorCategory, a.ExecutedTools, a.Turns)
	}
	return all
}

// A chaos disturbs processes and connections for a while.
type chaos struct {
	t     *testing.T
	until time.Time
	env   []string
	over  chan struct{} // closed when the run has ended

	mu     sync.Mutex
	counts map[string]int
}

func (x *chaos) calm() bool { return time.Now().After(x.until) }

func (x *chaos) note(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.counts == nil {
		x.counts = make(map[string]int)
	}
	x.counts[what]++
}

// again starts a program until it ends with success, and disturbs it until a time.
func (x *chaos) again(name string, stops bool, until time.Time, start func() *exec.Cmd) {
	for {
		cmd := start()
		cmd.Env = x.env
		var says strings.Builder
		cmd.Stderr = &says
		if err := cmd.Start(); err != nil {
			x.t.Error(err)
			return
		}
		ended := make(chan struct{})
		var disturb sync.WaitGroup
		disturb.Go(func() { x.disturb(name, stops, until, cmd, ended) })
		disturb.Go(func() {
			select {
			case <-x.over:
				_ = cmd.Process.Signal(syscall.SIGTERM)
			case <-ended:
			}
		})
		err := cmd.Wait()
		close(ended)
		disturb.Wait()
		switch {
		case err == nil:
			return
		case x.calm() && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL:
			x.t.Errorf("%s fails without a disturbance: %v\n%s", name, err, says.String())
			return
		}
		time.Sleep(time.Duration(rand.IntN(1000)) * time.Millisecond)
	}
}

// disturb kills a process after a while, or stops it for longer than a lease.
func (x *chaos) disturb(
	name string, stops bool, until time.Time, cmd *exec.Cmd, ended <-chan struct{},
) {
	for {
		select {
		case <-ended:
			return
		case <-time.After(time.Duration(2000+rand.IntN(15000)) * time.Millisecond):
		}
		if time.Now().After(until) {
			return
		}
		if !stops || rand.IntN(2) == 0 {
			x.note(name + " killed")
			_ = cmd.Process.Kill()
			return
		}
		x.note(name + " stopped")
		_ = cmd.Process.Signal(syscall.SIGSTOP)
		select {
		case <-ended:
		case <-time.After(time.Duration(1000+rand.IntN(7000)) * time.Millisecond):
		}
		_ = cmd.Process.Signal(syscall.SIGCONT)
	}
}

// proxy forwards connections to a server, cuts them at random and delays their data.
func (x *chaos) proxy(server string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				_ = in.Close()
				continue
			}
			go x.forward(in, out)
			go x.forward(out, in)
		}
	}()
	return l.Addr().String()
}

func (x *chaos) forward(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			switch dice := rand.IntN(3000); {
			case x.calm():
			case dice == 0:
				x.note("cut")
				return // the data read so far is lost
			case dice < 4:
				x.note("delayed")
				time.Sleep(time.Duration(rand.IntN(5000)) * time.Millisecond)
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
