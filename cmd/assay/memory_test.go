//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// memoryOf25 runs the original's 630 tasks over HTTP with 25 episodes in flight
// and returns the most memory that the program had resident, in MB.
func memoryOf25(t testing.TB, server rehearsal) float64 {
	t.Helper()
	dir := t.TempDir()
	pilotLibrary(t, dir)
	file(t, dir, "providers.yaml", providersFile(server.url, "{concurrency: 25}"))
	experiment := file(t, dir, "memory.yaml", `
library: pilot.db
models: [sim/optimal]
variants: [baseline, optimal]
tasks_per_type: 40
providers: providers.yaml
`)
	cmd := program(t, "run", experiment, "--store", filepath.Join(dir, "memory.db"), "--display", "none")
	cmd.Env = append(cmd.Environ(), "SIM_KEY=k")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// What wait4 tells is of no use: it counts in the memory of the process
	// that forked. The kernel's high-water mark is read until it is gone.
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	most := 0.0
	for {
		select {
		case err := <-ended:
			if err != nil || most == 0 {
				t.Fatalf("%v, %.1f MB read", err, most)
			}
			return most
		case <-time.After(10 * time.Millisecond):
			most = max(most, highWater(cmd.Process.Pid))
		}
	}
}

// highWater is the most memory that a process had resident, in MB; 0 when it
// has ended.
func highWater(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest + " ?")[0])
	if err != nil {
		return 0
	}
	return float64(kb) / 1024
}

// TestMemoryOf25Episodes: where the original took 1.55 GB for 25 workers and
// its authors hoped for 175 MB, 64 MB are enough.
func TestMemoryOf25Episodes(t *testing.T) {
	t.Parallel()
	if mb := memoryOf25(t, serve(t, "--latency", "20ms")); mb >= 64 {
		t.Errorf("%.1f MB resident with 25 episodes in flight, want below 64", mb)
	} else {
		t.Logf("%.1f MB resident", mb)
	}
}

func BenchmarkMemoryOf25Episodes(b *testing.B) {
	server := serve(b, "--latency", "20ms")
	for b.Loop() {
		b.ReportMetric(memoryOf25(b, server), "MB-resident")
	}
}
