package store

import (
	"errors"
	"io"
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

// renewLog writes an earlier process's log again where it is. If a sync of it has failed, the system
// may take its pages for written, though they are not: then they can be read, no later sync writes
// them, and a power cut takes them with everything that was written behind them.
func (w *writer) renewLog() error {
	n, err := logSize(w.path)
	if err != nil || n == 0 {
		return err
	}
	if err := w.exec("BEGIN IMMEDIATE"); err != nil { // other programs write nothing meanwhile
		return err
	}
	return errors.Join(rewrite(w.path+"-wal"), w.exec("ROLLBACK"))
}

func rewrite(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.NewOffsetWriter(f, 0), f)
	if err == nil {
		err = SyncFile(f)
	}
	return errors.Join(err, f.Close())
}
