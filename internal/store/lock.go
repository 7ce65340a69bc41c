package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/assay-eval/assay"
)

// A lock makes one process the writer of a store. The system releases it when the process ends,
// however it ends. The file beside the store stays, because after its removal two processes
// could each lock a file of that name.
type lock struct {
	flock *flock.Flock
	me    holder
}

// A holder is the content of a lock's file. It is used only in messages.
type holder struct {
	Run   assay.RunID `json:"run"`
	PID   int         `json:"pid"`
	Host  string      `json:"host"`
	Since time.Time   `json:"since"`
}

func acquire(path string) (*lock, error) {
	name := path + ".lock"
	fl := flock.New(name, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o644))
	ok, err := fl.TryLock()
	for tries := 0; !ok && err == nil && tries < 3; tries++ {
		time.Sleep(10 * time.Millisecond) // [DB.Worker] holds the lock for a moment
		ok, err = fl.TryLock()
	}
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil, hinted(fmt.Errorf("store %s: %w: %w", path, ErrReadOnly, err),
			"check the permissions of the directory, or use --store another.db")
	}
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	if !ok {
		return nil, errors.Join(inUse(path), fl.Close())
	}

	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	since := time.Now().UTC().Truncate(time.Second)
	lk := &lock{flock: fl, me: holder{PID: os.Getpid(), Host: host, Since: since}}
	if err := lk.write(); err != nil {
		return nil, errors.Join(explain(path, err), fl.Close())
	}
	return lk, nil
}

// holderOf reads who holds, or held, the lock. It returns zero if that is unknown.
func holderOf(path string) (h holder) {
	if b, err := os.ReadFile(path + ".lock"); err != nil || json.Unmarshal(b, &h) != nil {
		return holder{}
	}
	return h
}

// Worker returns the run that is working on the store, or "". A run that was killed has left its
// name in the lock's file, but not the lock.
func (db *DB) Worker() (assay.RunID, error) {
	h := holderOf(db.path)
	if h.Run == "" {
		return "", nil
	}
	fl := flock.New(db.path+".lock", flock.SetFlag(os.O_RDONLY))
	free, err := fl.TryRLock()
	if err != nil {
		return "", fmt.Errorf("look at the lock of the store: %w", err)
	}
	if free {
		return "", fl.Close()
	}
	return h.Run, fl.Close()
}

func inUse(path string) error {
	name := filepath.Base(path)
	err := fmt.Errorf("%s is %w", name, ErrInUse)
	if h := holderOf(path); h.PID != 0 {
		run := ""
		if h.Run != "" {
			run = fmt.Sprintf("run %s, ", h.Run)
		}
		since := h.Since.Format(time.RFC3339)
		err = fmt.Errorf("%s is %w (%spid %d on host %s since %s)",
			name, ErrInUse, run, h.PID, h.Host, since)
	}
	return hinted(err,
		"wait for it, or use --store another.db; status, show and export work meanwhile")
}

// name writes the run that holds the lock to the file.
func (l *lock) name(run assay.RunID) error {
	l.me.Run = run
	return l.write()
}

func (l *lock) write() error {
	b, err := json.Marshal(l.me)
	if err != nil {
		return fmt.Errorf("lock store: %w", err)
	}
	if err := os.WriteFile(l.flock.Path(), append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("lock store: %w", err)
	}
	return nil
}

// release empties the file and releases the lock. Call it only once.
func (l *lock) release() error {
	return errors.Join(os.Truncate(l.flock.Path(), 0), l.flock.Close())
}
