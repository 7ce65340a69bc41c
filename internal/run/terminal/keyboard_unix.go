//go:build linux || darwin || freebsd

package terminal

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Keyboard reads single keys from a terminal. It does not wait for the end of a line and does not
// echo, but Ctrl-C, Ctrl-Z and Ctrl-\ remain signals, and output is not changed.
type Keyboard struct {
	fd      int
	before  *unix.Termios
	signals chan os.Signal
	mu      sync.Mutex
	done    bool
}

// NewKeyboard prepares a terminal. It returns nil if this process may not read from it.
func NewKeyboard(fd int) *Keyboard {
	before, err := unix.IoctlGetTermios(fd, getTermios)
	k := &Keyboard{fd: fd, before: before, signals: make(chan os.Signal, 1)}
	if err != nil || !k.inForeground() || k.set() != nil {
		return nil
	}
	signal.Notify(k.signals, unix.SIGCONT, unix.SIGQUIT, unix.SIGHUP)
	go k.watch()
	return k
}

// inForeground reports whether the shell has given the terminal to this process. Otherwise reading
// from it would stop the process.
func (k *Keyboard) inForeground() bool {
	group, err := unix.IoctlGetInt(k.fd, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func (k *Keyboard) set() error {
	mode := *k.before
	mode.Lflag &^= unix.ICANON | unix.ECHO
	mode.Cc[unix.VMIN], mode.Cc[unix.VTIME] = 0, 1 // a read ends after 100 ms
	return unix.IoctlSetTermios(k.fd, setTermios, &mode)
}

// watch restores the terminal before a signal ends the process, and prepares it again when the
// process continues after Ctrl-Z, because the shell restores it in between.
func (k *Keyboard) watch() {
	for s := range k.signals {
		if s != unix.SIGCONT {
			k.Restore()
			signal.Reset(s)
			_ = unix.Kill(os.Getpid(), s.(syscall.Signal))
			return
		}
		k.mu.Lock()
		if !k.done && k.inForeground() {
			_ = k.set() // without it, keys need Enter
		}
		k.mu.Unlock()
	}
}

// Restore gives the terminal back as it was. It may be called several times.
func (k *Keyboard) Restore() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return
	}
	k.done = true
	_ = unix.IoctlSetTermios(k.fd, setTermios, k.before) // the terminal may be gone
	signal.Stop(k.signals)
}

// Read returns a key, or 0 if no key was pressed for a moment.
func (k *Keyboard) Read() byte {
	var key [1]byte
	if !k.inForeground() {
		time.Sleep(time.Second / 10)
		return 0
	}
	n, err := unix.Read(k.fd, key[:])
	if err != nil {
		time.Sleep(time.Second / 10) // the terminal may be gone
	}
	if n < 1 {
		return 0
	}
	return key[0]
}

// Interrupt has the effect of Ctrl-C.
func (k *Keyboard) Interrupt() { _ = unix.Kill(os.Getpid(), unix.SIGINT) }
