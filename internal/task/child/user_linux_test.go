package child_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay/internal/task/child"
)

// A program with a user of its own can neither look into others nor outlive its end, even without its
// environment and its process group, and its files can be removed.
func TestApart(t *testing.T) {
	t.Parallel()
	if err := child.Users(); err != nil {
		t.Skip(err)
	}
	start := func(token, script string) *child.Process {
		p, err := child.Start(child.Command{
			Args: []string{"/bin/sh", "-c", script}, Apart: true, Plain: []string{"TOKEN=" + token},
			Files: map[string]string{"notes/mine": "x"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	victim := start("victim", "echo ready; sleep 60")
	defer func() { _ = victim.Close() }()
	waitFor(t, victim, "ready")
	thief := start("thief", `
		id -u
		echo $HOME
		cat notes/mine > notes/copy && echo wrote
		for p in /proc/[0-9]*; do tr '\0' '\n' < $p/environ; done 2>/dev/null | grep -c '^TOKEN=victim'
		ls /root > /dev/null 2>&1 && echo root
		ls `+victim.Dir+` > /dev/null 2>&1 && echo scratch
		kill -9 `+strconv.Itoa(victim.PID())+` 2>/dev/null && echo killed
		setsid env -i /bin/sleep 61 > /dev/null 2>&1 &
		setsid env -i /bin/sh -c 'sleep 62 & sleep 62' > /dev/null 2>&1 &
	`)
	out := read(t, thief)
	words := strings.Fields(out)
	if len(words) != 4 || words[0] == "0" || words[1] != thief.Dir || words[2] != "wrote" || words[3] != "0" {
		t.Fatalf("it said %q", out)
	}
	if err := thief.Close(); err != nil {
		t.Error(err)
	}
	if left := runningAs(words[0]); len(left) > 0 {
		t.Errorf("%v survived", left)
	}
	if _, err := os.Stat(thief.Dir); err == nil {
		t.Error("its scratch directory is still there")
	}

	// Each link of this chain starts the next and ends, so none of them is there for long.
	chain := start("chain", `id -u; link() { /bin/sleep 0.002; link > /dev/null 2>&1 & }; link`)
	id := strings.TrimSpace(read(t, chain))
	if err := chain.Close(); err != nil {
		t.Error(err)
	}
	if left := runningAs(id); id == "" || len(left) > 0 {
		t.Errorf("%d processes of %q survived", len(left), id)
	}

	if info, err := os.Stat("/proc/self"); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("this process is not root's any more: %v", err)
	}

	hidden := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(hidden, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := child.Output(context.Background(), child.Command{Args: []string{hidden}, Apart: true})
	if err == nil || !strings.Contains(err.Error(), "its user may not run it") {
		t.Errorf("a program that it may not run: %v", err)
	}
}

// runningAs lists the processes of a user.
func runningAs(id string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range all {
		text, _ := os.ReadFile(path)
		if strings.Contains(string(text), "Uid:\t"+id+"\t") && !strings.Contains(string(text), "State:\tZ") {
			found = append(found, string(text))
		}
	}
	return found
}

func waitFor(t *testing.T, p *child.Process, word string) {
	t.Helper()
	buf := make([]byte, len(word))
	if _, err := p.Stdout.Read(buf); err != nil || string(buf) != word {
		t.Fatalf("%q, %v", buf, err)
	}
}

func read(t *testing.T, p *child.Process) (out string) {
	t.Helper()
	p.Finish(t.Context(), func(r io.Reader) {
		b, err := io.ReadAll(r)
		if err != nil {
			t.Error(err)
		}
		out = string(b)
	})
	return out
}
