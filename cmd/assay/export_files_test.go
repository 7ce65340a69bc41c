package main

import (
	"archive/zip"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/export"
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
		if err := m.Verify(filepath.Dir(name)); err != nil || len(m.Files) != files || string(m.Files[0].Format) != format || m.Files[0].Rows != 5 {
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
		{[]string{"-o", out, "--calls", out}, exitUsage, "two files at once"},
		{[]string{"-o", out, "--calls", filepath.Join(dir, ".", "out.csv")}, exitUsage, "two files at once"},
		{[]string{"-o", out, "--calls", out + ".manifest.json"}, exitUsage, "two files at once"},
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
	d := &delivery{process: &process{}}
	if _, err := d.open(out); err != nil {
		t.Fatal(err)
	}
	if r := call(t, nil, "export", "--store", path, "--format", "csv", "-o", out); r.code != exitError || !strings.Contains(r.err, "another program is writing it\nhint: ") {
		t.Errorf("two at once: exit code %d, %s", r.code, r.err)
	}
	if err := d.drop(); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "export", "--store", path, "--format", "csv", "-o", out)
}

// TestManyWriters: of programs that write one file at once each succeeds whole or is
// told of another, and the file is always one of theirs.
func TestManyWriters(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	written := make(chan bool)
	for i := range 8 {
		go func() {
			ok := false
			for range 50 {
				err := toFile(&process{}, path, func(w io.Writer) error {
					for range 3 {
						if _, err := fmt.Fprint(w, i); err != nil {
							return err
						}
					}
					return nil
				})
				if ok = ok || err == nil; err != nil && !strings.Contains(err.Error(), "another program") {
					t.Error(err)
				}
			}
			written <- ok
		}()
	}
	some := false
	for range 8 {
		some = <-written || some
	}
	if b := read(t, path); !some || len(b) != 3 || b[0] != b[1] || b[1] != b[2] {
		t.Errorf("the file is %q", b)
	}
	if left := hidden(t, filepath.Dir(path)); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
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
		if m := manifestOf(t, in(link)+".manifest.json"); m.Verify(dir) != nil {
			t.Errorf("%s: %v", link, m.Verify(dir))
		}
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
		r := call(t, nil, append([]string{"export", "--store", path, "-o", filepath.Join(t.TempDir(), "out")}, c.args...)...)
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
		{nil, "1 attempt cannot be read, which the export lacks"},
		{[]string{"--where", "model=sim/listed"}, "1 attempt cannot be read, which the export perhaps lacks"},
		{[]string{"--experiment", "quick"}, "perhaps lacks"},
	} {
		r := call(t, nil, append([]string{"export", "--store", path}, c.args...)...)
		if r.code != exitError || strings.Count(r.out, "\n") != 4 || !strings.Contains(r.err, c.says) {
			t.Errorf("%q: exit code %d, %d attempts, %s", c.args, r.code, strings.Count(r.out, "\n"), r.err)
		}
	}
}
