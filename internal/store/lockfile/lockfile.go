// Package lockfile reserves the name of a file for one program while the file is being made.
//
// It owns lock files that exist only while a program holds them. It does not know the purpose of
// the name. Locks that outlive their holder, such as the store's, are elsewhere.
package lockfile

import (
	"errors"
	"os"

	"github.com/gofrs/flock"
)

// ErrHeld means that another program holds the lock.
var ErrHeld = errors.New("another program holds the lock")

// A Lock is a lock on a separate file. The operating system releases it when the program
// ends, however it ends. The file then stays behind, but blocks no other program.
type Lock struct{ file *flock.Flock }

// Acquire locks the file at path, which it creates. If another program holds the lock, it
// returns [ErrHeld] at once.
func Acquire(path string) (*Lock, error) {
	for {
		file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
		ok, err := file.TryLock()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errors.Join(ErrHeld, file.Close())
		}
		// The previous holder may have removed this file between our open and our lock. Then
		// other programs lock a newer file at the same path, and ours is useless.
		mine, err := file.Stat()
		now, gone := os.Stat(path)
		switch {
		case gone == nil && err == nil && os.SameFile(mine, now):
			return &Lock{file}, nil
		case gone != nil && !errors.Is(gone, os.ErrNotExist):
			err = errors.Join(err, gone)
		}
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// Release removes the file while it is still locked, and unlocks it. On systems that cannot
// remove an open file, an empty file stays behind.
func (l *Lock) Release() error {
	_ = os.Remove(l.file.Path())
	return l.file.Close()
}
