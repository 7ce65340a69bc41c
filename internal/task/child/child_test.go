//go:build linux

package child_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
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

// promptOutput returns what a script prints. It fails if that has not come within a minute.
func promptOutput(t *testing.T, script string) string {
	t.Helper()
	came := make(chan string, 1)
	go func() {
		out, err := child.Output(t.Context(), child.Command{Args: []string{"sh", "-c", script}})
		if err != nil {
			out = append(out, err.Error()...)
		}
		came <- string(out)
	}()
	select {
	case out := <-came:
		return out
	case <-time.After(time.Minute):
		t.Fatal("the output waits for what the program has left behind")
		return ""
	}
}

// TestOutputWaitsForNobodyElse has programs that leave something behind which holds their output
// open: in their process group, outside it, and without a trace of who started it.
func TestOutputWaitsForNobodyElse(t *testing.T) {
	t.Parallel()
	for _, leave := range []string{"", "setsid", "env -i setsid"} {
		t.Run(leave, func(t *testing.T) {
			t.Parallel()
			out := promptOutput(t, leave+` sh -c 'echo > begun; exec sleep 1000' &
				until test -e begun; do sleep 0.01; done; echo done`)
			if out != "done\n" {
				t.Errorf("the output is %q", out)
			}
		})
	}
}

// Nothing that a program has started outlives it, not even what has left its group and thrown away its
// environment, if Linux tells of it.
func TestNothingIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells")
	}
	t.Parallel()
	out := promptOutput(t, `
		setsid sh -c 'echo $$; exec sleep 1000' > one &
		env -i setsid sh -c 'echo $$ > '$PWD'/two; /bin/sleep 1000 & /bin/sleep 1000' &
		until test -s one && test -s two; do sleep 0.01; done
		cat one two`)
	pids := strings.Fields(out)
	if len(pids) != 2 {
		t.Fatalf("%q", out)
	}
	for _, pid := range pids { // Output does not wait for them
		for until := time.Now().Add(10 * time.Second); lives(pid) && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
		if lives(pid) {
			t.Errorf("process %s is left", pid)
		}
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	script := func(ctx context.Context, text string) (string, error) {
		out, err := child.Output(ctx, child.Command{Args: []string{"sh", "-c", text}})
		return string(out), err
	}
	if out, err := script(t.Context(), "cat; seq 1 100000 | tail -n 1"); err != nil || out != "100000\n" {
		t.Errorf("the output is %q, %v", out, err)
	}
	_, err := script(t.Context(), "echo partial; echo no database >&2; exit 3")
	if err == nil || err.Error() != "exit status 3: no database" {
		t.Errorf("the error is %v", err)
	}
	late := errors.New("it did not end in time")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, late)
	defer cancel()
	if _, err := script(ctx, "sleep 3600 & wait"); !errors.Is(err, late) {
		t.Errorf("the error is %v", err)
	}
}

// TestProgramsOfAFolder starts a program by its path in the folder where it starts.
func TestProgramsOfAFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte("#!/bin/sh\necho []\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err := child.Output(t.Context(), child.Command{Args: []string{"./tasks"}, Dir: dir})
	if err != nil || string(out) != "[]\n" {
		t.Errorf("the output is %q, %v", out, err)
	}
}

// lives reports whether a process exists that has not ended.
func lives(pid string) bool {
	b, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}
