package main

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// child returns a command that runs this test binary; see TestMain.
func child(t *testing.T, role string) *exec.Cmd {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, "an", "argument")
	cmd.Env = append(os.Environ(), childRole+"="+role)
	return cmd
}

// TestProcess checks that complete lines are passed on, that an error contains
// the end of standard error, and that the usage is known.
func TestProcess(t *testing.T) {
	t.Parallel()
	var lines []string
	p, err := start(child(t, "talk"), func(line []byte) {
		lines = append(lines, strings.TrimSpace(string(line)))
	})
	if err != nil {
		t.Fatal(err)
	}
	usage, err := p.wait()
	if err == nil || !strings.Contains(err.Error(), "an argument: exit status 3\noh no") {
		t.Errorf("wait() = %v", err)
	}
	if got := strings.Join(lines, ", "); got != "one, two" {
		t.Errorf("lines %s", got)
	}
	if usage.wall <= 0 || usage.cpu <= 0 || (usage.peakMB < 1) == (runtime.GOOS == "linux") {
		t.Errorf("usage %+v", usage)
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	started := make(chan bool, 1) // the child prints one line
	p, err := start(child(t, "hang"), func([]byte) { started <- true })
	if err != nil {
		t.Fatal(err)
	}
	<-started
	p.kill()
	if _, err := p.wait(); err == nil {
		t.Error("wait() of a killed process returned no error")
	}
	p.kill() // has no effect
}

func TestOpenFiles(t *testing.T) {
	t.Parallel()
	if n := openFiles(); (n > 0) != (runtime.GOOS == "linux") {
		t.Errorf("openFiles() = %d", n)
	}
}
