//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/assay-eval/assay/internal/run/terminal"
)

// A pty is a pseudo terminal with a program on it.
type pty struct {
	master *os.File
	cmd    *exec.Cmd
	mu     sync.Mutex
	out    strings.Builder
}

func startOnTerminal(t *testing.T, args ...string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no pseudo terminal: " + err.Error())
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip("no pseudo terminal: " + err.Error())
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	p := &pty{master: master, cmd: program(t, args...)}
	p.cmd.Env = append(os.Environ(), "TERM=xterm-256color",
		"PROGRAM=/assay-program-of-this-test") // runs of other tests would take it for one that an agent has left
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.collect()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait(); _ = master.Close() })
	return p
}

func (p *pty) collect() {
	b := make([]byte, 4096)
	for {
		n, err := p.master.Read(b)
		p.mu.Lock()
		p.out.Write(b[:n])
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *pty) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// reads reports whether the program reads single keys without an echo.
func (p *pty) reads(t *testing.T) bool {
	t.Helper()
	mode, err := unix.IoctlGetTermios(int(p.master.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return mode.Lflag&(unix.ICANON|unix.ECHO) == 0
}

func (p *pty) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := p.master.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// TestKeysControlRun presses keys during a run on a pseudo terminal. They are carried out and
// logged as orders, and however the run ends, the terminal is as it was before.
func TestKeysControlRun(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		end  func(t *testing.T, p *pty)
	}{
		{"q", func(t *testing.T, p *pty) { t.Helper(); p.press(t, "q") }},
		{"Ctrl-C", func(t *testing.T, p *pty) { t.Helper(); p.press(t, "\x03") }},
		{"SIGTERM", func(_ *testing.T, p *pty) { _ = p.cmd.Process.Signal(syscall.SIGTERM) }},
		{"SIGQUIT", func(_ *testing.T, p *pty) { _ = p.cmd.Process.Signal(syscall.SIGQUIT) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "k.db")
			experiment := file(t, dir, "k.yaml", "name: k\nmodels: [sim/optimal]\n"+
				"variants: [optimal]\ntasks_per_type: 40\nrepeats: 10\n")
			p := startOnTerminal(t, "run", experiment, "--store", path, "--sim-latency", "400ms")
			state := func() (s terminal.Progress) {
				r := call(t, nil, "ctl", "status", "--json", "--store", path)
				_ = json.Unmarshal([]byte(r.out), &s) // the run may not have begun
				return s
			}
			waitFor(t, func() bool { return state().Done > 0 && p.reads(t) })
			if tc.name == "q" {
				changeByKeys(t, p, state)
			}
			tc.end(t, p)
			_ = p.cmd.Wait()
			if p.reads(t) {
				t.Errorf("the terminal was not restored: %v", p.cmd.ProcessState)
			}
		})
	}
}

func changeByKeys(t *testing.T, p *pty, state func() terminal.Progress) {
	t.Helper()
	p.press(t, "?")
	waitFor(t, func() bool { return strings.Contains(p.text(), "p pause or resume") })
	p.press(t, "p")
	waitFor(t, func() bool { return !state().PausedSince.IsZero() })
	waitFor(t, func() bool { return strings.Contains(p.text(), "paused since") })
	p.press(t, "p")
	waitFor(t, func() bool { return state().PausedSince.IsZero() })
	width := func() int { return state().Models[0].Lanes[0].Limits.Concurrency }
	p.press(t, "+") // 32 times 1.1
	waitFor(t, func() bool { return width() == 35 })
	p.press(t, "-")
	waitFor(t, func() bool { return width() == 32 })
	const note = "by order: set 35 requests at once on builtin"
	if notes := state().Notes; !slices.Contains(notes, note) {
		t.Errorf("notes %q, want %q", notes, note)
	}
}
