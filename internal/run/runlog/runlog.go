// Package runlog keeps the structured log of a run: one file, or several parts
// of one, with a JSON object a line, and beside it whole episodes of chosen
// trials for debugging.
//
// A log is a view: it can lag or die, and the run does not notice. Nothing here
// decides what is worth a record, and nothing reads a log to go on from it;
// results are the store's.
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
)

const (
	// queueBytes of encoded records make the queue full; one more record or
	// episode may go beyond. As many again can be on their way to the file.
	queueBytes = 8 << 20
	// errorWait is how long a record of an error waits for room.
	errorWait = time.Second
	// closeWait is how long Close waits for what is queued.
	closeWait = 5 * time.Second

	defaultMaxBytes = 64 << 20
)

// Options say what a log holds. The zero value logs from level info on, in
// parts of 64 MiB, deletes nothing and captures no episode.
type Options struct {
	// Experiment is the experiment's name. It becomes part of the file's.
	Experiment string
	// Level is the least level that is written; errors are written at any.
	Level slog.Level
	// MaxBytes bounds a part of the log; 0 for 64 MiB. A record that is longer
	// has a part of its own.
	MaxBytes int64
	// Keep bounds the older logs of the directory.
	Keep Keep
	// Secrets are the values that no file may show. Those of less than eight
	// bytes protect nothing and are left as they are.
	Secrets []string
	// Trials chooses the trials whose episodes are captured; nil for none.
	Trials func(assay.TrialID) bool
	// Failed is told, once and by the log's own goroutine, what ended the
	// log before its run; nil for nobody. It must not close the log.
	Failed func(error)

	open func(root *os.Root, name string) (file, error) // nil for create
}

// A file is what the log needs of an [os.File].
type file interface {
	Write(b []byte) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

func create(root *os.Root, name string) (file, error) {
	return root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
}

// A Log is the log of one run. Its methods may be called by any goroutine at
// any time, none of them on a run's way waits for the file, and on a nil Log
// they do nothing.
//
// What is logged waits in a queue for the goroutine that owns the files. When
// the queue is full, records below level error and episodes are dropped and
// counted; a record of an error waits a second for room first, but not again
// until the file has taken something. When a file cannot be written, the log
// ends: Failed is told, and the rest is dropped and counted.
type Log struct {
	opts    Options
	root    *os.Root
	stem    string
	secrets redactor
	logger  *slog.Logger

	mu      sync.Mutex
	queue   []entry       // guarded by mu, and so are the next six
	bytes   int           // of queue
	dropped int           // records and episodes
	stuck   bool          // an error has waited in vain since the file last took something
	closed  bool          // nobody begins to log
	ended   bool          // the queue takes nothing
	room    chan struct{} // closed when the queue is emptied

	wake chan struct{} // holds a token when the queue may have changed
	done chan struct{} // closed by work at its end

	closing  sync.Once
	closeErr error // set in closing

	// Owned by work, and its failure by others after done.
	part    file
	number  int   // of part, from 1
	size    int64 // of part
	claim   *os.File
	failure error
}

// An entry is one line of the log or, under the name of its file, an episode.
type entry struct {
	text    []byte
	episode string
}

// Open deletes what Keep does not keep, and begins the log of a run in
// dir/<start in UTC>-<experiment>-<run>.jsonl, which no other log has had: it
// is an error if there is such a file. The caller has to call Close.
func Open(dir string, run assay.RunID, started time.Time, opts Options) (*Log, error) {
	opts.MaxBytes = cmp.Or(opts.MaxBytes, defaultMaxBytes)
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
		opts: opts, root: root, stem: stem(started, opts.Experiment, run), secrets: newRedactor(opts.Secrets), number: 1,
		room: make(chan struct{}), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if l.part, err = opts.open(root, partName(l.stem, 1)); err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), root.Close())
	}
	l.claim, _ = claim(root, partName(l.stem, 1))
	l.logger = slog.New(handler{l, slog.NewJSONHandler(lines{l}, nil)})
	go l.work()
	if err := prune(root, l.stem, opts.Keep, time.Now()); err != nil {
		l.logger.Warn("old logs are still there", "error", err.Error())
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

// Episode captures an attempt in <log>-trials/<trial>-<number>.json, if
// Trials chooses the trial: whole, or not at all. It keeps neither t nor a.
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
		l.logger.Error("episode not captured", "trial", trial, "attempt", number, "error", err.Error())
		return
	}
	l.put(entry{text: b.Bytes(), episode: episodeName(trial, number)})
}

// Dropped counts the records and episodes that were not written.
func (l *Log) Dropped() int {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped
}

// Close writes what is queued, then how many records were dropped, as an error
// if any were, and ends the log; whatever is logged later is ignored. It waits
// five seconds for a file that is stuck, and then leaves the log's goroutine
// behind. It returns what ended the log before its time, each time that it is
// called.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.closing.Do(func() {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		l.signal()
		timer := time.NewTimer(closeWait)
		defer timer.Stop()
		select {
		case <-l.done:
			l.closeErr = l.failure
		case <-timer.C:
			l.closeErr = fmt.Errorf("close log %s: its file took nothing for %v", l.stem, closeWait)
		}
	})
	return l.closeErr
}

// put queues e, or drops it.
func (l *Log) put(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended || l.bytes >= queueBytes {
		l.dropped++
		return
	}
	l.queue = append(l.queue, e)
	l.bytes += len(e.text)
	l.signal()
}

// await waits for room in the queue, but not for longer than errorWait, and
// not when that was in vain.
func (l *Log) await() {
	timer := time.NewTimer(errorWait)
	defer timer.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes >= queueBytes && !l.stuck {
		room := l.room
		l.mu.Unlock()
		select {
		case <-room:
			l.mu.Lock()
		case <-timer.C:
			l.mu.Lock()
			l.stuck = room == l.room
			return
		}
	}
}

// active reports whether the log is not closed.
func (l *Log) active() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed
}

func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take waits for entries and returns all of them; none means the end.
func (l *Log) take() []entry {
	for {
		l.mu.Lock()
		batch := l.queue
		switch {
		case len(batch) > 0:
			l.queue, l.bytes, l.stuck = nil, 0, false
			close(l.room)
			l.room = make(chan struct{})
		case l.closed:
			l.ended = true
		}
		ended := l.ended
		l.mu.Unlock()
		if len(batch) > 0 || ended {
			return batch
		}
		<-l.wake
	}
}

// lines queues what an encoder writes, a record at a time.
type lines struct{ log *Log }

func (w lines) Write(b []byte) (int, error) {
	w.log.put(entry{text: bytes.Clone(b)})
	return len(b), nil
}

// A handler encodes records in the caller's goroutine, for what they refer to
// may change. The encoder is locked while it writes, so an error waits for room
// before it comes to that.
type handler struct {
	log *Log
	slog.Handler
}

func (h handler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= min(h.log.opts.Level, slog.LevelError) && h.log.active()
}

func (h handler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		h.log.await()
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
