package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// TestEnvironmentKilledAtAnyMoment kills the program of an environment again and again while 200
// attempts play in up to 50 sessions, with SIGKILL and at random moments. The run ends, and no
// session that was cut off is scored: in the end, every trial has the outcome that it has if nothing
// is killed. All models meet the same faults of tools.
func TestEnvironmentKilledAtAnyMoment(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays 200 attempts slowly, to disturb them")
	}
	t.Parallel()
	const planned = 200
	dir := t.TempDir()
	programIn(t, dir, "envserver")
	pid := filepath.Join(dir, "pid")
	file(t, dir, "till.yaml", fmt.Sprintf(`
environment: {command: ["{dir}/envserver", "{port}", ok], sessions: 50, set: {PID_FILE: %q}}
answer: {type: message, content: "{answer}"}
effects: [pay]
tasks:
  - id: pay
    reset: {task_id: pay}
    plan: [{tool: pay, arguments: {euros: 20}}, {tool: pay, arguments: {euros: 5}}]
  - id: refund
    reset: {task_id: refund}
    plan: [{tool: pay, arguments: {euros: 25}}, {tool: refund, arguments: {euros: 5}, turn: 2}]
    later_tools:
      - name: refund
        description: Take euros back.
        input_schema: {type: object, properties: {euros: {type: number}}, required: [euros]}
`, pid))
	experiment := file(t, dir, "killed.yaml", `
library: till.yaml
models: [sim/optimal, sim/listed, sim/obedient, sim/batcher]
variants: [optimal]
reliabilities: [0.6]
failures: {kinds: {before: 0.5, slow: 0.2, stale: 0.3}}
repeats: 25
`)
	calm, killed := filepath.Join(dir, "calm.db"), filepath.Join(dir, "killed.db")
	mustProgram(t, "run", experiment, "--store", calm, "--display", "none", "--sim-latency", "0")

	cmd := program(t, "run", experiment, "--store", killed, "--display", "json", "--sim-latency", "200ms")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	kills := 0
	var killer sync.WaitGroup
	killer.Go(func() {
		for kills < 12 {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(200+rand.IntN(1200)) * time.Millisecond):
				kills += kill(pid)
			}
		}
	})
	var last struct{ Done, Pending, Parked, Planned int }
	for lines := bufio.NewScanner(out); lines.Scan(); {
		_ = json.Unmarshal(lines.Bytes(), &last) // the start has other fields
	}
	close(over)
	killer.Wait()
	_ = cmd.Wait() // an error if trials were parked
	if last.Done+last.Parked != planned {
		t.Errorf("the run ended with %+v", last)
	}
	faults := 0
	for _, a := range attempts(t, killed) {
		if a.FaultKind != "" {
			faults++
		}
		if a.FaultKind != "" && a.FaultKind != assay.ToolServer {
			t.Errorf("an attempt ended with the fault %s: %s", a.FaultKind, a.FaultDetail)
		}
	}
	t.Logf("%d kills, %d faults, %d trials parked", kills, faults, last.Parked)
	if kills < 2 || faults < 2 {
		t.Fatal("the run was over before it was disturbed: the test proves nothing")
	}

	mustProgram(t, "run", experiment, "--store", killed, "--display", "none", "--sim-latency", "0")
	want, got := settledOnce(t, attempts(t, calm)), settledOnce(t, attempts(t, killed))
	if len(want) != planned || len(got) != planned {
		t.Errorf("%d and %d trials are done, want %d", len(want), len(got), planned)
	}
	for id, o := range want {
		if got[id].Level != o.Level || got[id].ToolCalls != o.ToolCalls {
			t.Errorf("trial %s: %s after %d calls, undisturbed %s after %d", id, got[id].Level,
				got[id].ToolCalls, o.Level, o.ToolCalls)
		}
	}
	sameFaults(t, killed)
}

// kill kills the process that a file names. It returns the number of processes that it killed.
func kill(file string) int {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0 // it has not started yet
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		return 0 // it is just being written
	}
	p, err := os.FindProcess(pid)
	if err != nil || p.Kill() != nil {
		return 0 // it is dead already
	}
	return 1
}

// sameFaults checks that the calls of a tool in trials of the same task and repeat meet the same
// faults, whatever the model.
func sameFaults(t *testing.T, db string) {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls.jsonl")
	mustProgram(t, "export", "--store", db, "--output", filepath.Join(dir, "all.jsonl"), "--calls", calls)
	text, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	seed := make(map[assay.TrialID]uint64)
	for _, a := range attempts(t, db) {
		seed[a.ID] = a.Seed
	}
	type draw struct {
		seed   uint64
		tool   string
		number int
	}
	met, by, shared := make(map[draw]assay.ToolFault), make(map[draw]string), 0
	var all []export.Call
	for line := range bytes.Lines(text) {
		var c export.Call
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		if c.Level != "" && !c.Mistake {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b export.Call) int {
		return cmp.Or(strings.Compare(string(a.Trial), string(b.Trial)), a.Number-b.Number)
	})
	numbers := make(map[string]int)
	for _, c := range all {
		key := string(c.Trial) + c.Tool
		d := draw{seed[c.Trial], c.Tool, numbers[key]}
		numbers[key]++
		fault, known := met[d]
		switch {
		case !known:
			met[d], by[d] = c.Met, c.Model
		case fault != c.Met:
			t.Errorf("call %d of %s meets %q with %s and %q with %s", d.number, d.tool, fault, by[d],
				c.Met, c.Model)
		case by[d] != c.Model:
			shared++
		}
	}
	if shared < 100 {
		t.Errorf("the models share %d calls", shared)
	}
}
