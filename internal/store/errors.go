package store

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// Why a store cannot be opened.
var (
	ErrInUse    = errors.New("in use by another run")
	ErrNoStore  = errors.New("no store here")
	ErrNotStore = errors.New("not an assay store")
	ErrNewer    = errors.New("written by a newer assay")
	ErrOlder    = errors.New("written by an older assay")
)

// Why a store stops working. After ErrDiskFull, ErrReadOnly, ErrMoved, ErrBusy
// or ErrDisk from a write the store refuses all later writes: the run has to
// end. What was saved before is safe.
var (
	ErrDiskFull = errors.New("disk full")
	ErrReadOnly = errors.New("read-only")
	ErrMoved    = errors.New("store file was moved or deleted while open")
	ErrBusy     = errors.New("locked by another program")
	ErrDisk     = errors.New("disk error")
	ErrDamaged  = errors.New("damaged")
	ErrClosed   = errors.New("closed")
)

// Why the store refuses one record, while others are still welcome.
var (
	ErrSettled    = errors.New("trial is already settled")
	ErrInvalid    = errors.New("invalid record")
	ErrUnknownRun = errors.New("unknown run")
	ErrRunExists  = errors.New("run was begun before")
	ErrRunEnded   = errors.New("run has ended before")
)

// Why a look-up finds nothing.
var (
	ErrNotFound        = errors.New("not found")
	ErrPrefix          = errors.New("not the beginning of a trial ID")
	ErrUnknownSnapshot = errors.New("not a snapshot of this store")
)

// ErrChanged says that rows were deleted while a reader was in the midst of them.
var ErrChanged = errors.New("attempts were deleted while it was read")

// errDangling means that an attempt refers to a missing trial or run.
var errDangling = hinted(fmt.Errorf("%w: its trial or its run is missing", ErrDamaged), doRescue)

// An AmbiguousError says that a prefix fits more than one trial.
type AmbiguousError struct {
	Prefix string
	// Trials are some of them, at most five.
	Trials []assay.TrialID
	// More says that there are others.
	More bool
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s fits more than one trial:", e.Prefix)
	for _, id := range e.Trials {
		b.WriteString(" " + string(id))
	}
	if e.More {
		b.WriteString(" …")
	}
	b.WriteString("\nhint: give more digits")
	return b.String()
}

// doRescue says what helps against a damaged store.
const doRescue = "nothing was changed; \"assay verify\" says what is wrong, \"assay export\" reads what is whole, \"assay recover\" copies it to a new store"

func hinted(err error, hint string) error { return fmt.Errorf("%w\nhint: %s", err, hint) }

// code is the extended result code of SQLite in err's chain, or 0.
func code(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func primary(err error) int { return code(err) & 0xff }

// explain gives an error of SQLite the sentinel and the hint that a user needs.
// Other errors pass unchanged.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	var sentinel error
	var hint string
	switch c := primary(err); {
	case isFull(err):
		sentinel, hint = ErrDiskFull, "results so far are safe; free space and run again"
	case c == sqlite3.SQLITE_IOERR, c == sqlite3.SQLITE_PROTOCOL:
		sentinel, hint = ErrDisk, "results so far are safe; see the system's log for the state of the disk, then run again"
	case code(err) == sqlite3.SQLITE_READONLY_ROLLBACK:
		sentinel, hint = ErrReadOnly, "its -journal file is of a write that was cut off, or of another store: in the first case \"assay run\" rolls that back, in the second move the -journal file away"
	case c == sqlite3.SQLITE_READONLY, c == sqlite3.SQLITE_PERM:
		sentinel, hint = ErrReadOnly, "check the permissions of the file and its directory, or use --store another.db"
	case c == sqlite3.SQLITE_BUSY, c == sqlite3.SQLITE_LOCKED:
		sentinel, hint = ErrBusy, "another program has the file open for writing; close it and run again"
	case c == sqlite3.SQLITE_CORRUPT, c == sqlite3.SQLITE_NOTADB:
		sentinel, hint = ErrDamaged, doRescue
	default:
		return err
	}
	return hinted(fmt.Errorf("store %s: %w: %w", path, sentinel, err), hint)
}

// isFull reports that there was no room to write: for the file, for the shared
// index of the log, or for the lock's file.
func isFull(err error) bool {
	return primary(err) == sqlite3.SQLITE_FULL || code(err) == sqlite3.SQLITE_IOERR_SHMSIZE || errors.Is(err, syscall.ENOSPC)
}

// refusal reports whether err concerns one record alone, and returns it as an
// error of this package.
func refusal(err error) (error, bool) {
	switch primary(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_RANGE:
		return fmt.Errorf("%w: %w", ErrInvalid, err), true
	}
	for _, known := range []error{ErrImported, ErrSettled, ErrInvalid, ErrNotFound, ErrUnknownRun, ErrRunExists, ErrRunEnded} {
		if errors.Is(err, known) {
			return err, true
		}
	}
	return err, false
}
