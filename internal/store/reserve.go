package store

import (
	"errors"
	"os"

	"github.com/gofrs/flock"
)

// ErrReserved means that another program makes the file.
var ErrReserved = errors.New("another program makes the file")

// A Reservation keeps a name for one program while it makes the file. It is a lock on a separate
// file. The operating system releases it when the program ends, however it ends. The separate file
// then stays behind, but blocks no other program.
type Reservation struct{ file *flock.Flock }

// Reserve locks the file at path, which it creates. If another program holds the lock, it returns
// [ErrReserved] at once.
func Reserve(path string) (*Reservation, error) {
	for {
		file := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
		ok, err := file.TryLock()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errors.Join(ErrReserved, file.Close())
		}
		// The previous holder may have removed this file between our open and our lock. Then
		// other programs lock a newer file at the same path, and ours is useless.
		mine, err := file.Stat()
		now, gone := os.Stat(path)
		switch {
		case gone == nil && err == nil && os.SameFile(mine, now):
			return &Reservation{file}, nil
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
func (r *Reservation) Release() error {
	_ = os.Remove(r.file.Path())
	return r.file.Close()
}
