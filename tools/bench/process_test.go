package main

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestProcess checks that complete lines are passed on, that an error contains
// the end of standard error, and that the usage is known.
func TestProcess(t *testing.T) {
	t.Parallel()
	var lines []string
	p, err := start(exec.Command("sh", "-c", "echo one; echo oh no >&2; "+
		"printf 'two\nthree without a newline'; sleep .1; exit 3"), func(line []byte) {
		lines = append(lines, strings.TrimSpace(string(line)))
	})
	if err != nil {
		t.Fatal(err)
	}
	usage, err := p.wait()
	if err == nil || !strings.Contains(err.Error(), "exit status 3\noh no") {
		t.Errorf("wait() = %v", err)
	}
	if got := strings.Join(lines, ", "); got != "one, two" {
		t.Errorf("lines %s", got)
	}
	if usage.wall <= 0 || usage.cpu <= 0 || (usage.peakMB < 1) == (runtime.GOOS == "linux") {
		t.Errorf("usage %+v", usage)
	}
}
