package main

import (
	"bufio"
	"path/filepath"
	"strings"
	"testing"
)

// TestWatchFollowsRun checks that `assay status --watch` prints lines while a run works, ends with
// it, and has exit code 3 only if trials are left.
func TestWatchFollowsRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, limit string
		code        int
	}{
		{"to its end", "", 0},
		{"of some trials", "budget: {tokens: 20000}\n", exitIncomplete},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "s.db")
			experiment := file(t, dir, "w.yaml", "name: w\nmodels: [sim/optimal]\n"+
				"variants: [optimal]\ntasks_per_type: 4\n"+tc.limit)
			ended := make(chan result, 1)
			go func() {
				ended <- call(t, nil, "run", experiment, "--store", path, "--display", "none",
					"--sim-latency", "1s")
			}()
			defer func() { <-ended }()
			waitFor(t, func() bool { // so that the run does not end before it is watched
				return call(t, nil, "ctl", "pause", "--store", path).code == 0
			})
			watch := program(t, "status", "--watch", "--store", path)
			stdout, err := watch.StdoutPipe()
			if err == nil {
				err = watch.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			lines, out := bufio.NewScanner(stdout), ""
			for lines.Scan() {
				if !strings.Contains(out, " in flight, ") && strings.Contains(lines.Text(), " in flight, ") {
					if r := call(t, nil, "ctl", "resume", "--store", path); r.code != 0 {
						t.Errorf("resume: %s", r.err)
					}
				}
				out += lines.Text() + "\n"
			}
			_ = watch.Wait() // its exit code is compared
			if code := watch.ProcessState.ExitCode(); code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			if !strings.Contains(out, " in flight, ") || !strings.Contains(out, "and ended after") {
				t.Errorf("watch printed:\n%s", out)
			}
			again := call(t, nil, "status", "--watch", "--store", path)
			if again.code != tc.code || strings.Contains(again.out, " in flight, ") {
				t.Errorf("after the run: exit code %d and\n%s", again.code, again.out)
			}
		})
	}
}
