// Package durable makes files survive a power cut.
package durable

import (
	"errors"
	"os"
	"sync/atomic"
	"syscall"
)

// watch is nil, except in tests that cut the power.
var watch atomic.Pointer[func(path string, directory bool) error]

// Watch has a function called after a file or directory was synced. The sync fails if the function
// does.
func Watch(f func(path string, directory bool) error) { watch.Store(&f) }

func synced(path string, directory bool) error {
	if f := watch.Load(); f != nil {
		return (*f)(path, directory)
	}
	return nil
}

// SyncFile makes the content of a file survive a power cut, and [SyncDir] its name.
func SyncFile(f *os.File) error {
	if err := f.Sync(); err != nil {
		return err
	}
	return synced(f.Name(), false)
}

// SyncDir makes new names in a directory survive a power cut. It does nothing on file systems that
// cannot sync directories.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	switch {
	case err == nil:
		err = synced(dir, true)
	case errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported):
		err = nil
	}
	return errors.Join(err, f.Close())
}
