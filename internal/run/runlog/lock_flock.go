//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package runlog

import (
	"errors"
	"os"
	"syscall"
)

// lock locks f until it is closed, and reports whether nobody else has.
func lock(f *os.File) bool {
	return !errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
