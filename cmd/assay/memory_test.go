//go:build linux && !race

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

// memoryOf25 runs tasks of the original over HTTP with 25 episodes in flight. It returns the
// program's largest resident memory in MB.
func memoryOf25(t testing.TB, url string) float64 {
	t.Helper()
	dir := t.TempDir()
	pilotLibrary(t, dir)
	file(t, dir, "providers.yaml", providersFile(url, "{concurrency: 25}"))
	experiment := file(t, dir, "memory.yaml", `
library: pilot.db
models: [sim/optimal]
variants: [baseline, optimal]
tasks_per_type: 40
providers: providers.yaml
`)
	db := filepath.Join(dir, "memory.db")
	cmd := program(t, "run", experiment, "--store", db, "--display", "none")
	cmd.Env = append(cmd.Environ(), "SIM_KEY=k", "GOGC=100") // the default, whatever the tests have
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}

	// The figure from wait4 is useless because it includes the memory of the process that forked.
	// So read the kernel's high-water mark until the program has ended.
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

// highWater returns the largest resident memory of a process in MB, or 0 if it has ended.
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

// 25 episodes fit in 100 MB (70 to 78 on a quiet machine, 90 on a busy one), of which about 37 MB are
// pages of the program's file, which the kernel shares and drops as it likes. The original took 1.55 GB
// for 25 workers, and its authors hoped for 175 MB.
func TestMemoryOf25Episodes(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays 400 trials")
	}
	t.Parallel()
	mb := memoryOf25(t, serveProgram(t, "--latency", "20ms"))
	t.Logf("%.1f MB resident", mb)
	if mb >= 100 {
		t.Errorf("%.1f MB resident with 25 episodes in flight, want below 100", mb)
	}
}

func BenchmarkMemoryOf25Episodes(b *testing.B) {
	url := serveProgram(b, "--latency", "20ms")
	for b.Loop() {
		b.ReportMetric(memoryOf25(b, url), "MB-resident")
	}
}
