package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// childProcess is a child process that is measured while it runs.
type childProcess struct {
	started time.Time // before the fork

	cmd     *exec.Cmd
	stderr  bytes.Buffer  // written by cmd until the process has ended
	ended   chan struct{} // closed after the process has ended
	silent  chan struct{} // closed at the end of the standard output
	peak    atomic.Int64  // kB
	readers sync.WaitGroup
	watcher sync.WaitGroup
}

// usage is the time and memory that a process used.
type usage struct {
	wall, cpu time.Duration
	// peakMB is the peak resident memory, or 0 if the system does not report it.
	peakMB float64
	// written is the number of bytes that the process made the disk write, or 0 if the system does
	// not report it.
	written int64
}

// start starts a command. It calls line with each line of the command's standard
// output, in a goroutine that [childProcess.wait] joins.
func start(cmd *exec.Cmd, line func([]byte)) (*childProcess, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p := &childProcess{cmd: cmd, ended: make(chan struct{}), silent: make(chan struct{})}
	cmd.Stderr = &p.stderr
	p.started = time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.watcher.Go(p.watch)
	p.readers.Go(func() {
		defer close(p.silent)
		lines := bufio.NewReader(out)
		for {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			line(text)
		}
	})
	return p, nil
}

// watch polls the kernel's high-water mark until the process has ended. The
// value from wait4 cannot be used, because it includes the memory of the parent
// between fork and exec.
func (p *childProcess) watch() {
	for {
		select {
		case <-p.ended:
			return
		case <-time.After(10 * time.Millisecond):
			if kb := peakMemory(p.cmd.Process.Pid); kb > 0 {
				p.peak.Store(kb)
			}
		}
	}
}

// peakMemory returns the peak resident memory of a process in kB, or 0 on systems without /proc.
func peakMemory(pid int) (kb int64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	_, _ = fmt.Sscan(rest, &kb) // a process that has ended has none
	return kb
}

var errEnded = errors.New("the process ended early")

// whileRunning returns a context that ends with [errEnded] once the process does.
func (p *childProcess) whileRunning(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	p.readers.Go(func() {
		<-p.silent
		cancel(errEnded)
	})
	return ctx
}

// kill kills the process. It has no effect if the process has ended.
func (p *childProcess) kill() { _ = p.cmd.Process.Kill() }

// wait waits until the process ends and returns its usage. Call it once.
func (p *childProcess) wait() (usage, error) {
	p.readers.Wait()
	err := p.cmd.Wait()
	wall := time.Since(p.started)
	close(p.ended)
	p.watcher.Wait()

	state := p.cmd.ProcessState
	u := usage{
		wall:   wall,
		cpu:    state.UserTime() + state.SystemTime(),
		peakMB: float64(p.peak.Load()) / 1024,
	}
	if r, ok := state.SysUsage().(*syscall.Rusage); ok {
		const block = 512
		u.written = r.Oublock * block
	}
	if err != nil {
		const most = 2000
		text := bytes.TrimSpace(p.stderr.Bytes())
		err = fmt.Errorf("%s: %w\n%s", strings.Join(p.cmd.Args[1:], " "), err,
			text[max(0, len(text)-most):])
	}
	return u, err
}

// server is a child process that serves.
type server struct {
	url     string // without /v1
	process *childProcess
}

// listen starts a command that prints its base_url.
func listen(ctx context.Context, cmd *exec.Cmd) (*server, error) {
	address := make(chan string, 1)
	p, err := start(cmd, func(line []byte) {
		if _, rest, ok := strings.Cut(string(line), "base_url: "); ok {
			select {
			case address <- strings.TrimSuffix(strings.TrimSpace(rest), "/v1"):
			default: // the first is for Chat Completions
			}
		}
	})
	if err != nil {
		return nil, err
	}
	running := p.whileRunning(ctx)
	select {
	case url := <-address:
		return &server{url, p}, nil
	case <-running.Done():
		p.kill()
		_, err := p.wait()
		return nil, errors.Join(context.Cause(running), err)
	}
}

// stop kills the server and returns what it used.
func (s *server) stop() usage {
	s.process.kill()
	u, _ := s.process.wait() // the error only reports the kill
	return u
}
