package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// A turnstile remembers when requests arrive at an endpoint.
type turnstile struct {
	http.Handler
	mu      sync.Mutex
	arrived []time.Time
}

func (s *turnstile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.arrived = append(s.arrived, time.Now())
	s.mu.Unlock()
	s.Handler.ServeHTTP(w, r)
}

// most returns how many requests arrived, and the most within a minute.
func (s *turnstile) most() (all, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := 0
	for i, at := range s.arrived {
		for at.Sub(s.arrived[first]) >= time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return len(s.arrived), most
}

// begin starts the program. The channel is closed when it has ended.
func begin(t *testing.T, args ...string) (cmd *exec.Cmd, stderr *bytes.Buffer, over chan struct{}) {
	t.Helper()
	cmd, stderr, over = program(t, args...), new(bytes.Buffer), make(chan struct{})
	cmd.Stderr, cmd.Env = stderr, append(os.Environ(), "TURNSTILE_KEY=canary-turnstile")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(over)
		_ = cmd.Wait()
	}()
	return cmd, stderr, over
}

func ended(over chan struct{}) bool {
	select {
	case <-over:
		return true
	default:
		return false
	}
}

// stateOf returns how the run on a store stands, or the zero value if there is none.
func stateOf(t *testing.T, db string) (p terminal.Progress) {
	t.Helper()
	if r := call(t, nil, "ctl", "status", "--store", db, "--json"); r.code == 0 {
		if err := json.Unmarshal([]byte(r.out), &p); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// TestStatedLimitHoldsAcrossKills kills runs with SIGKILL while requests are in flight, and starts
// them again at once. The endpoint sees no minute with more requests than the limit that is stated.
func TestStatedLimitHoldsAcrossKills(t *testing.T) {
	t.Parallel()
	server, err := simserver.New(simserver.Config{
		Provider: sim.New(builtinLibrary(t).Catalog(), sim.Latency{}), Models: sim.Names,
		Latency: simserver.Latency{Median: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	gate := &turnstile{Handler: server}
	endpoint := httptest.NewServer(gate)
	t.Cleanup(endpoint.Close)
	dir := t.TempDir()
	file(t, dir, "providers.yaml", "providers:\n  gw:\n    base_url: "+endpoint.URL+"/v1\n    keys: [TURNSTILE_KEY]\n"+
		"    models: {sim/optimal: {limits: {concurrency: 8, rpm: 60, burst: 60}}}\n")
	plan := file(t, dir, "e.yaml", "name: kills\nmodels: [sim/optimal]\nvariants: [optimal]\n"+
		"tasks_per_type: 40\nproviders: providers.yaml\n")
	db := filepath.Join(dir, "a.db")
	for _, until := range []int{15, 40, 60, 60} {
		cmd, stderr, over := begin(t, "run", plan, "--store", db, "--display", "none")
		waitFor(t, func() bool {
			all, most := gate.most()
			if ended(over) {
				t.Fatalf("the run ended after %d requests:\n%s%s", all, stderr, call(t, nil, "status", "--store", db).out)
			}
			if all < until || most > 60 {
				return most > 60
			}
			if until < 60 {
				return true
			}
			models := stateOf(t, db).Models
			return len(models) > 0 && strings.HasPrefix(models[0].Lanes[0].Waits, "rpm")
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		<-over
	}
	if all, most := gate.most(); most > 60 {
		t.Errorf("%d requests, %d of them within a minute, limit 60", all, most)
	}
}

// TestAnotherProgramLocksTheStore locks the store of a run for longer than SQLite waits. The run says
// so and keeps its results until the lock is gone, or until the user does not want to wait.
func TestAnotherProgramLocksTheStore(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: a run that waits for some seconds")
	}
	for name, leaves := range map[string]bool{"until it is free": false, "until Ctrl-C": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			db := filepath.Join(dir, "a.db")
			plan := file(t, dir, "e.yaml", "name: locked\nmodels: [sim/optimal]\nvariants: [optimal]\n"+
				"tasks_per_type: 20\n")
			cmd, stderr, over := begin(t, "run", plan, "--store", db, "--display", "none", "--sim-latency", "100ms")
			waitFor(t, func() bool { return ended(over) || stateOf(t, db).Done > 0 })
			other, err := sql.Open("sqlite", db+"?_pragma=busy_timeout(5000)")
			if err != nil {
				t.Fatal(err)
			}
			other.SetMaxOpenConns(1)
			if _, err := other.ExecContext(context.Background(), "BEGIN IMMEDIATE"); err != nil {
				t.Fatal(err)
			}
			var words string
			waitFor(t, func() bool {
				for _, a := range stateOf(t, db).Attention {
					if a.Cause == session.CauseLocked {
						words = a.Text
					}
				}
				return words != "" || ended(over)
			})
			if !strings.Contains(words, "has locked a.db for ") || !strings.Contains(words, "results in memory") {
				t.Errorf("the run said %q:\n%s", words, stderr)
			}
			if leaves {
				for range 2 {
					if err := cmd.Process.Signal(os.Interrupt); err != nil {
						t.Error(err)
					}
					waitFor(t, func() bool { return ended(over) || stateOf(t, db).Stopping })
				}
				<-over
			}
			if err := errors.Join(rollback(other), other.Close()); err != nil {
				t.Error(err)
			}
			<-over
			switch code := cmd.ProcessState.ExitCode(); {
			case !leaves && code != 0:
				t.Errorf("exit code %d:\n%s", code, stderr)
			case leaves && (code != exitError || !strings.Contains(stderr.String(), "attempts could not be saved: their trials stay pending") ||
				!strings.Contains(stderr.String(), "locked by another program")):
				t.Errorf("exit code %d:\n%s", code, stderr)
			}
			mustProgram(t, "run", plan, "--store", db, "--display", "none", "--sim-latency", "0")
			for _, a := range attempts(t, db) {
				if !a.Settles() {
					t.Errorf("%s: %s", a.FaultKind, a.FaultDetail)
				}
			}
		})
	}
}

func rollback(db *sql.DB) error {
	_, err := db.ExecContext(context.Background(), "ROLLBACK")
	return err
}
