package runlog_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/runlog"
)

// TestFullQueueDropsAndCounts checks that a full queue has room for errors until it is as full
// again, and that no record waits.
func TestFullQueueDropsAndCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		l, pass := stuck(t, dir)
		began := time.Now()
		for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn} {
			l.Logger().Log(t.Context(), level, "dropped")
		}
		l.Logger().Error("kept")
		l.Logger().Error(strings.Repeat("x", room))
		l.Logger().Error("dropped")
		if time.Since(began) != 0 || l.Dropped() != 4 {
			t.Errorf("%d dropped in %v, want 4 at once", l.Dropped(), time.Since(began))
		}
		close(pass)
		closeLog(t, l)
		records := decode(t, read(t, dir, stem+".jsonl"))
		last := records[len(records)-1]
		if len(records) != 5 || records[2]["msg"] != "kept" || last["dropped"] != 4.0 ||
			last["level"] != "ERROR" {
			t.Errorf("%d records, the last %v", len(records), last)
		}
	})
}

func TestCloseGivesUpOnStuckFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, pass := stuck(t, t.TempDir())
		began := time.Now()
		err := l.Close()
		if err == nil || time.Since(began) != runlog.CloseWait {
			t.Errorf("Close() = %v after %v", err, time.Since(began))
		}
		if again := l.Close(); again != err || time.Since(began) != runlog.CloseWait {
			t.Errorf("Close() again = %v after %v", again, time.Since(began))
		}
		l.Logger().Error("no-op")
		close(pass)
	})
}

// A disk is a file on a disk with limited room. It writes as much as fits.
type disk struct {
	runlog.TestFile
	room *int
}

var errFull = errors.New("no space left")

func (d disk) Write(b []byte) (int, error) {
	if len(b) <= *d.room {
		*d.room -= len(b)
		return d.TestFile.Write(b)
	}
	n, err := d.TestFile.Write(b[:*d.room])
	*d.room = 0
	return n, errors.Join(err, errFull)
}

// TestFullDiskEndsTheLog checks that the log is complete up to the moment when
// the disk is full, that all other records are counted, and that Failed is
// called once.
func TestFullDiskEndsTheLog(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var dirs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Join(base, strconv.FormatInt(dirs.Add(1), 10))
		room := rapid.IntRange(0, 1500).Draw(t, "room")
		var failures []error
		opts := runlog.Options{
			MaxBytes: rapid.Int64Range(100, 1000).Draw(t, "max"),
			Trials:   func(assay.TrialID) bool { return true },
			Failed:   func(err error) { failures = append(failures, err) },
		}
		opts.Wrap(func(_ string, f runlog.TestFile) (runlog.TestFile, error) {
			return disk{f, &room}, nil
		})
		l, err := runlog.Open(dir, run, started, opts)
		if err != nil {
			t.Fatal(err)
		}
		const rounds = 12
		for i := range rounds {
			l.Logger().Info(strings.Repeat("x", i))
			l.Episode("t", i, &assay.Transcript{}, nil)
		}
		err = l.Close()
		written := 0
		for _, lines := range parts(t, dir) {
			for _, msg := range messages(decode(t, strings.Join(lines, ""))) {
				if strings.Trim(msg, "x") == "" {
					written++
				}
			}
		}
		episodes, _ := filepath.Glob(filepath.Join(dir, "*-trials", "*"))
		for _, name := range episodes {
			if b, _ := os.ReadFile(name); !json.Valid(b) || !strings.HasSuffix(name, ".json") {
				t.Errorf("%s is %q", name, b)
			}
		}
		if got := written + len(episodes) + l.Dropped(); got != 2*rounds {
			t.Errorf("%d written, %d captured and %d dropped of %d",
				written, len(episodes), l.Dropped(), 2*rounds)
		}
		if len(failures) != 1 || !errors.Is(failures[0], errFull) || err != failures[0] {
			t.Errorf("Close() = %v, Failed got %v", err, failures)
		}
	})
}

func TestLogEndsIfNextPartExists(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, stem+".2.jsonl"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	var failure error
	l := open(t, dir, runlog.Options{MaxBytes: 1, Failed: func(err error) { failure = err }})
	for range 3 {
		l.Logger().Info("x")
	}
	if err := l.Close(); !errors.Is(err, os.ErrExist) || failure != err || l.Dropped() != 2 {
		t.Errorf("Close() = %v, Failed got %v, %d dropped", err, failure, l.Dropped())
	}
	if got := read(t, dir, stem+".2.jsonl"); got != "mine" {
		t.Errorf("part 2 is %q", got)
	}
}
