//go:build linux

package child_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/task/child"
)

// start starts a shell script, and returns the first line that it prints.
func start(t *testing.T, script string) (*child.Process, string) {
	t.Helper()
	p, err := child.Start(child.Command{Args: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return p, strings.TrimSpace(line)
}

// A process that has left the group of its program ends with it.
func TestStraysEndWithTheirProgram(t *testing.T) {
	t.Parallel()
	p, pid := start(t, `setsid sh -c 'echo $$; exec sleep 3600'`)
	p.Stop()
	for lives(pid) { // until the test's own time is over
		time.Sleep(10 * time.Millisecond)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
}

// A program can tidy up when it is asked to end.
func TestProgramsAreToldToEnd(t *testing.T) {
	t.Parallel()
	p, _ := start(t, `trap 'sleep .1; echo tidy >&2; exit 7' TERM
		echo ready
		while :; do sleep 0.1; done`)
	p.Stop()
	if got := p.State(); got != "exit status 7: tidy" {
		t.Errorf("it ended with %q", got)
	}
}

// lives reports whether a process exists that has not ended.
func lives(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
