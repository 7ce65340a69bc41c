package runlog_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/runlog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	run  = assay.RunID("0198c2b0-52d1-7c3e-9f00-0123456789ab")
	stem = "20260304T050607Z-first-" + string(run)
)

var started = time.Date(2026, 3, 4, 6, 6, 7, 0, time.FixedZone("CET", 3600))

// open starts the log of run in dir and closes it at the end of the test.
func open(t testing.TB, dir string, opts runlog.Options) *runlog.Log {
	t.Helper()
	opts.Experiment = "first"
	l, err := runlog.Open(dir, run, started, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func closeLog(t interface{ Fatal(...any) }, l *runlog.Log) {
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t interface{ Fatal(...any) }, dir, name string) string {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// decode reads records, one per line.
func decode(t interface{ Fatalf(string, ...any) }, text string) []map[string]any {
	var records []map[string]any
	for line := range strings.Lines(text) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil || !strings.HasSuffix(line, "\n") {
			t.Fatalf("line %q: %v", line, err)
		}
		records = append(records, r)
	}
	return records
}

func messages(records []map[string]any) []string {
	var all []string
	for _, r := range records {
		all = append(all, r["msg"].(string))
	}
	return all
}

func TestOneObjectPerLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "new", "logs")
		l := open(t, dir, runlog.Options{})
		time.Sleep(1500 * time.Millisecond)
		logger := l.Logger().With("lane", "a").WithGroup("wait")
		logger.Info("two\nlines", "for", time.Second, "why", errors.New(`"full"`))
		l.Logger().Debug("unseen")
		closeLog(t, l)
		closeLog(t, l)
		l.Logger().Error("too late")
		want := `{"time":"2000-01-01T00:00:01.5Z","level":"INFO","msg":"two\nlines","lane":"a","wait":{"for":1000000000,"why":"\"full\""}}
{"time":"2000-01-01T00:00:01.5Z","level":"INFO","msg":"log closed","dropped":0}
`
		if diff := cmp.Diff(want, read(t, dir, stem+".jsonl")); diff != "" {
			t.Error(diff)
		}
	})
}

// TestHandler checks the rules that slog has for handlers.
func TestHandler(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, runlog.Options{})
	err := slogtest.TestHandler(l.Logger().Handler(), func() []map[string]any {
		closeLog(t, l)
		records := decode(t, read(t, dir, stem+".jsonl"))
		return records[:len(records)-1]
	})
	if err != nil {
		t.Error(err)
	}
}

// TestTimesAreUTC checks that times are in UTC whatever the zone of the
// record's time is.
func TestTimesAreUTC(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, runlog.Options{})
	record := slog.NewRecord(started, slog.LevelError, "x", 0)
	if err := l.Logger().Handler().Handle(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
	if got := decode(t, read(t, dir, stem+".jsonl"))[0]["time"]; got != "2026-03-04T05:06:07Z" {
		t.Errorf("time = %v", got)
	}
}

func TestNameIsNotReused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, runlog.Options{})
	l.Logger().Info("kept")
	closeLog(t, l)
	_, err := runlog.Open(dir, run, started, runlog.Options{Experiment: "first"})
	if !errors.Is(err, os.ErrExist) {
		t.Errorf("Open() again = %v, want ErrExist", err)
	}
	got := messages(decode(t, read(t, dir, stem+".jsonl")))
	if !slices.Equal(got, []string{"kept", "log closed"}) {
		t.Errorf("the first log has messages %v", got)
	}
}

// TestLevels checks that a level writes records of the same or a higher level,
// and that errors are always written.
func TestLevels(t *testing.T) {
	t.Parallel()
	all := []slog.Level{
		slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError,
		slog.LevelError + 4,
	}
	for _, level := range append(all, slog.LevelError+8) {
		dir := t.TempDir()
		l := open(t, dir, runlog.Options{Level: level})
		for range 100 {
			for _, v := range all {
				l.Logger().Log(t.Context(), v, "x")
			}
		}
		closeLog(t, l)
		got := make(map[string]int)
		for _, r := range decode(t, read(t, dir, stem+".jsonl")) {
			got[r["level"].(string)]++
		}
		want := map[string]int{}
		for _, v := range all {
			if v >= level || v >= slog.LevelError {
				want[v.String()] = 100
			}
		}
		if level <= slog.LevelInfo {
			want["INFO"]++ // the last record
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("level %v: %s", level, diff)
		}
	}
}

func TestNilLogDoesNothing(t *testing.T) {
	t.Parallel()
	var l *runlog.Log
	l.Logger().Error("x")
	l.Episode("t", 1, nil, nil)
	if l.Dropped() != 0 || l.Close() != nil {
		t.Error("a nil log dropped records or returned an error")
	}
}

// parts reads the parts of the only log in dir, each as lines.
func parts(t interface{ Fatal(...any) }, dir string) (all [][]string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	first := slices.MinFunc(files, func(a, b string) int { return len(a) - len(b) })
	for i := range files {
		name := filepath.Base(first)
		if i > 0 {
			name = fmt.Sprintf("%s.%d.jsonl", strings.TrimSuffix(name, ".jsonl"), i+1)
		}
		all = append(all, slices.Collect(strings.Lines(read(t, dir, name))))
	}
	return all
}

// TestNoRecordIsLost checks that all records of many goroutines are complete and that each
// goroutine's records are in order, wherever parts end. No part ends earlier than it has to.
func TestNoRecordIsLost(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var dirs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Join(base, strconv.FormatInt(dirs.Add(1), 10))
		max := rapid.Int64Range(1, 4000).Draw(t, "max")
		some := rapid.SliceOfN(rapid.StringN(0, 300, -1), 0, 40)
		texts := rapid.SliceOfN(some, 1, 8).Draw(t, "texts")
		l, err := runlog.Open(dir, run, started,
			runlog.Options{Level: slog.LevelDebug, MaxBytes: max})
		if err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for who, texts := range texts {
			all.Go(func() {
				logger := l.Logger().With("who", who)
				for i, text := range texts {
					logger.Log(t.Context(), slog.Level(4*(i%4)-4), text, "n", i, "x"+text, text)
				}
			})
		}
		all.Wait()
		closeLog(t, l)

		got := make([][]string, len(texts))
		files := parts(t, dir)
		for i, lines := range files {
			size := int64(len(strings.Join(lines, "")))
			if size > max && len(lines) > 1 {
				t.Fatalf("part %d has %d lines and %d bytes, more than %d",
					i+1, len(lines), size, max)
			}
			if i+1 < len(files) && size+int64(len(files[i+1][0])) <= max {
				t.Fatalf("part %d ends at %d, though %d more fit %d",
					i+1, size, len(files[i+1][0]), max)
			}
			for _, r := range decode(t, strings.Join(lines, "")) {
				if who, ok := r["who"].(float64); ok {
					if int(r["n"].(float64)) != len(got[int(who)]) {
						t.Fatalf("out of order: %v", r)
					}
					got[int(who)] = append(got[int(who)], r["msg"].(string))
				}
			}
		}
		for who, texts := range texts {
			for i, text := range texts {
				texts[i] = string([]rune(text))
			}
			if !slices.Equal(got[who], texts) {
				t.Fatalf("goroutine %d logged %q, but the log has %q", who, texts, got[who])
			}
		}
		if l.Dropped() != 0 {
			t.Fatalf("Dropped() = %d", l.Dropped())
		}
	})
}

// A gate is a file that writes only after pass is closed.
type gate struct {
	runlog.TestFile
	pass <-chan struct{}
}

func (g gate) Write(b []byte) (int, error) {
	<-g.pass
	return g.TestFile.Write(b)
}

// room is how many bytes the queue of a stuck log has.
const room = 4096

// stuck opens a log and fills its queue. The log's file writes only after the
// returned channel is closed.
func stuck(t *testing.T, dir string) (*runlog.Log, chan struct{}) {
	t.Helper()
	pass := make(chan struct{})
	opts := runlog.Options{Level: slog.LevelDebug}
	opts.Queue(room)
	opts.Wrap(func(_ string, f runlog.TestFile) (runlog.TestFile, error) {
		return gate{f, pass}, nil
	})
	l := open(t, dir, opts)
	l.Logger().Info("being written")
	synctest.Wait()
	l.Logger().Info(strings.Repeat("x", room))
	return l, pass
}
