// Package store keeps trials, their attempts and transcripts, later verdicts on them, and the
// commands that runs received, in one SQLite file.
//
// The package guarantees that a saved attempt is on disk before [DB.Save] returns, that attempts
// are only ever added, and that a trial is settled at most once. Later verdicts are added next to
// the outcome, by [DB.Rescore] if new rules give them and by [DB.Classify] if a model does. Saves
// from many goroutines go through one writer, which commits everything that is queued in one
// transaction. They share the cost of a disk flush. A save waits five milliseconds for others as
// long as that doubles batches, and otherwise not at all.
//
// Every row has a seal, which [DB.Verify] checks, and readers too. They can skip damaged rows, and
// [Recover] copies the intact ones to a new store, as far as SQLite can read the file. If it cannot
// read a page, restore a backup: see [DB.Backup].
//
// The package refuses a file that it cannot read, and never repairs, renames or deletes one. It
// checks attempts only against its schema, and stores no aggregates. Scoring, and counting by
// factors, belong to the readers of [DB.Attempts]. Only requests, tokens, money and time are summed
// here: see [DB.Spent] and [DB.Profile].
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	_ "modernc.org/sqlite" // the driver named "sqlite"
)

// A DB is an open store. It is safe for concurrent use.
type DB struct {
	path   string
	reader *sql.DB
	layout *layout
	// dec knows the dictionaries that were needed so far.
	dec atomic.Pointer[zstd.Decoder]

	scores, costs revisions
	// proved is the row ID up to which all attempts were proved, or skipped, so that SQL may choose
	// among them.
	proved atomic.Int64

	// damage is nil unless [DB.SkipDamage] was called.
	damage *damage

	// enc compresses transcripts. Its dictionary, if it has one, is on disk.
	enc atomic.Pointer[zstd.Encoder]
	// sample is nil once enc is final, and in a store opened for reading.
	sample atomic.Pointer[sample]

	// w, lock and queue are nil in a store opened for reading.
	w      *writer
	lock   *lock
	locked *lockWait // of w, and otherwise of nothing
	// queue feeds the writer. It is unbuffered, so a write that is not in a batch yet is still
	// held by its goroutine. Close closes it after the last of these has left.
	queue chan *op

	numbers numbering

	mu     sync.Mutex
	closed bool           // guarded by mu
	active sync.WaitGroup // goroutines inside do; grows only under mu
	writer sync.WaitGroup // the writer goroutine

	closeOnce sync.Once
	closeErr  error // set by closeOnce
}

const (
	// zstdWindow suits transcripts, which take tens of kilobytes. A larger window costs memory
	// and saves little.
	zstdWindow = 128 << 10
	// maxTranscript limits the memory that a damaged row can make us allocate.
	maxTranscript = 1 << 30
)

// Open opens the store at path for writing. If the file is missing or empty, Open creates the
// store. Only one process at a time can have a store open for writing: see [ErrInUse]. It adds
// the columns that a store of an older program lacks. Open refuses other files, and stores of a
// format that is not known, without touching them: see [ErrNotStore] and [ErrNewer].
func Open(ctx context.Context, path string) (*DB, error) {
	return openKnowing(ctx, path, programLayout())
}

// openKnowing is Open for a program that knows other columns.
func openKnowing(ctx context.Context, path string, known *layout) (*DB, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if err := inspect(ctx, path); err != nil {
		return nil, err
	}
	lk, err := acquire(path)
	if err != nil {
		return nil, err
	}
	w, err := openWriter(ctx, path, known)
	if err != nil {
		return nil, errors.Join(err, lk.release())
	}
	db, err := newDB(ctx, path, readDSN(path), w.layout)
	if err != nil {
		return nil, errors.Join(err, w.close(), lk.release())
	}
	if err := db.beginSample(ctx); err != nil {
		return nil, errors.Join(err, db.reader.Close(), w.close(), lk.release())
	}
	if err := w.exec(fmt.Sprintf("PRAGMA busy_timeout = %d", oneTry)); err != nil {
		return nil, errors.Join(explain(path, err), db.reader.Close(), w.close(), lk.release())
	}
	db.w, db.lock, db.locked, db.queue = w, lk, w.locked, make(chan *op)
	db.writer.Go(func() { w.serve(db.queue) })
	return db, nil
}

// OpenReadOnly opens the store at path for reading. It takes no lock and does not change the store.
// It works while a run writes, after a run was killed, and in a directory that is not writable.
func OpenReadOnly(ctx context.Context, path string) (*DB, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	dsn, err := findReadable(ctx, path)
	if err != nil {
		return nil, err
	}
	return newDB(ctx, path, dsn, nil)
}

// newDB opens a store for reading. It finds out the layout unless that is known.
func newDB(ctx context.Context, path, dsn string, l *layout) (*DB, error) {
	reader, err := sql.Open("sqlite", dsn)
	if err == nil && l == nil {
		l, err = readLayout(ctx, reader, programLayout())
		if isDamage(err) {
			l, err = newLayout(nil, nil), nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	// The number of open connections is not limited, because a loop over attempts may look up
	// transcripts, and with a limit such loops could wait for each other.
	reader.SetMaxIdleConns(1)
	db := &DB{path: path, reader: reader, layout: l, locked: new(lockWait)}
	db.dec.Store(newDecoder())
	db.enc.Store(dictionary{}.encoder())
	return db, nil
}

// Close saves everything that is queued, folds the write-ahead log into the main file and
// releases the lock. Later saves fail with [ErrClosed]. Further calls of Close return the result
// of the first.
func (db *DB) Close() error {
	db.closeOnce.Do(func() { db.closeErr = db.close() })
	return db.closeErr
}

func (db *DB) close() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()
	db.active.Wait()

	errs := []error{db.reader.Close()}
	if db.w != nil {
		close(db.queue)
		db.writer.Wait()
		errs = append(errs, db.w.checkpoint(), db.w.close(), db.lock.release())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close store %s: %w", db.path, err)
	}
	return nil
}

// Broken is closed when a write fails for a reason that is not in its content, such as a full disk. No
// write succeeds afterwards, and [DB.WriteError] has the reason. It is nil for a store opened for reading.
func (db *DB) Broken() <-chan struct{} {
	if db.w == nil {
		return nil
	}
	return db.w.broken
}

// WriteError returns why nothing can be written any more, or nil.
func (db *DB) WriteError() error {
	select {
	case <-db.Broken():
		return db.w.failed
	default:
		return nil
	}
}

// do passes apply to the writer and waits until its transaction is on disk.
func (db *DB) do(ctx context.Context, bytes int, apply func(*writer) error) error {
	if db.queue == nil {
		return fmt.Errorf("store %s was opened for reading: %w", db.path, ErrReadOnly)
	}
	if !db.enter() {
		return fmt.Errorf("store %s: %w", db.path, ErrClosed)
	}
	defer db.active.Done()

	o := &op{apply: apply, bytes: bytes, done: make(chan error, 1)}
	select {
	case db.queue <- o:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("it is unknown whether the write happened: %w", context.Cause(ctx))
	}
}

// write is do, and puts the action before an error.
func (db *DB) write(ctx context.Context, what string, bytes int, apply func(*writer) error) error {
	if err := db.do(ctx, bytes, apply); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// enter reports whether the store is open. If it is, Close waits for active.Done.
func (db *DB) enter() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return false
	}
	db.active.Add(1)
	return true
}
