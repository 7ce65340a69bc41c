package runlog_test

import (
	"fmt"
	"io/fs"
	"maps"
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
			runlog.Options{Experiment: experiment, MaxBytes: 1})
		if err != nil {
			t.Fatal(err)
		}
		l.Logger().Info("x")
		closeLog(t, l)
		want := "20260304T050607Z-" + plain(experiment, ".-", 100) + "-" + wantRun
		if got := names(t, dir); !slices.Equal(got, []string{want + ".2.jsonl", want + ".jsonl"}) {
			t.Fatalf("files %q, want %q in two parts", got, want)
		}
		age(t, dir)
		next(t, dir, "later")
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

// next opens and closes a log that keeps no old ones.
func next(t interface{ Fatal(...any) }, dir string, id assay.RunID) {
	l, err := runlog.Open(dir, id, started.Add(time.Hour),
		runlog.Options{Keep: runlog.Keep{Age: time.Minute, Bytes: 1}})
	if err != nil {
		t.Fatal(err)
	}
	closeLog(t, l)
}

// tree lists all files below dir with their sizes.
func tree(t interface{ Fatal(...any) }, dir string) map[string]int64 {
	all := make(map[string]int64)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		name, _ := filepath.Rel(dir, path)
		all[name] = info.Size()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// old writes a file with a modification time in the past.
func old(t interface{ Fatal(...any) }, dir, name string, size int, age time.Duration) {
	path, when := filepath.Join(dir, name), time.Now().Add(-age)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, when, when); err != nil {
		t.Fatal(err)
	}
}

// TestKeepDeletesWholeLogs checks that Open deletes whole logs: those that are
// too old, and then as many of the least recently written as the size limit
// requires. It deletes no log of the last hour and no other files.
func TestKeepDeletesWholeLogs(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	var dirs atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		n := strconv.FormatInt(dirs.Add(1), 10)
		dir, outside := filepath.Join(base, n), filepath.Join(base, n+"-outside")
		type log struct {
			stem  string
			bytes int64
			age   time.Duration
			files int
		}
		var logs []log
		ages := rapid.SliceOfNDistinct(rapid.IntRange(0, 200), 0, 8, rapid.ID[int]).Draw(t, "hours")
		for i, hours := range ages {
			l := log{
				stem: fmt.Sprintf("202601%02dT000000Z-e-r%d", i+1, i),
				age:  time.Duration(hours)*time.Hour + 30*time.Minute,
			}
			add := func(name string) {
				size := 50 * rapid.IntRange(0, 2).Draw(t, "size")
				old(t, dir, name, size, l.age+time.Duration(l.files)*time.Second)
				l.bytes += int64(size)
				l.files++
			}
			add(l.stem + ".jsonl")
			for part := range rapid.IntRange(0, 2).Draw(t, "parts") {
				add(fmt.Sprintf("%s.%d.jsonl", l.stem, part+2))
			}
			for k := range rapid.IntRange(0, 2).Draw(t, "episodes") {
				add(fmt.Sprintf("%s-trials/t-%d.json%s", l.stem, k+1, []string{"", ".tmp"}[k]))
			}
			logs = append(logs, l)
		}
		const ancient = 1000 * time.Hour
		for _, name := range []string{
			"notes.txt", "x.jsonl", "20260101T000000Z-e-r0.jsonl.gz",
			"20260101T000000Z-e-r0.0.jsonl",
			"sub/20260101T000000Z-e-r0.jsonl", "20260101T000000Z-e-r0-trials/notes.json",
		} {
			old(t, dir, name, 500, ancient)
		}
		old(t, outside, "t-1.json", 500, ancient)
		old(t, outside, "20250101T000000Z-e-z.jsonl", 500, ancient)
		old(t, dir, "20250101T000000Z-e-y.jsonl", 0, ancient)
		for link, to := range map[string]string{
			"20250101T000000Z-e-z.jsonl":  "/20250101T000000Z-e-z.jsonl",
			"20250101T000000Z-e-y-trials": "",
		} {
			if err := os.Symlink(outside+to, filepath.Join(dir, link)); err != nil {
				t.Fatal(err)
			}
		}
		before := tree(t, dir)
		delete(before, "20250101T000000Z-e-y.jsonl") // the directory of its episodes is a link
		maxAges := []time.Duration{0, time.Minute, 50 * time.Hour}
		keep := runlog.Keep{
			Age:   rapid.SampledFrom(maxAges).Draw(t, "age"),
			Bytes: 50 * rapid.Int64Range(0, 12).Draw(t, "bytes"),
		}
		l, err := runlog.Open(dir, run, started, runlog.Options{Keep: keep})
		if err != nil {
			t.Fatal(err)
		}
		closeLog(t, l)
		after := tree(t, dir)
		maps.DeleteFunc(after, func(name string, _ int64) bool {
			return strings.Contains(name, string(run)) || name == "20250101T000000Z-e-y.jsonl"
		})

		slices.SortFunc(logs, func(a, b log) int { return int(b.age - a.age) })
		var total int64
		for _, l := range logs {
			total += l.bytes
		}
		for _, l := range logs {
			tooOld := keep.Age > 0 && l.age > keep.Age
			if l.age > runlog.Spared && (tooOld || keep.Bytes > 0 && total > keep.Bytes) {
				total -= l.bytes
				maps.DeleteFunc(before, func(name string, _ int64) bool {
					return strings.HasPrefix(name, l.stem) && !strings.HasSuffix(name, ".gz") &&
						!strings.HasSuffix(name, ".0.jsonl") && !strings.HasSuffix(name, "notes.json")
				})
			}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("files after pruning %+v with %+v (-want +got):\n%s", keep, logs, diff)
		}
		if left := tree(t, outside); len(left) != 2 {
			t.Fatalf("files outside the directory: %v, want 2", left)
		}
	})
}

// TestLogInUseIsKept checks that a log is not deleted until it is closed,
// however old its last record is.
func TestLogInUseIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := open(t, dir, runlog.Options{MaxBytes: 1})
	l.Logger().Info("x")
	age(t, dir)
	next(t, dir, "b")
	closeLog(t, l)
	if got := names(t, dir); !slices.Contains(got, stem+".jsonl") {
		t.Errorf("files %q, want also the log in use", got)
	}
	age(t, dir)
	next(t, dir, "c")
	want := []string{"20260304T060607Z-_-c.jsonl"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("files %q, want %q", got, want)
	}
}
