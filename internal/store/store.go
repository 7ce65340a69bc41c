// Package store is the one record of trials, attempts and transcripts, of later
// verdicts on them, and of what runs learned of their lanes and were told to do:
// an SQLite file.
//
// It owns durability and the laws of the record. A saved attempt is on disk
// before [DB.Save] returns, attempts are only ever added, and a trial is
// settled at most once. What later rules or a model say of an outcome is added
// beside it: see [DB.Rescore] and [DB.Classify]. Saves from many goroutines meet
// in one writer that commits whatever is queued as one transaction, so the cost
// of a disk flush is shared and nobody waits for a batch to fill.
//
// It never invents, repairs, renames or deletes: a file that it cannot read is
// refused and left as it is. It stores no aggregates and does not judge what
// an attempt says beyond the constraints of its schema; scoring, and counting
// by factors, belong to the readers of [DB.Attempts] and [DB.Outcomes]. What it
// sums is what attempts took: see [DB.Spent] and [DB.Profile].
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

// Options adjust how a store is opened for writing. The zero value is right
// for a run.
type Options struct {
	// MaxBytes is the size past which the store's main file may not grow; a
	// save that needs more fails with [ErrDiskFull]. Zero means no limit.
	MaxBytes int64
}

// A DB is an open store. It is safe for concurrent use.
type DB struct {
	path   string
	reader *sql.DB
	// dec knows the dictionaries that were needed so far.
	dec atomic.Pointer[zstd.Decoder]

	// damage is nil while what cannot be read is an error.
	damage *damage

	// enc is what transcripts are compressed with. It has no dictionary that is
	// not on disk. sample is nil once enc is settled, and in a store that is
	// open for reading only.
	enc    atomic.Pointer[zstd.Encoder]
	sample atomic.Pointer[sample]

	// w, lock and queue are nil in a store that is open for reading only.
	w    *writer
	lock *lock
	// queue feeds the writer and is unbuffered: what is not in a batch yet is
	// held by the goroutines that want it saved. Close closes it, after the
	// last of them has left.
	queue chan *op

	mu     sync.Mutex
	closed bool           // guarded by mu
	active sync.WaitGroup // goroutines inside do; grows only under mu
	writer sync.WaitGroup // the writer goroutine

	closeOnce sync.Once
	closeErr  error // set by closeOnce
}

// Transcripts are tens of kilobytes: a larger window costs memory and finds
// little more. maxTranscript bounds what a damaged row can make us allocate.
const (
	zstdWindow    = 128 << 10
	maxTranscript = 1 << 30
)

// Open opens the store at path for writing and creates it when it is missing
// or empty. One process at a time can have a store open for writing; see
// [ErrInUse]. A file that is not a store, or of a newer program, is refused
// and not touched: see [ErrNotStore] and [ErrNewer].
func Open(ctx context.Context, path string, opts Options) (*DB, error) {
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
	w, err := openWriter(ctx, path, opts)
	if err != nil {
		return nil, errors.Join(err, lk.release())
	}
	db, err := newDB(path, readDSN(path))
	if err != nil {
		return nil, errors.Join(err, w.close(), lk.release())
	}
	if err := db.beginSample(ctx); err != nil {
		return nil, errors.Join(err, db.reader.Close(), w.close(), lk.release())
	}
	db.w, db.lock, db.queue = w, lk, make(chan *op)
	db.writer.Go(func() { w.serve(db.queue) })
	return db, nil
}

// OpenReadOnly opens the store at path for reading. It takes no lock and works
// while a run writes, after a run was killed, and where the directory cannot
// be written. It changes nothing in the store.
func OpenReadOnly(ctx context.Context, path string) (*DB, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	dsn, err := findReadable(ctx, path)
	if err != nil {
		return nil, err
	}
	return newDB(path, dsn)
}

func newDB(path, dsn string) (*DB, error) {
	reader, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", path, err)
	}
	// No bound on open connections: a loop over attempts may look up
	// transcripts, and a bound would let such loops wait for each other.
	reader.SetMaxIdleConns(1)
	db := &DB{path: path, reader: reader}
	db.dec.Store(newDecoder())
	db.enc.Store(dictionary{}.encoder())
	return db, nil
}

// Close saves what is queued, folds the write-ahead log into the main file and
// releases the lock. Saves that come later fail with [ErrClosed]. Every call
// of Close returns the result of the first.
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

// do hands apply to the writer and waits until the transaction that holds its
// work is durable.
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
		return fmt.Errorf("whether the write happened is unknown: %w", context.Cause(ctx))
	}
}

func (db *DB) enter() bool {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return false
	}
	db.active.Add(1)
	return true
}
