//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package runlog

import (
	"errors"
	"os"
	"syscall"
)

// lock locks f until it is closed. It returns false if another file descriptor
// holds the lock.
func lock(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK)
}
