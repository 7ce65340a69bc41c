package runlog_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

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
		return decode(t, read(t, dir, stem+".jsonl"))
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
	if !slices.Equal(got, []string{"kept"}) {
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
	if l.Close() != nil {
		t.Error("a nil log returned an error")
	}
}

// TestNoRecordIsLost checks that all records of many goroutines are complete and that each
// goroutine's records are in order.
func TestNoRecordIsLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, runlog.Options{Level: slog.LevelDebug})
	const writers, each = 8, 100
	var all sync.WaitGroup
	for who := range writers {
		all.Go(func() {
			logger := l.Logger().With("who", who)
			for n := range each {
				logger.Log(t.Context(), slog.Level(4*(n%4)-4), strings.Repeat("x", 97*n), "n", n)
			}
		})
	}
	all.Wait()
	closeLog(t, l)
	next := make(map[any]float64)
	for _, r := range decode(t, read(t, dir, stem+".jsonl")) {
		n := r["n"].(float64)
		if n != next[r["who"]] || len(r["msg"].(string)) != 97*int(n) {
			t.Fatalf("record %v of %v has %d bytes, want record %v", n, r["who"], len(r["msg"].(string)),
				next[r["who"]])
		}
		next[r["who"]]++
	}
	for who, n := range next {
		if n != each || len(next) != writers {
			t.Errorf("%v of %d records of %v, and %d writers", n, each, who, len(next))
		}
	}
}

// TestFullDiskEndsTheLog checks that a log whose file accepts no more data ends with a complete record,
// and that Close says so.
func TestFullDiskEndsTheLog(t *testing.T) {
	if os.Getenv(limited) != "" {
		l := open(t, os.Getenv(limited), runlog.Options{})
		for range 100 {
			l.Logger().Info("x", "text", strings.Repeat("x", 1000))
		}
		if err := l.Close(); !errors.Is(err, syscall.EFBIG) || l.Close() == nil {
			t.Errorf("Close() = %v, want %v every time", err, syscall.EFBIG)
		}
		return
	}
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 40 && exec "$0" -test.run TestFullDiskEndsTheLog`, os.Args[0])
	cmd.Env = append(os.Environ(), limited+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if n := len(decode(t, read(t, dir, stem+".jsonl"))); n < 5 || n > 50 {
		t.Errorf("%d records, want those that fit in 40 blocks", n)
	}
}

// limited names the directory of a process that may write small files only.
const limited = "RUNLOG_TEST_LIMITED"
