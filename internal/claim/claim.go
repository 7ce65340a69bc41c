// Package claim keeps the name of a file for one program while it is being made.
//
// It owns lock files that are there only while somebody has them. What the name is for,
// and locks that stay, are others'.
package claim

import (
	"errors"
	"os"

	"github.com/gofrs/flock"
)

// ErrTaken says that another program has the claim.
var ErrTaken = errors.New("another program has it")

// A Claim is a lock on a file of its own. The system gives it up when the program ends,
// however it ends; the file then stays, and hinders nobody.
type Claim struct{ lock *flock.Flock }

// Take claims a path, at which a file comes to be. It does not wait: see [ErrTaken].
func Take(path string) (*Claim, error) {
	for {
		lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
		ok, err := lock.TryLock()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errors.Join(ErrTaken, lock.Close())
		}
		// Who had the claim before may have removed this file, and others lock the next.
		mine, err := lock.Stat()
		now, gone := os.Stat(path)
		switch {
		case gone == nil && err == nil && os.SameFile(mine, now):
			return &Claim{lock}, nil
		case gone != nil && !errors.Is(gone, os.ErrNotExist):
			err = errors.Join(err, gone)
		}
		if err = errors.Join(err, lock.Close()); err != nil {
			return nil, err
		}
	}
}

// Release removes the file while it is ours, and gives the claim up. Where a system does
// not remove what is open, the file stays, and is empty.
func (c *Claim) Release() error {
	_ = os.Remove(c.lock.Path())
	return c.lock.Close()
}
