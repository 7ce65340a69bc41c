package store

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
)

// watchSyncs is nil, except in tests that cut the power.
var watchSyncs atomic.Pointer[func(path string, directory bool) error]

// WatchSyncs has a function called after this program, and not SQLite, has synced a file or directory.
// The sync fails if the function does.
func WatchSyncs(f func(path string, directory bool) error) { watchSyncs.Store(&f) }

func synced(path string, directory bool) error {
	if f := watchSyncs.Load(); f != nil {
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

func flush(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(SyncFile(f), f.Close())
}

// SyncDir makes new names in a directory survive a power cut. It does nothing on Windows, which
// cannot open directories, and on file systems that cannot sync them.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
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
