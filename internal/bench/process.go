package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Process is a child that is measured while it runs.
type Process struct {
	// Started is when the system was asked to start it.
	Started time.Time

	cmd     *exec.Cmd
	errs    bytes.Buffer  // what it said on standard error; the command's until it ended
	ended   chan struct{} // closed when it has been waited for
	peak    atomic.Int64  // kB
	readers sync.WaitGroup
	watcher sync.WaitGroup
}

// Usage is what a process took.
type Usage struct {
	Wall, CPU time.Duration
	// PeakMB is the most memory that it had resident; 0 where the system does
	// not tell.
	PeakMB float64
}

// Start starts a command. Each line of its standard output is given to line,
// in a goroutine that [Process.Wait] joins.
func Start(cmd *exec.Cmd, line func([]byte)) (*Process, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, ended: make(chan struct{})}
	cmd.Stderr = &p.errs
	p.Started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.watcher.Go(p.watch)
	p.readers.Go(func() {
		lines := bufio.NewReader(out)
		for {
			text, err := lines.ReadBytes('\n')
			if err == nil {
				line(text)
			}
			if err != nil {
				return
			}
		}
	})
	return p, nil
}

// watch reads the kernel's high-water mark until the process has ended: what
// wait4 tells counts in the memory of the process that forked.
func (p *Process) watch() {
	for {
		select {
		case <-p.ended:
			return
		case <-time.After(10 * time.Millisecond):
			if kb := peakOf(p.cmd.Process.Pid); kb > 0 {
				p.peak.Store(kb)
			}
		}
	}
}

// peakOf is the most memory that a process had resident, in kB; 0 where it is
// not known.
func peakOf(pid int) int64 { return procNumber(fmt.Sprintf("/proc/%d/status", pid), "VmHWM:", 0) }

// OpenFiles is how many files a process may have open at most; 0 where the
// system does not tell.
func OpenFiles() int { return int(procNumber("/proc/self/limits", "Max open files", 1)) }

// procNumber is the n-th number behind a word in a file of Linux's /proc.
func procNumber(path, word string, n int) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), word)
	fields := strings.Fields(rest)
	if len(fields) <= n {
		return 0
	}
	v, err := strconv.ParseInt(fields[n], 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// Kill ends the process at once. One that has ended is left alone.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() }

// Wait waits until the process ends and says what it took. It is called once.
func (p *Process) Wait() (Usage, error) {
	p.readers.Wait()
	err := p.cmd.Wait()
	wall := time.Since(p.Started)
	close(p.ended)
	p.watcher.Wait()
	state := p.cmd.ProcessState
	u := Usage{Wall: wall, CPU: state.UserTime() + state.SystemTime(), PeakMB: float64(p.peak.Load()) / 1024}
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", strings.Join(p.cmd.Args[1:], " "), err, p.lastWords())
	}
	return u, err
}

// lastWords is the end of what the process said on standard error.
func (p *Process) lastWords() []byte {
	const most = 2000
	b := bytes.TrimSpace(p.errs.Bytes())
	return b[max(0, len(b)-most):]
}
