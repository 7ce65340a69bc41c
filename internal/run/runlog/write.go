package runlog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"
)

// work owns the log's files. It returns when the log is closed and the queue is
// empty.
func (l *Log) work() {
	defer close(l.done)
	for batch := l.take(); len(batch) > 0; batch = l.take() {
		for _, e := range batch {
			l.write(e)
		}
	}
	if l.failure == nil {
		l.fail(l.writeLast())
	}
	l.inUse.Close() // an error does not matter; the file may be nil
	if err := errors.Join(l.part.Close(), l.root.Close()); l.failure == nil {
		l.fail(err)
	}
}

func (l *Log) write(e logLine) {
	if l.failure == nil {
		text := redact(l.secrets, e.text)
		if e.episode == "" {
			l.fail(l.line(text))
		} else {
			l.fail(l.episode(e.episode, text))
		}
	}
	if l.failure != nil {
		l.mu.Lock()
		l.dropped++
		l.mu.Unlock()
	}
}

// fail ends the log if err is not nil.
func (l *Log) fail(err error) {
	if err == nil {
		return
	}
	l.failure = fmt.Errorf("write log: %w", err)
	if l.opts.Failed != nil {
		l.opts.Failed(l.failure)
	}
}

// line appends a record. If it does not fit on the disk, line removes its part.
func (l *Log) line(text []byte) error {
	if l.size > 0 && l.size+int64(len(text)) > l.opts.MaxBytes {
		if err := l.nextPart(); err != nil {
			return err
		}
	}
	if _, err := l.part.Write(text); err != nil {
		return errors.Join(err, l.part.Truncate(l.size))
	}
	l.size += int64(len(text))
	return nil
}

// nextPart starts the next part.
func (l *Log) nextPart() error {
	next, err := l.opts.open(l.root, partName(l.stem, l.number+1))
	if err != nil {
		return err
	}
	err = l.part.Close()
	l.part, l.number, l.size = next, l.number+1, 0
	return err
}

// episode writes an episode to its own file, which gets its name when it is
// complete.
func (l *Log) episode(name string, text []byte) error {
	if err := l.root.Mkdir(trialsDir(l.stem), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	path := trialsDir(l.stem) + "/" + name
	f, err := l.opts.open(l.root, path+".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = l.root.Rename(path+".tmp", path)
	}
	if err != nil {
		return errors.Join(err, l.root.Remove(path+".tmp"))
	}
	return nil
}

// writeLast appends the last record. A log of errors gets it only if records
// were dropped.
func (l *Log) writeLast() error {
	dropped, level := l.Dropped(), slog.LevelInfo
	if dropped > 0 {
		level = slog.LevelError
	}
	if level < l.opts.Level && level < slog.LevelError {
		return nil
	}
	var b bytes.Buffer
	r := slog.NewRecord(time.Now().UTC(), level, "log closed", 0)
	r.AddAttrs(slog.Int("dropped", dropped))
	if err := slog.NewJSONHandler(&b, nil).Handle(context.Background(), r); err != nil {
		return err
	}
	return l.line(b.Bytes())
}
