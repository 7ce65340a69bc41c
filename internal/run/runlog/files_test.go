package runlog_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/runlog"
)

// TestNamesKeepExperimentAndRun checks that a file's name contains any experiment and run, stays in
// its directory, and is known as the name of a log later.
func TestNamesKeepExperimentAndRun(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var dirs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		dir := filepath.Join(base, strconv.FormatInt(dirs.Add(1), 10))
		experiment := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9][A-Za-z0-9._-]{0,99}`),
			rapid.String()).Draw(t, "experiment")
		id := rapid.OneOf(
			rapid.StringMatching(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
			rapid.StringMatching(`[a-z0-9_]{1,20}`), rapid.String(),
		).Draw(t, "run")
		plain := func(s, extra string, longest int) string {
			s = regexp.MustCompile(`[^A-Za-z0-9`+extra+`]`).ReplaceAllString(s, "_")
			if s == "" {
				return "_"
			}
			return s[:min(len(s), longest)]
		}
		wantRun := id
		if len(id) != 36 || strings.Count(id, "-") != 4 {
			wantRun = plain(id, "", 64)
		}
		l, err := runlog.Open(dir, assay.RunID(id), started,
			runlog.Options{Experiment: experiment})
		if err != nil {
			t.Fatal(err)
		}
		l.Logger().Info("x")
		closeLog(t, l)
		want := "20260304T050607Z-" + plain(experiment, ".-", 100) + "-" + wantRun
		if got := names(t, dir); !slices.Equal(got, []string{want + ".jsonl"}) {
			t.Fatalf("files %q, want %q", got, want)
		}
		age(t, dir)
		next(t, dir, "later", time.Minute)
		if got := names(t, dir); len(got) != 1 {
			t.Fatalf("files %q, want only that of the later log", got)
		}
	})
}

// names lists the files of a directory.
func names(t interface{ Fatal(...any) }, dir string) (all []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// age moves the last write of all files of a directory into the past.
func age(t interface{ Fatal(...any) }, dir string) {
	when := time.Now().Add(-1000 * time.Hour)
	for _, name := range names(t, dir) {
		if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
			t.Fatal(err)
		}
	}
}

// next opens and closes a later log that removes those of an age.
func next(t interface{ Fatal(...any) }, dir string, id assay.RunID, age time.Duration) {
	l, err := runlog.Open(dir, id, started.Add(time.Hour), runlog.Options{Age: age})
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
}

// TestOldLogsAreRemoved checks that a new log removes what is older of other logs: their files, parts of
// older versions, and episodes, and nothing else.
func TestOldLogsAreRemoved(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		"20260101T000000Z-e-run1.jsonl":           31 * day,
		"20260101T000000Z-e-run1.2.jsonl":         31 * day,
		"20260101T000000Z-e-run1-trials/t-1.json": 31 * day,
		"20260101T000000Z-e-run2.jsonl":           29 * day,
		"20260101T000000Z-e-run2-trials/t-1.json": 29 * day,
		"20260101T000000Z-e-run3.txt":             99 * day,
		"notes.jsonl":                             99 * day,
		"trials/t-1.json":                         99 * day,
	} {
		path, when := filepath.Join(dir, name), time.Now().Add(-age)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, when, when)); err != nil {
			t.Fatal(err)
		}
		if filepath.Dir(path) != dir {
			if err := os.Chtimes(filepath.Dir(path), when, when); err != nil {
				t.Fatal(err)
			}
		}
	}
	next(t, dir, "later", 30*day)
	want := []string{
		"20260101T000000Z-e-run2-trials", "20260101T000000Z-e-run2.jsonl", "20260101T000000Z-e-run3.txt",
		"20260304T060607Z-_-later.jsonl", "notes.jsonl", "trials",
	}
	if diff := cmp.Diff(want, names(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	next(t, dir, "latest", 0)
	if got := len(names(t, dir)); got != len(want)+1 {
		t.Errorf("%d files, want %d: age 0 removes none", got, len(want)+1)
	}
}
