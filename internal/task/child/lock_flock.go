//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package child

import (
	"errors"
	"os"
	"syscall"
)

// lockFolder opens and locks a folder. It returns errInUse if somebody else has locked it. The lock
// lasts until the file is closed, and programs do not inherit it.
func lockFolder(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errInUse
	}
	if err == nil {
		_, err = os.Lstat(path) // whoever held the lock may have removed it
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
