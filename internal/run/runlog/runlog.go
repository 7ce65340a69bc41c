// Package runlog writes the log of a run as one or more files with one JSON
// object per line. It can also store complete episodes of selected trials for
// debugging.
//
// The log is for people. It may lag or fail without any effect on the run. Callers choose the
// records, and a run never continues from a log; the results are in the store.
package runlog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

const (
	// queueBytes is the size at which the queue is full. One more record or
	// episode may exceed it, and as many bytes again may be on their way to the
	// file. Errors have as much room again.
	queueBytes = 8 << 20
	// closeWait is how long Close waits for the queue to be written.
	closeWait = 5 * time.Second

	defaultMaxBytes = 64 << 20
)

// Options configure a log. The zero value logs from level info on, in parts of 64 MiB, deletes no
// logs and captures no episodes.
type Options struct {
	// Experiment is the experiment's name. It becomes part of the file name.
	Experiment string
	// Level is the minimum level. Errors are always written.
	Level slog.Level
	// MaxBytes limits the size of a part; 0 means 64 MiB. A longer record gets its own part.
	MaxBytes int64
	// Keep limits the older logs in the directory.
	Keep Keep
	// Secrets must not appear in any file. Secrets of fewer than eight bytes
	// are not redacted.
	Secrets []string
	// Trials selects the trials whose episodes are captured; nil selects no trials.
	Trials func(assay.TrialID) bool
	// Failed, if set, is called once with the error that ended the log before
	// the end of its run. The log's own goroutine calls it, so it must not
	// close the log.
	Failed func(error)

	open  func(root *os.Root, name string) (file, error) // the default is create
	queue int                                            // the default is queueBytes
}

// A file is the part of [os.File] that the log uses.
type file interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Close() error
}

func create(root *os.Root, name string) (file, error) {
	return root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
}

// A Log is the log of one run. Its methods may be called by any goroutine at any time, and have no
// effect on a nil Log. Except for Close, they never wait for a file.
//
// Records wait in a queue for the goroutine that owns the files. When the queue
// is full, they are dropped and counted. If a file cannot be written, the log
// ends: it calls Failed, and drops and counts the rest.
type Log struct {
	opts    Options
	root    *os.Root
	stem    string
	secrets *wire.Redactor
	logger  *slog.Logger

	mu      sync.Mutex
	queue   []logLine  // guarded by mu, like the next fields
	bytes   int        // size of queue
	dropped int        // number of records and episodes
	closed  bool       // new records are ignored
	changed *sync.Cond // the queue or closed has changed

	done chan struct{} // closed when work returns

	closing  sync.Once
	closeErr error // set in closing

	// Owned by work. Others may read failure after done is closed.
	part    file
	number  int   // number of part, from 1
	size    int64 // size of part
	inUse   *os.File
	failure error
}

// A logLine is a line of the log or, if episode is set, the content of that
// file.
type logLine struct {
	text    []byte
	episode string
}

// Open starts the log of a run in dir/<start in UTC>-<experiment>-<run>.jsonl
// and deletes older logs as Keep specifies. It returns an error if the file
// already exists. The caller has to call Close.
func Open(dir string, run assay.RunID, started time.Time, opts Options) (*Log, error) {
	opts.MaxBytes = cmp.Or(opts.MaxBytes, defaultMaxBytes)
	opts.queue = cmp.Or(opts.queue, queueBytes)
	if opts.open == nil {
		opts.open = create
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l := &Log{
		opts: opts, root: root, stem: stem(started, opts.Experiment, run),
		secrets: newRedactor(opts.Secrets), number: 1,
		done: make(chan struct{}),
	}
	l.changed = sync.NewCond(&l.mu)
	if l.part, err = opts.open(root, partName(l.stem, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), root.Close())
	}
	l.inUse, _ = markInUse(root, partName(l.stem, 1))
	l.logger = slog.New(handler{l, slog.NewJSONHandler(lines{l}, nil)})
	go l.work()
	if err := prune(root, l.stem, opts.Keep, time.Now()); err != nil {
		l.logger.Warn("cannot delete old logs", "error", err.Error())
	}
	return l, nil
}

// Logger returns the logger that writes to the log.
func (l *Log) Logger() *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l.logger
}

// Episode captures an attempt in <log>-trials/<trial>-<number>.json if Trials
// selects the trial. The file is written completely or not at all. Episode does
// not keep t or a.
func (l *Log) Episode(trial assay.TrialID, number int, t *assay.Transcript, a *assay.Attempt) {
	if l == nil || l.opts.Trials == nil || !l.opts.Trials(trial) || !l.active() {
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Attempt    *assay.Attempt    `json:"attempt"`
		Transcript *assay.Transcript `json:"transcript"`
	}{a, t})
	if err != nil {
		l.logger.Error("episode not captured",
			"trial", trial, "attempt", number, "error", err.Error())
		return
	}
	l.put(logLine{text: b.Bytes(), episode: episodeName(trial, number)}, l.opts.queue)
}

// Dropped returns the number of records and episodes that were not written.
func (l *Log) Dropped() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Close writes the queued records, adds a last record with the number of
// dropped ones, and ends the log. The last record is an error if any were
// dropped. Later records are ignored.
//
// If the file is stuck, Close gives up after five seconds and leaves the log's
// goroutine behind. It returns the error that ended the log early, if any, on
// every call.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed = true
		l.changed.Signal()
		l.mu.Unlock()
		timer := time.NewTimer(closeWait)
		defer timer.Stop()
		select {
		case <-l.done:
			l.closeErr = l.failure
		case <-timer.C:
			l.closeErr = fmt.Errorf("close log %s: the file accepted no data for %v",
				l.stem, closeWait)
		}
	})
	return l.closeErr
}

// put queues e, or drops it if the queue has as many bytes.
func (l *Log) put(e logLine, most int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case l.bytes >= most:
		l.dropped++
	default:
		l.queue = append(l.queue, e)
		l.bytes += len(e.text)
		l.changed.Signal()
	}
}

// drops reports whether a record below level error has no room, and counts it then.
func (l *Log) drops() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.bytes < l.opts.queue {
		return false
	}
	l.dropped++
	return true
}

// active reports whether the log is still open.
func (l *Log) active() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed
}

// take waits for entries and returns all of them. It returns nil when the log is closed.
func (l *Log) take() []logLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.changed.Wait()
	}
	batch := l.queue
	l.queue, l.bytes = nil, 0
	return batch
}

// lines queues the output of an encoder, one record per Write.
type lines struct{ log *Log }

func (w lines) Write(b []byte) (int, error) {
	w.log.put(logLine{text: bytes.Clone(b)}, 2*w.log.opts.queue)
	return len(b), nil
}

// A handler encodes records in the caller's goroutine, because the values that
// they refer to may change.
type handler struct {
	log *Log
	slog.Handler
}

func (h handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= min(h.log.opts.Level, slog.LevelError) && h.log.active()
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelError && h.log.drops() {
		return nil
	}
	r.Time = r.Time.UTC()
	return h.Handler.Handle(ctx, r)
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.log, h.Handler.WithAttrs(attrs)}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.log, h.Handler.WithGroup(name)}
}
