package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/assay-eval/assay"
)

// Limits of one transaction. They keep the time to a commit and the memory of a batch small. A
// smaller batch does not wait to reach them. The IDs of trials are spread over whole indexes, so a
// commit of more attempts writes hardly more pages of these.
const (
	batchOps   = 1024
	batchBytes = 4 << 20
)

// An op is one write, which happens entirely or not at all.
type op struct {
	// apply runs in the writer's goroutine.
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
	// layout is that of the store.
	layout *layout
	// ctx carries the values of the opener's context and never ends, because a transaction is
	// committed or rolled back even if its caller has left.
	ctx context.Context
	// statements are the statements that were used so far, by their text.
	statements map[string]*sql.Stmt
	row        []any // see join

	runs map[assay.RunID]runKey
	// last is the highest row ID that an attempt ever had.
	last int64
	// files are the store's files as they were opened, to notice if they are moved.
	files map[string]os.FileInfo
	// failed is the error that ended all writing. It does not change once broken is closed.
	failed error
	broken chan struct{}
	locked *lockWait
}

func newWriter(ctx context.Context, conn *sql.Conn) *writer {
	return &writer{
		conn: conn, ctx: ctx, statements: make(map[string]*sql.Stmt),
		runs: make(map[assay.RunID]runKey), locked: &lockWait{longest: longestLock},
		broken: make(chan struct{}),
	}
}

func (w *writer) serve(queue <-chan *op) {
	var b batching
	for first := range queue {
		batch := gather([]*op{first}, queue)
		if n := len(batch); b.waits(n) {
			time.Sleep(commitWait)
			batch = gather(batch, queue)
			b.learn(n, len(batch))
		}
		w.commit(batch)
	}
}

// commitWait is how long a batch waits for more writes, if that is worth while. A commit takes about as
// long.
const commitWait = 5 * time.Millisecond

// Batching decides whether a batch waits for more writes. It does as long as that at least
// doubles batches, because a commit flushes the disk and writes pages of indexes, however few
// writes it has. A single write never begins to wait.
type batching struct {
	waiting bool
	rests   int // commits until it tries again
}

// waits reports whether a batch of n writes waits.
func (b *batching) waits(n int) bool {
	if b.rests > 0 {
		b.rests--
		return false
	}
	return b.waiting || n > 1
}

// learn adapts b to the size to which a batch of n writes has grown.
func (b *batching) learn(n, grown int) {
	if b.waiting = grown >= 2*n; !b.waiting {
		b.rests = 32
	}
}

// gather adds the writes that are waiting now to a batch.
func gather(batch []*op, queue <-chan *op) []*op {
	bytes := 0
	for _, o := range batch {
		bytes += o.bytes
	}
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

// commit writes the batch to disk and answers the callers. If an op is refused, the halves of the
// batch are committed apart, until the op is alone and affects no others. Any other error fails the
// whole batch and ends all writing.
func (w *writer) commit(batch []*op) {
	err := w.failed
	if err == nil {
		err = w.insist(batch)
		refused, ok := refusal(err)
		switch {
		case ok && len(batch) > 1:
			half := len(batch) / 2
			w.commit(batch[:half])
			w.commit(batch[half:])
			return
		case ok:
			err = refused
		case err != nil:
			if !errors.Is(err, ErrBusy) { // which has been explained
				err = explain(w.path, err)
			}
			w.failed = err
			close(w.broken)
		}
	}
	for _, o := range batch {
		o.done <- err
	}
}

// try applies and commits the batch in one transaction, of which no part remains if it fails.
func (w *writer) try(batch []*op) (err error) {
	last := w.last
	if err := w.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			// If SQLite has rolled back on its own, this fails and does no harm.
			_ = w.exec("ROLLBACK")
			clear(w.runs)
			w.last = last
		}
	}()
	for _, o := range batch {
		if err := o.apply(w); err != nil {
			return err
		}
	}
	if err := w.exec("COMMIT"); err != nil {
		return err
	}
	return w.checkFiles()
}

// exec executes a statement. Times among its arguments are stored as text.
func (w *writer) exec(query string, args ...any) error {
	_, err := w.change(query, args...)
	return err
}

// change is exec, and returns the number of rows that were changed.
func (w *writer) change(query string, args ...any) (rows int64, err error) {
	for i, arg := range args {
		if at, ok := arg.(time.Time); ok {
			if args[i], err = formatTime(at); err != nil {
				return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
			}
		}
	}
	s, err := w.statement(query)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(w.ctx, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// get scans the only row of a query.
func (w *writer) get(query string, args []any, to ...any) error {
	s, err := w.statement(query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(w.ctx, args...).Scan(to...)
}

func (w *writer) statement(query string) (s *sql.Stmt, err error) {
	if s = w.statements[query]; s != nil {
		return s, nil
	}
	if s, err = w.conn.PrepareContext(w.ctx, query); err == nil {
		w.statements[query] = s
	}
	return s, err
}

// noteFiles notes which files the writer writes to.
func (w *writer) noteFiles() error {
	// The first read creates the log.
	err := w.get("SELECT count(*) FROM sqlite_schema", nil, new(int))
	if err != nil {
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
	err := w.exec("PRAGMA busy_timeout = 1000")
	if err == nil {
		var busy, logged, moved int
		err = w.get("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &logged, &moved)
	}
	return explain(w.path, err)
}

func (w *writer) close() (err error) {
	// While a statement is open, so are SQLite's files.
	for _, s := range w.statements {
		err = errors.Join(err, s.Close())
	}
	if w.conn != nil {
		err = errors.Join(err, w.conn.Close())
	}
	return errors.Join(err, w.pool.Close())
}

// learnLast reads the highest row ID that an attempt ever had.
func (w *writer) learnLast() error {
	return w.get(`SELECT ifnull(max(id), 0) FROM (SELECT id FROM attempts
		UNION ALL SELECT s.value ->> 'last' FROM deletions, json_each(what, '$.rows.attempts') s)`,
		nil, &w.last)
}
