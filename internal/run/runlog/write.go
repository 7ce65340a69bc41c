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

// work owns the files of the log until it is closed.
func (l *Log) work() {
	defer close(l.done)
	for batch := l.take(); len(batch) > 0; batch = l.take() {
		for _, e := range batch {
			l.write(e)
		}
	}
	if l.failure == nil {
		l.fail(l.farewell())
	}
	l.claim.Close() // it was only read, or is nil
	if err := errors.Join(l.part.Close(), l.root.Close()); l.failure == nil {
		l.fail(err)
	}
}

func (l *Log) write(e entry) {
	if l.failure == nil {
		text := l.secrets.json(e.text)
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

// line appends one record. Of one that does not fit on the disk, nothing stays.
func (l *Log) line(text []byte) error {
	if l.size > 0 && l.size+int64(len(text)) > l.opts.MaxBytes {
		if err := l.turn(); err != nil {
			return err
		}
	}
	if _, err := l.part.Write(text); err != nil {
		return errors.Join(err, l.part.Truncate(l.size))
	}
	l.size += int64(len(text))
	return nil
}

// turn begins the next part.
func (l *Log) turn() error {
	next, err := l.opts.open(l.root, partName(l.stem, l.number+1))
	if err != nil {
		return err
	}
	err = l.part.Close()
	l.part, l.number, l.size = next, l.number+1, 0
	return err
}

// episode writes a file of its own, which has its name once it is whole.
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
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = l.root.Rename(path+".tmp", path)
	}
	if err != nil {
		return errors.Join(err, l.root.Remove(path+".tmp"))
	}
	return nil
}

// farewell appends the last record. It has no place in a log of errors when
// nothing was dropped.
func (l *Log) farewell() error {
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
