package main

import (
	"archive/zip"
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/delivery"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/store"
)

// logsIn tells of each log of Inspect in a directory its experiment, its status, its
// trials and its filter, by experiment.
func logsIn(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.eval"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		z, err := zip.OpenReader(name)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		f, err := z.Open("header.json")
		if err != nil {
			t.Fatal(err)
		}
		var h struct {
			Status string
			Eval   struct {
				Task     string
				Metadata struct{ Filter json.RawMessage }
			}
			Results struct {
				Total     int `json:"total_samples"`
				Completed int `json:"completed_samples"`
			}
		}
		if err := json.NewDecoder(f).Decode(&h); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %s %d of %d", h.Eval.Task, h.Status, h.Results.Completed, h.Results.Total)
		if len(h.Eval.Metadata.Filter) > 0 && h.Eval.Metadata.Filter[0] == '{' && strings.Contains(string(h.Eval.Metadata.Filter), "where") {
			text += " by " + string(h.Eval.Metadata.Filter)
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func manifestOf(t testing.TB, path string) export.Manifest {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := export.ReadManifest(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// hidden returns the names in a directory that begin with a dot.
func hidden(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

const oneModel = "models: [sim/listed]\ntasks_per_type: 1\nvariants: [optimal]\n"

// TestExportManifests: every format has a manifest that proves its files, and says what
// chose them; none speaks of files that are no more.
func TestExportManifests(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	if err := os.Mkdir(filepath.Join(dir, "calls"), 0o755); err != nil {
		t.Fatal(err)
	}
	where := []string{"model=sim/listed", "variant!=a b"}
	for _, format := range export.FormatNames() {
		args := []string{"export", "--store", path, "--format", format, "-o", out, "--where", where[0], "--where", where[1], "--experiment", "quick"}
		files, name := 1, out+".manifest.json"
		switch format {
		case "jsonl", "csv", "parquet":
			args = append(args, "--calls", filepath.Join(dir, "calls", "out"))
			files = 2
		case "inspect":
			args[6] = filepath.Join(dir, "logs")
			name = filepath.Join(dir, "logs", "manifest.json")
		}
		must(t, nil, args...)
		m := manifestOf(t, name)
		if err := m.Verify(t.Context(), filepath.Dir(name)); err != nil || len(m.Files) != files || string(m.Files[0].Format) != format || m.Files[0].Rows != 5 {
			t.Errorf("%s: %v, %+v", format, err, m.Files)
		}
		if m.Counts.Attempts != 5 || m.Snapshot != snapshotOf(t, path) || m.Filter.Experiment != "quick" || !slices.Equal(m.Filter.Where, where) {
			t.Errorf("%s: manifest %+v", format, m)
		}
		for _, named := range []string{name, args[6]} {
			if r := must(t, nil, "export", "--check", named); strings.Count(r.out, ": whole, ") != files || !strings.Contains(r.out, "5 attempts, snapshot "+m.Snapshot) {
				t.Errorf("%s: check %s says %s", format, named, r.out)
			}
		}
	}
	if err := os.WriteFile(out, []byte(read(t, out)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := call(t, nil, "export", "--check", out); r.code != exitError || !strings.Contains(r.err, "verify out: has ") || r.out != "" {
		t.Errorf("check of a changed file: %d, %q, %s", r.code, r.out, r.err)
	}
	for _, none := range []string{filepath.Join(dir, "none"), path, t.TempDir()} {
		if r := call(t, nil, "export", "--check", none); r.code != exitError {
			t.Errorf("check of %s: exit code %d, %s%s", none, r.code, r.out, r.err)
		}
	}
}

// TestExportFilesTogether: files of an export appear together or not at all, and what a
// killed one left is cleared away.
func TestExportFilesTogether(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.csv")
	must(t, nil, "export", "--store", path, "--format", "csv", "-o", out)
	before := tree(t, dir)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"-o", out, "--calls", filepath.Join(dir, "no", "calls")}, exitError, "there is no directory"},
		{[]string{"-o", out, "--calls", dir}, exitError, "it is a directory\nhint: name a file in it"},
		{[]string{"-o", dir}, exitError, "it is a directory"},
		{[]string{"-o", filepath.Join(out, "below")}, exitError, "there is no directory"},
		{[]string{"-o", out, "--calls", out}, exitUsage, "two outputs have the same path"},
		{[]string{"-o", out, "--calls", filepath.Join(dir, ".", "out.csv")}, exitUsage, "two outputs have the same path"},
		{[]string{"-o", out, "--calls", out + ".manifest.json"}, exitUsage, "two outputs have the same path"},
		{[]string{"-o", out, "--snapshot", "7-none"}, exitError, "not a snapshot"},
	} {
		if r := call(t, nil, append([]string{"export", "--store", path}, c.args...)...); r.code != c.code || !strings.Contains(r.err, c.says) {
			t.Errorf("%q: exit code %d, %s, want %d, %s", c.args, r.code, r.err, c.code, c.says)
		}
		if tree(t, dir) != before {
			t.Fatalf("%q has changed something", c.args)
		}
	}
	left := filepath.Join(dir, ".out.csv.part")
	if err := errors.Join(os.WriteFile(left, []byte("left by a program that was killed"), 0o600), os.WriteFile(filepath.Join(dir, ".out.csv.lock"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "export", "--store", path, "--format", "csv", "-o", out)
	if after := hidden(t, dir); len(after) > 0 {
		t.Errorf("%q are left", after)
	}
	d := delivery.New(io.Discard)
	if _, err := d.Open(out); err != nil {
		t.Fatal(err)
	}
	if r := call(t, nil, "export", "--store", path, "--format", "csv", "-o", out); r.code != exitError || !strings.Contains(r.err, "another program is writing it\nhint: ") {
		t.Errorf("two at once: exit code %d, %s", r.code, r.err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "export", "--store", path, "--format", "csv", "-o", out)
}

// TestExportToSpecialFiles: what is no regular file is written to as it is, and links
// stay links.
func TestExportToSpecialFiles(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	want := must(t, nil, "export", "--store", path).out
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	to := func(name string) { t.Helper(); must(t, nil, "export", "--store", path, "-o", name) }
	if err := errors.Join(os.Mkdir(in("sub"), 0o755), os.Symlink("sub/there", in("link")), os.Symlink(in("link"), in("link2")), syscall.Mkfifo(in("fifo"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"link2", "link"} { // the first makes the file
		to(in(link))
		if fi, err := os.Lstat(in(link)); err != nil || fi.Mode()&os.ModeSymlink == 0 || read(t, in("sub/there")) != want {
			t.Errorf("%s: %v, %v", link, fi, err)
		}
		if m := manifestOf(t, in(link)+".manifest.json"); m.Verify(t.Context(), dir) != nil {
			t.Errorf("%s: %v", link, m.Verify(t.Context(), dir))
		}
	}
	if r := call(t, nil, "export", "--store", path, "-o", in("fifo")); r.code != exitError || !strings.Contains(r.err, "the pipe has no reader\nhint: ") {
		t.Errorf("a pipe without a reader: exit code %d, %s", r.code, r.err)
	}
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(in("fifo"))
		got <- string(b)
	}()
	to(in("fifo"))
	if b := <-got; b != want {
		t.Errorf("the pipe has %q", b)
	}
	if fi, err := os.Lstat(in("fifo")); err != nil || fi.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe is %v, %v", fi, err)
	}
	if _, err := os.Stat(in("fifo.manifest.json")); err == nil {
		t.Error("a pipe has a manifest")
	}
	to(os.DevNull)
	f, err := os.Create(in("open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := os.Stat("/dev/fd"); err == nil {
		to(fmt.Sprintf("/dev/fd/%d", f.Fd()))
		if b := read(t, in("open")); b != want {
			t.Errorf("the open file has %q", b)
		}
	}
	// Whatever makes a document writes it likewise.
	must(t, nil, "report", "--store", path, "-o", in("link"))
	if fi, err := os.Lstat(in("link")); err != nil || fi.Mode()&os.ModeSymlink == 0 || read(t, in("sub/there")) == want {
		t.Errorf("a report to a link: %v, %v", fi, err)
	}
}

// TestExportOfLongNames: names longer than those of files make no trouble.
func TestExportOfLongNames(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	a := attempts(t, path)[0]
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Model = strings.Repeat("m", 400)
	a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest}, a.Setting, 2025, 1)
	a.Experiment, a.Run = strings.Repeat("e", 300), "long"
	if err := db.BeginRun(t.Context(), store.Experiment{Name: a.Experiment, Spec: []byte("{}")}, store.Run{ID: a.Run}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Save(t.Context(), &a, nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	logs := filepath.Join(t.TempDir(), "logs")
	must(t, nil, "export", "--store", path, "--format", "inspect", "-o", logs)
	if got := logsIn(t, logs); len(got) != 2 {
		t.Errorf("logs %q", got)
	}
	out := filepath.Join(t.TempDir(), "v3.json")
	must(t, nil, "export", "--store", path, "--format", "v3", "-o", out)
	if r := must(t, nil, "import", "legacy", out, "--dry-run"); !strings.Contains(r.out, "6 aggregates") {
		t.Errorf("our own V3: %s", r.out)
	}
}

// TestExportOfDamagedTranscripts: what is said to be missing is, of what was chosen.
func TestExportOfDamagedTranscripts(t *testing.T) {
	t.Parallel()
	path := quickRun(t, "models: [sim/listed, sim/expert]\ntasks_per_type: 1\nvariants: [optimal]\n")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"DROP TRIGGER transcripts_keep", "UPDATE transcripts SET body = x'28b52ffd0001' WHERE attempt IN (SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial WHERE t.model = 'sim/expert')"} {
		if _, err := db.Exec(step); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		lost string
	}{
		{nil, ""},
		{[]string{"--calls", "-"}, "5 transcripts cannot be read"},
		{[]string{"--calls", "-", "--where", "model=sim/listed"}, ""},
		{[]string{"--calls", "-", "--where", "model=sim/expert"}, "5 transcripts cannot be read"},
		{[]string{"--format", "inspect"}, "5 transcripts cannot be read"},
		{[]string{"--format", "inspect", "--where", "model=sim/listed"}, ""},
		{[]string{"--format", "csv50"}, ""},
	} {
		out := filepath.Join(t.TempDir(), "out")
		args := append([]string{"export", "--store", path, "-o", out}, c.args...)
		if i := slices.Index(args, "--calls"); i >= 0 {
			args[i+1] = out + ".calls"
		}
		r := call(t, nil, args...)
		checked := call(t, nil, "export", "--check", out)
		if c.lost == "" && checked.code != exitOK || c.lost != "" && (checked.code != exitError || !strings.Contains(checked.err, c.lost+", so the export is incomplete\nhint: ")) || !strings.Contains(checked.out, "whole") {
			t.Errorf("%q: the check ends with %d, %s%s", c.args, checked.code, checked.out, checked.err)
		}
		if c.lost == "" && r.code != exitOK || c.lost != "" && (r.code != exitError || !strings.Contains(r.err, c.lost)) {
			t.Errorf("%q: exit code %d, %s, want %q", c.args, r.code, r.err, c.lost)
		}
	}
}

// TestExportOfDamagedAttempts: whether an attempt that cannot be read was chosen is not
// claimed to be known.
func TestExportOfDamagedAttempts(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	tamper(t, path, "UPDATE attempts SET started_at = 'no time' WHERE id = 3")
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "1 attempt cannot be read, so the export is incomplete"},
		{[]string{"--where", "model=sim/listed"}, "1 attempt cannot be read, so the export may be incomplete"},
		{[]string{"--experiment", "quick"}, "may be incomplete"},
	} {
		r := call(t, nil, append([]string{"export", "--store", path}, c.args...)...)
		if r.code != exitError || strings.Count(r.out, "\n") != 4 || !strings.Contains(r.err, c.says) {
			t.Errorf("%q: exit code %d, %d attempts, %s", c.args, r.code, strings.Count(r.out, "\n"), r.err)
		}
		for _, format := range []string{"jsonl", "v3", "inspect"} {
			out := filepath.Join(t.TempDir(), "out")
			if r := call(t, nil, append([]string{"export", "--store", path, "-o", out, "--format", format}, c.args...)...); r.code != exitError {
				t.Errorf("%s: exit code %d", format, r.code)
			}
			r := call(t, nil, "export", "--check", out)
			if r.code != exitError || !strings.Contains(r.err, c.says) || !strings.Contains(r.out, "4 attempts, snapshot ") {
				t.Errorf("%s: the check ends with %d, %s%s", format, r.code, r.out, r.err)
			}
		}
	}
}

// contents returns what is in each file of a directory, but for those that SQLite writes
// at whim.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasSuffix(e.Name(), "-shm") {
			all[e.Name()] = read(t, filepath.Join(dir, e.Name()))
		}
	}
	return all
}

// TestNothingReplacesStores: no output takes the place of a store or of a file that is
// one's own, whatever name leads there.
func TestNothingReplacesStores(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := filepath.Dir(path)
	in := func(name string) string { return filepath.Join(dir, name) }
	hiddenStore := in(".secret")
	if err := errors.Join(os.Symlink("q.db", in("link.csv")), os.Symlink("q.db-wal", in("wal.csv")), os.Link(path, in("hard.csv")),
		os.WriteFile(in("plain"), []byte("SQLite format 3"), 0o600)); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "backup", "--store", path, hiddenStore)
	before := contents(t, dir)
	// To write "secret" takes .secret.lock and .secret.part.
	for _, name := range []string{"q.db", "link.csv", "wal.csv", "hard.csv", "q.db-wal", "q.db-shm", "q.db-journal", "q.db.lock", "q.db.damaged", "q.db.ctl", "link.csv-wal", "secret"} {
		all := [][]string{{"export", "-o", in(name)}, {"export", "-o", in("new.csv"), "--calls", in(name)}, {"report", "-o", in(name)}}
		if name != "secret" && name != "wal.csv" { // of which no directory is made
			all = append(all, []string{"export", "--format", "inspect", "-o", in(name)})
		}
		for _, args := range all {
			r := call(t, nil, append(args, "--store", path)...)
			if r.code != exitUsage || !strings.Contains(r.err, "store") || !strings.Contains(r.err, "\nhint: ") || r.out != "" {
				t.Errorf("%q: exit code %d, %s", args, r.code, r.err)
			}
			if after := contents(t, dir); !reflect.DeepEqual(after, before) {
				t.Fatalf("%q changed something", args)
			}
		}
	}
	must(t, nil, "export", "--store", path, "-o", in("plain")) // which only begins like one
	if _, err := os.Stat("/dev/fd"); err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r := call(t, nil, "export", "--store", path, "-o", fmt.Sprintf("/dev/fd/%d", f.Fd())); r.code != exitUsage {
		t.Errorf("an open store: exit code %d, %s", r.code, r.err)
	}
}

// TestExportWithoutTranscripts: calls of attempts whose transcripts were deleted are
// counted as lacking, which is no damage.
func TestExportWithoutTranscripts(t *testing.T) {
	t.Parallel()
	path := quickRun(t, "models: [sim/listed, sim/expert]\ntasks_per_type: 1\nvariants: [optimal]\n")
	must(t, nil, "delete", "--store", path, "--transcripts-only", "--model", "sim/listed", "--yes")
	const says = "5 attempts exported without calls and messages"
	for _, c := range []struct {
		args []string
		lost bool
	}{
		{nil, false},
		{[]string{"--calls", filepath.Join(t.TempDir(), "calls")}, true},
		{[]string{"--calls", filepath.Join(t.TempDir(), "calls"), "--where", "model=sim/expert"}, false},
		{[]string{"--format", "inspect"}, true},
	} {
		out := filepath.Join(t.TempDir(), "out")
		r := must(t, nil, append([]string{"export", "--store", path, "-o", out}, c.args...)...)
		checked := must(t, nil, "export", "--check", out)
		if strings.Contains(r.err, says) != c.lost || strings.Contains(checked.out, says) != c.lost {
			t.Errorf("%q: says %s, and the check %s", c.args, r.err, checked.out)
		}
	}
}

// TestInspectExportsBesideOthers: exports in one second keep their logs apart, and the
// directory keeps what is others'.
func TestInspectExportsBesideOthers(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	into := func(args ...string) result {
		return call(t, nil, append([]string{"export", "--store", path, "--format", "inspect", "-o", dir}, args...)...)
	}
	left := []string{".2026-03-02T08-30-00-00-00_e_m_0-1.eval.part", ".2026-03-02T08-30-00-00-00_e_m_0-1.eval.lock", ".2026-03-02T08-30-00-00-00_e_m_0-2.eval.lock"}
	kept := []string{".mine.part", ".notes.eval.txt", "a.eval.part"}
	for _, name := range slices.Concat(left, kept) {
		if err := os.WriteFile(in(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := delivery.New(io.Discard)
	if _, err := d.Open(in("now.eval")); err != nil { // another program is at it
		t.Fatal(err)
	}
	for _, tasks := range []string{"simple_task", "basic_task", "data_pipeline"} {
		if r := into("--where", "task_type="+tasks); r.code != exitOK {
			t.Fatal(r.err)
		}
	}
	if got := logsIn(t, dir); len(got) != 3 {
		t.Errorf("logs %q", got)
	}
	var names []string
	for _, name := range hidden(t, dir) {
		names = append(names, filepath.Base(name))
	}
	if want := []string{".mine.part", ".notes.eval.txt", ".now.eval.lock", ".now.eval.part"}; !slices.Equal(names, want) {
		t.Errorf("hidden are %q, want %q", names, want)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{`{"name": "my app", "icons": []}`, "", "x", `{"format_version": 99}`} {
		if err := os.WriteFile(in("manifest.json"), []byte(foreign), 0o644); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		if r := into(); r.code != exitError || !strings.Contains(r.err, "is not a manifest of an export") || !strings.Contains(r.err, "\nhint: name another directory") {
			t.Errorf("exit code %d, %s", r.code, r.err)
		}
		if !reflect.DeepEqual(contents(t, dir), before) {
			t.Errorf("over %q something was written", foreign)
		}
	}
}

// TestExportKeepsPermissions: what replaces a file is no more public, nor less.
func TestExportKeepsPermissions(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	out := filepath.Join(t.TempDir(), "out")
	for _, mode := range []os.FileMode{0o600, 0o666, 0o440} {
		if err := errors.Join(os.WriteFile(out, nil, 0o600), os.Chmod(out, mode)); err != nil && mode != 0o440 {
			t.Fatal(err)
		}
		must(t, nil, "export", "--store", path, "-o", out)
		if fi, err := os.Stat(out); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%v became %v, %v", mode, fi.Mode(), err)
		}
	}
}

// TestCheckFindsManifests: any file of an export leads to the manifest that tells of it,
// and what a manifest says does nothing to a terminal.
func TestCheckFindsManifests(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, nil, "export", "--store", path, "-o", in("zold.jsonl"), "--calls", in("calls.jsonl"), "--where", "repeat=2")
	must(t, nil, "export", "--store", path, "-o", in("out.jsonl"), "--calls", in("calls.jsonl"))
	must(t, nil, "export", "--store", path, "--format", "inspect", "-o", dir)
	logs, err := filepath.Glob(in("*.eval"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	for name, want := range map[string]string{
		in("calls.jsonl"):             "out.jsonl: whole, 5 attempts\ncalls.jsonl: whole, ", // the latest that names it
		logs[0]:                       filepath.Base(logs[0]) + ": whole, 5 trials\n",
		in("out.jsonl"):               "out.jsonl: whole, 5 attempts\n",
		in("out.jsonl.manifest.json"): "out.jsonl: whole, 5 attempts\n",
		in("manifest.json"):           ".eval: whole, 5 trials\n",
	} {
		if r := must(t, nil, "export", "--check", name); !strings.Contains(r.out, want) {
			t.Errorf("%s: %s", name, r.out)
		}
	}
	if err := os.WriteFile(in("other.eval"), []byte("PK"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := call(t, nil, "export", "--check", in("other.eval")); r.code != exitError || !strings.Contains(r.err, "no manifest beside it names it") || !strings.Contains(r.err, "\nhint: ") {
		t.Errorf("exit code %d, %s", r.code, r.err)
	}
	evil := `{"format_version": 1, "snapshot": "\u001b[2J", "store": "\u202e", "files": [{"name": "\u001b[31mred", "format": "\u001bx", "table": "\u001b"},
		{"name": "out.jsonl", "format": "v3", "table": "\u001b", "sha256": "\u001b[2J"}]}`
	if err := os.WriteFile(in("m.json"), []byte(evil), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := call(t, nil, "export", "--check", in("m.json")); r.code != exitError || strings.ContainsAny(r.out+r.err, "\x1b\u202e") || !strings.Contains(r.err, "red") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}

// TestOneStreamOfTables: two tables never share a file, by whatever names.
func TestOneStreamOfTables(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/fd"); err != nil {
		t.Skip(err)
	}
	path := quickRun(t, oneModel)
	out := filepath.Join(t.TempDir(), "out")
	for _, calls := range []string{"/dev/stdout", "/dev/fd/1", out} {
		for _, kind := range []string{"file", "pipe"} {
			if kind == "pipe" && calls == out {
				continue
			}
			cmd := program(t, "export", "--store", path, "-o", "-", "--calls", calls)
			var errs strings.Builder
			cmd.Stderr = &errs
			f, err := os.Create(out)
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stdout = f
			if kind == "pipe" {
				cmd.Stdout = new(strings.Builder)
			}
			err = cmd.Run()
			f.Close()
			if cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(errs.String(), "two outputs have the same path") {
				t.Errorf("%s to a %s: %v, %s", calls, kind, err, errs.String())
			}
		}
	}
}

// TestNothingAppearsBesideABrokenPipe: files that do not appear because the reader of
// another went away are an error.
func TestNothingAppearsBesideABrokenPipe(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	out := filepath.Join(t.TempDir(), "a.jsonl")
	var errs bytes.Buffer
	code := run([]string{"export", "--store", path, "-o", out, "--calls", "-"},
		&process{in: strings.NewReader(""), out: &refusing{10, syscall.EPIPE}, err: &errs, env: func(string) (string, bool) { return "", false }})
	if _, err := os.Stat(out); code != exitError || !strings.Contains(errs.String(), "nothing was written") || err == nil {
		t.Errorf("exit code %d, %s; the file is there: %v", code, errs.String(), err == nil)
	}
}
