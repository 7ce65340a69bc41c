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

// Reasons why a store cannot be opened.
var (
	ErrInUse    = errors.New("in use by another run")
	ErrNoStore  = errors.New("store not found")
	ErrNotStore = errors.New("not an assay store")
	ErrNewer    = errors.New("written by a newer assay")
	ErrOlder    = errors.New("written by an older assay")
)

// Reasons why a store stops working. After a write fails with ErrDiskFull, ErrReadOnly, ErrMoved,
// ErrBusy or ErrDisk, the store refuses all later writes, so the run has to end. Earlier saves
// are safe. ErrBusy comes after an hour, or after [DB.GiveUp].
var (
	ErrDiskFull = errors.New("disk full")
	ErrReadOnly = errors.New("read-only")
	ErrMoved    = errors.New("store file was moved or deleted while open")
	ErrBusy     = errors.New("locked by another program")
	ErrDisk     = errors.New("disk error")
	ErrDamaged  = errors.New("damaged")
	ErrClosed   = errors.New("closed")
)

// Reasons why the store refuses one record. It still accepts others.
var (
	ErrSettled    = errors.New("trial is already settled")
	ErrInvalid    = errors.New("invalid record")
	ErrUnknownRun = errors.New("unknown run")
	ErrRunExists  = errors.New("run already exists")
	ErrRunEnded   = errors.New("run has already ended")
)

// Reasons why a lookup fails.
var (
	ErrNotFound        = errors.New("not found")
	ErrPrefix          = errors.New("not the beginning of a trial ID")
	ErrUnknownSnapshot = errors.New("not a snapshot of this store")
)

// ErrChanged means that rows were deleted while a reader was reading the store.
var ErrChanged = errors.New("attempts were deleted while the store was being read")

// An AmbiguousError means that several trials begin with a prefix.
type AmbiguousError struct {
	Prefix string
	// Trials are some of them, at most five.
	Trials []assay.TrialID
	// More means that there are others.
	More bool
}

func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s matches more than one trial:", e.Prefix)
	for _, id := range e.Trials {
		b.WriteString(" " + string(id))
	}
	if e.More {
		b.WriteString(" …")
	}
	b.WriteString("\nhint: give more digits")
	return b.String()
}

func hinted(err error, hint string) error { return fmt.Errorf("%w\nhint: %s", err, hint) }

// coded returns an error about the store at a path, with the code of a hint and its further facts.
func coded(err error, hint assay.Hint, path string, facts ...any) error {
	return assay.WithHint(err, hint, append([]any{assay.StorePath(path)}, facts...)...)
}

// damaged returns the error of damage that verify and recover can tell more about. The path is empty
// if the caller names the store.
func damaged(path, what string) error {
	err := fmt.Errorf("%w: %s", ErrDamaged, what)
	if path != "" {
		err = fmt.Errorf("store %s: %w", path, err)
	}
	return coded(err, assay.HintRescue, path)
}

// code returns the extended result code of SQLite in err's chain, or 0.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// primary returns the primary result code of SQLite in err's chain, or 0.
func primary(err error) int { return code(err) & 0xff }

// explain adds a sentinel error and a hint to an error of SQLite. It returns other errors
// unchanged.
func explain(path string, err error) error {
	if err == nil {
		return nil
	}
	var sentinel error
	var hint string
	var advice assay.Hint // that names a command
	switch c := primary(err); {
	case isFull(err):
		sentinel, hint = ErrDiskFull, "what is in the store is safe; free space and run again"
	case c == sqlite3.SQLITE_IOERR, c == sqlite3.SQLITE_PROTOCOL, errors.Is(err, syscall.EIO):
		sentinel = ErrDisk
		hint = "what is in the store is safe; check the system log for disk errors, then run again"
	case code(err) == sqlite3.SQLITE_READONLY_ROLLBACK:
		sentinel, advice = ErrReadOnly, assay.HintRollBack
	case c == sqlite3.SQLITE_READONLY, c == sqlite3.SQLITE_PERM:
		sentinel = ErrReadOnly
		hint = "check the permissions of the file and its directory, or use --store another.db"
	case c == sqlite3.SQLITE_BUSY, c == sqlite3.SQLITE_LOCKED:
		sentinel = ErrBusy
		hint = "another program has the file open for writing; close it and run again"
	case c == sqlite3.SQLITE_CORRUPT, c == sqlite3.SQLITE_NOTADB:
		sentinel, advice = ErrDamaged, assay.HintRescue
	default:
		return err
	}
	err = fmt.Errorf("store %s: %w: %w", path, sentinel, err)
	if advice != "" {
		return coded(err, advice, path)
	}
	return hinted(err, hint)
}

// isFull reports whether the disk was full, for the file, the shared index of its log, or the
// file of the lock.
func isFull(err error) bool {
	return primary(err) == sqlite3.SQLITE_FULL || code(err) == sqlite3.SQLITE_IOERR_SHMSIZE ||
		errors.Is(err, syscall.ENOSPC)
}

// refusal reports whether err concerns one record only, and returns it as an error of this
// package.
func refusal(err error) (error, bool) {
	switch primary(err) {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH,
		sqlite3.SQLITE_RANGE:
		return fmt.Errorf("%w: %w", ErrInvalid, err), true
	}
	for _, known := range []error{
		ErrImported, ErrSettled, ErrInvalid, ErrNotFound, ErrUnknownRun, ErrRunExists, ErrRunEnded,
	} {
		if errors.Is(err, known) {
			return err, true
		}
	}
	return err, false
}
