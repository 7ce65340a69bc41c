// Package runlog writes the log of a run as a file with one JSON object per line. It can also store
// complete episodes of selected trials for debugging.
//
// The log is for people. It may fail without any effect on the run. Callers choose the records, and
// a run never continues from a log; the results are in the store.
package runlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// Options configure a log. The zero value logs from level info on, deletes no logs and captures no
// episodes.
type Options struct {
	// Experiment is the experiment's name. It becomes part of the file name.
	Experiment string
	// Level is the minimum level. Errors are always written.
	Level slog.Level
	// Age deletes the other logs in the directory that were written last before that time; 0 keeps
	// all. Files whose names are not names of logs are never deleted.
	Age time.Duration
	// Secrets must not appear in any file. Secrets of fewer than eight bytes
	// are not redacted.
	Secrets []string
	// Trials selects the trials whose episodes are captured; nil selects no trials.
	Trials func(assay.TrialID) bool
}

// A Log is the log of one run. Its methods may be called by any goroutine at any time, and have no
// effect on a nil Log. If its file cannot be written, the log ends.
type Log struct {
	path    string // without .jsonl
	trials  func(assay.TrialID) bool
	secrets *wire.Redactor
	logger  *slog.Logger

	mu      sync.Mutex
	file    *os.File // guarded by mu, like the next fields; nil once the log is closed
	size    int64    // of the complete records
	failure error    // ended the log
}

// Open starts the log of a run in dir/<start in UTC>-<experiment>-<run>.jsonl
// and deletes older logs. It returns an error if the file already exists. The caller has to call
// Close.
func Open(dir string, run assay.RunID, started time.Time, opts Options) (*Log, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	removed := removeOld(dir, opts.Age)
	l := &Log{
		path:    filepath.Join(dir, nameOf(started, opts.Experiment, run)),
		trials:  opts.Trials,
		secrets: newRedactor(opts.Secrets),
	}
	var err error
	l.file, err = os.OpenFile(l.path+".jsonl", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	l.logger = slog.New(slog.NewJSONHandler(lines{l}, &slog.HandlerOptions{
		Level: min(opts.Level, slog.LevelError), ReplaceAttr: inUTC,
	}))
	if removed != nil {
		l.logger.Warn("cannot delete old logs", "error", removed.Error())
	}
	return l, nil
}

// inUTC writes times of records in UTC.
func inUTC(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// Logger returns the logger that writes to the log.
func (l *Log) Logger() *slog.Logger {
	if l == nil {
		return slog.New(slog.DiscardHandler)
	}
	return l.logger
}

// lines writes the records of a log, one per Write.
type lines struct{ log *Log }

func (w lines) Write(record []byte) (int, error) {
	l := w.log
	text := redact(l.secrets, record)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.failure != nil {
		return len(record), nil
	}
	if _, err := l.file.Write(text); err != nil {
		l.failure = fmt.Errorf("write log: %w", errors.Join(err, l.file.Truncate(l.size)))
		return 0, err
	}
	l.size += int64(len(text))
	return len(record), nil
}

// Episode captures an attempt in <log>-trials/<trial>-<number>.json if Trials
// selects the trial. The file is written completely or not at all.
func (l *Log) Episode(trial assay.TrialID, number int, t *assay.Transcript, a *assay.Attempt) {
	if l == nil || l.trials == nil || !l.trials(trial) {
		return
	}
	if err := l.capture(episodeName(trial, number), t, a); err != nil {
		l.logger.Error("episode not captured",
			"trial", trial, "attempt", number, "error", err.Error())
	}
}

func (l *Log) capture(name string, t *assay.Transcript, a *assay.Attempt) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(struct {
		Attempt    *assay.Attempt    `json:"attempt"`
		Transcript *assay.Transcript `json:"transcript"`
	}{a, t}); err != nil {
		return err
	}
	dir := l.path + episodes
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, name), redact(l.secrets, b.Bytes()), 0o644,
		renameio.WithTempDir(dir))
}

// Close ends the log. Later records are ignored. It returns the error that ended the log early, if
// any, on every call.
func (l *Log) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		err := l.file.Close()
		l.file = nil
		if l.failure == nil && err != nil {
			l.failure = fmt.Errorf("write log: %w", err)
		}
	}
	return l.failure
}

// episodes ends the name of the directory with the episodes of a log.
const episodes = "-trials"

var (
	runID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	// logName matches the names of logs, their later parts from older versions, and directories of
	// episodes.
	logName = regexp.MustCompile(`^\d{8}T\d{6}Z-.+-\w+((\.[1-9]\d{0,8})?\.jsonl|` + episodes + `)$`)
)

// nameOf returns the name of a log without its extension.
func nameOf(started time.Time, experiment string, run assay.RunID) string {
	id := string(run)
	if !runID.MatchString(id) {
		id = safe(id, "", 64)
	}
	return started.UTC().Format("20060102T150405Z") + "-" + safe(experiment, ".-", 100) + "-" + id
}

func episodeName(trial assay.TrialID, number int) string {
	return safe(string(trial), "", 64) + "-" + strconv.Itoa(number) + ".json"
}

// safe replaces every character by an underscore unless it is a letter, a digit
// or in extra.
func safe(name, extra string, longest int) string {
	s := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' ||
			strings.ContainsRune(extra, r) {
			return r
		}
		return '_'
	}, name)
	if s == "" {
		return "_"
	}
	return s[:min(len(s), longest)]
}

// removeOld deletes the logs in a directory, and their episodes, that were written last before an
// age.
func removeOld(dir string, age time.Duration) error {
	if age == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		info, gone := e.Info()
		if gone != nil || !logName.MatchString(e.Name()) || time.Since(info.ModTime()) < age {
			continue
		}
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}
