package store

import (
	"errors"
	"io"
	"os"

	"github.com/assay-eval/assay/internal/durable"
)

func flush(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(durable.SyncFile(f), f.Close())
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
		err = durable.SyncFile(f)
	}
	return errors.Join(err, f.Close())
}
