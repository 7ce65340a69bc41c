package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/assay-eval/assay"
)

// Limits of one transaction. They keep the time to a commit and the memory of a batch small. A
// smaller batch does not wait to reach them.
const (
	batchOps   = 256
	batchBytes = 4 << 20
)

// An op is one write, which happens entirely or not at all.
type op struct {
	// apply runs in the writer's goroutine, inside a savepoint.
	apply func(*writer) error
	bytes int
	// done receives the result. It is buffered so that the writer never waits.
	done chan error
}

// A writer is the only connection that writes. After openWriter its fields belong to the
// goroutine in serve, and after that has returned to Close.
type writer struct {
	path string
	pool *sql.DB
	conn *sql.Conn
	// ctx carries the values of the opener's context and never ends, because a transaction is
	// committed or rolled back even if its caller has left.
	ctx  context.Context
	stmt statements
	runs map[assay.RunID]runKey
	// last is the highest row ID that an attempt ever had.
	last int64
	// gone has the highest ID of a deleted row for each kind of row. IDs are not reused,
	// because the record of the deletion would excuse the loss of the second row too.
	gone map[string]int64
	// files are the store's files as they were opened, to notice if they are moved.
	files map[string]os.FileInfo
	// failed is the error that ended all writing.
	failed error
}

func (w *writer) serve(queue <-chan *op) {
	for first := range queue {
		w.commit(gather(first, queue))
	}
}

// gather returns first and the other writes that are waiting now.
func gather(first *op, queue <-chan *op) []*op {
	batch, bytes := []*op{first}, first.bytes
	for len(batch) < batchOps && bytes < batchBytes {
		select {
		case o, ok := <-queue:
			if !ok {
				return batch
			}
			batch, bytes = append(batch, o), bytes+o.bytes
		default:
			return batch
		}
	}
	return batch
}

// commit writes the batch to disk and answers the callers. A refused op leaves no trace and does
// not affect the others. Any other error fails the whole batch and ends all writing.
func (w *writer) commit(batch []*op) {
	var refused []error
	if w.failed == nil {
		var err error
		if refused, err = w.transact(batch); err != nil {
			w.failed = explain(w.path, err)
		}
	}
	for i, o := range batch {
		if w.failed != nil {
			o.done <- w.failed
			continue
		}
		o.done <- refused[i]
	}
}

func (w *writer) transact(batch []*op) (refused []error, err error) {
	if err := w.exec(w.stmt.begin); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			// If SQLite has rolled back on its own, this fails and does no harm.
			_ = w.exec(w.stmt.rollback)
			clear(w.runs)
		}
	}()
	refused = make([]error, len(batch))
	for i, o := range batch {
		if refused[i], err = w.apply(o); err != nil {
			return nil, err
		}
	}
	if err := w.exec(w.stmt.commit); err != nil {
		return nil, err
	}
	return refused, w.checkFiles()
}

// apply applies o in a savepoint. The first error concerns only o, the second the whole batch.
func (w *writer) apply(o *op) (refused, err error) {
	if err := w.exec(w.stmt.savepoint); err != nil {
		return nil, err
	}
	if err := o.apply(w); err != nil {
		var ok bool
		if refused, ok = refusal(err); !ok {
			return nil, err
		}
		if err := w.exec(w.stmt.undo); err != nil {
			return nil, err
		}
	}
	return refused, w.exec(w.stmt.release)
}

func (w *writer) exec(s *sql.Stmt, args ...any) error {
	_, err := s.ExecContext(w.ctx, args...)
	return err
}

// noteFiles notes which files the writer writes to.
func (w *writer) noteFiles(ctx context.Context) error {
	var objects int // the first read creates the log
	if err := w.conn.QueryRowContext(ctx,
		"SELECT count(*) FROM sqlite_schema").Scan(&objects); err != nil {
		return err
	}
	w.files = make(map[string]os.FileInfo)
	for _, name := range []string{w.path, w.path + "-wal"} {
		fi, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("store: %w", err)
		}
		w.files[name] = fi
	}
	return nil
}

// checkFiles returns an error if a file was moved. SQLite would go on writing to it, and the
// results would be lost.
func (w *writer) checkFiles() error {
	for name, opened := range w.files {
		if now, err := os.Stat(name); err != nil || !os.SameFile(opened, now) {
			return hinted(fmt.Errorf("%w: %s", ErrMoved, name),
				"put all files back where they were, and run again")
		}
	}
	return nil
}

// checkpoint folds the log into the main file. If readers prevent that, or if writing has
// failed, the results stay in the log, and the next process that opens the store finds them.
func (w *writer) checkpoint() error {
	if w.failed != nil {
		return nil
	}
	if _, err := w.conn.ExecContext(w.ctx, "PRAGMA busy_timeout = 1000"); err != nil {
		return explain(w.path, err)
	}
	var busy, logged, moved int
	row := w.conn.QueryRowContext(w.ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	err := row.Scan(&busy, &logged, &moved)
	return explain(w.path, err)
}

func (w *writer) close() error {
	errs := []error{w.stmt.close()}
	if w.conn != nil {
		errs = append(errs, w.conn.Close())
	}
	return errors.Join(append(errs, w.pool.Close())...)
}

// statements are the prepared statements of a writer.
type statements struct {
	begin, commit, rollback, savepoint, release, undo *sql.Stmt
	history, trial, attempt, seal, transcript         *sql.Stmt
	find, score                                       *sql.Stmt
}

func (s *statements) texts() map[**sql.Stmt]string {
	return map[**sql.Stmt]string{
		&s.begin:      "BEGIN IMMEDIATE",
		&s.commit:     "COMMIT",
		&s.rollback:   "ROLLBACK",
		&s.savepoint:  "SAVEPOINT op",
		&s.release:    "RELEASE op",
		&s.undo:       "ROLLBACK TO op",
		&s.history:    historySQL,
		&s.trial:      insertSQL("trials", trialColumns),
		&s.attempt:    insertSQL("attempts", attemptColumns),
		&s.seal:       "INSERT INTO attempt_seals (attempt, sum, script) VALUES (?, ?, ?)",
		&s.transcript: "INSERT INTO transcripts (attempt, body) VALUES (?, ?)",
		&s.find:       "SELECT id FROM attempts WHERE trial = ? AND number = ?",
		&s.score:      insertNext("scores", "id", scoreColumns),
	}
}

func (w *writer) compile(ctx context.Context) error {
	w.runs = make(map[assay.RunID]runKey)
	err := w.conn.QueryRowContext(ctx, `SELECT max((SELECT ifnull(max(id), 0) FROM attempts),
		(SELECT ifnull(max(last), 0) FROM deleted WHERE of = 'attempt'))`).Scan(&w.last)
	if err != nil {
		return err
	}
	if err := w.learnGone(); err != nil {
		return err
	}
	for s, text := range w.stmt.texts() {
		if *s, err = w.conn.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// learnGone reads the highest IDs of deleted rows.
func (w *writer) learnGone() (err error) {
	query := "SELECT of, max(last) FROM deleted GROUP BY of"
	w.gone, err = table[string, int64](w.ctx, w.conn, query)
	return err
}

// insertNext is insertSQL for a table whose IDs are not reused. The first argument is the highest
// ID of a deleted row.
func insertNext(table, id, columns string) string {
	next := "1 + max(?, (SELECT ifnull(max(" + id + "), 0) FROM " + table + "))"
	insert := insertSQL(table, id+", "+columns)
	return strings.Replace(insert, "VALUES (?", "VALUES ("+next, 1)
}

func (s *statements) close() error {
	var errs []error
	for stmt := range s.texts() {
		if *stmt != nil {
			errs = append(errs, (*stmt).Close())
		}
	}
	return errors.Join(errs...)
}
