package main

import (
	"archive/zip"
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
	"github.com/assay-eval/assay/internal/store"
)

// logsIn describes each log of Inspect in a directory by its experiment, status, trials and
// conditions, sorted by experiment.
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
		text := fmt.Sprintf("%s %s %d of %d", h.Eval.Task, h.Status, h.Results.Completed,
			h.Results.Total)
		filter := string(h.Eval.Metadata.Filter)
		if strings.HasPrefix(filter, "{") && strings.Contains(filter, "where") {
			text += " by " + filter
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// hidden returns the paths of the hidden files in a directory.
func hidden(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

const oneModel = "models: [sim/listed]\ntasks_per_type: 1\nvariants: [optimal]\n"

// TestExportFilesAppearTogether checks that a failed export changes no file, that the remains of a
// killed export are removed, and that two exports don't write one file at once.
func TestExportFilesAppearTogether(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := t.TempDir()
	out := filepath.Join(dir, "out.csv")
	must(t, nil, "export", "--store", path, "--format", "csv", "-o", out)
	before := tree(t, dir)
	const same = "two outputs have the same path"
	for _, tc := range []struct {
		name   string
		args   []string
		code   int
		prints string
	}{
		{
			"calls in no directory",
			[]string{"--calls", filepath.Join(dir, "no", "calls")},
			exitError,
			"there is no directory",
		},
		{
			"calls are a directory",
			[]string{"--calls", dir},
			exitError,
			"it is a directory\nhint: name a file in it",
		},
		{"output is a directory", []string{"-o", dir}, exitError, "it is a directory"},
		{
			"output below a file",
			[]string{"-o", filepath.Join(out, "below")},
			exitError,
			"there is no directory",
		},
		{"calls are the output", []string{"--calls", out}, exitUsage, same},
		{
			"other spelling",
			[]string{"--calls", filepath.Join(dir, ".", "out.csv")},
			exitUsage,
			same,
		},
		{"calls are the manifest", []string{"--calls", out + ".manifest.json"}, exitUsage, same},
		{"unknown snapshot", []string{"--snapshot", "7-none"}, exitError, "not a snapshot"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"export", "--store", path, "-o", out}, tc.args...)
			wantError(t, tc.code, tc.prints, args...)
			if tree(t, dir) != before {
				t.Fatalf("%q changed a file", tc.args)
			}
		})
	}

	err := errors.Join(
		os.WriteFile(filepath.Join(dir, ".out.csv.part"), []byte("left by a killed program"),
			0o600),
		os.WriteFile(filepath.Join(dir, ".out.csv.lock"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	must(t, nil, "export", "--store", path, "--format", "csv", "-o", out)
	if after := hidden(t, dir); len(after) > 0 {
		t.Errorf("hidden files %q are left", after)
	}

	d := delivery.New(io.Discard)
	if _, err := d.Open(out); err != nil {
		t.Fatal(err)
	}
	wantError(t, exitError, "another program is writing it\nhint: ",
		"export", "--store", path, "--format", "csv", "-o", out)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "export", "--store", path, "--format", "csv", "-o", out)
}

// TestExportToSpecialFiles writes to symbolic links, a pipe, a device and an open file. Links stay
// links, and the others are written to as they are, without a manifest.
func TestExportToSpecialFiles(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	want := must(t, nil, "export", "--store", path).out
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	to := func(name string) { t.Helper(); must(t, nil, "export", "--store", path, "-o", name) }
	err := errors.Join(
		os.Mkdir(in("sub"), 0o755),
		os.Symlink("sub/there", in("link")),
		os.Symlink(in("link"), in("link2")),
		syscall.Mkfifo(in("fifo"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	isLink := func(name string) bool {
		fi, err := os.Lstat(in(name))
		return err == nil && fi.Mode()&os.ModeSymlink != 0
	}
	for _, link := range []string{"link2", "link"} { // the first one creates the file
		to(in(link))
		if !isLink(link) || read(t, in("sub/there")) != want {
			t.Errorf("%s is not a link to the export any more", link)
		}
		if m := manifestOf(t, in(link)+".manifest.json"); m.Verify(t.Context(), dir) != nil {
			t.Errorf("%s: %v", link, m.Verify(t.Context(), dir))
		}
	}

	wantError(t, exitError, "the pipe has no reader\nhint: ", "export", "--store", path, "-o",
		in("fifo"))
	got := make(chan string)
	go func() {
		b, _ := os.ReadFile(in("fifo"))
		got <- string(b)
	}()
	to(in("fifo"))
	if b := <-got; b != want {
		t.Errorf("the pipe delivered %q", b)
	}
	if fi, err := os.Lstat(in("fifo")); err != nil || fi.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe became %v, %v", fi, err)
	}
	if _, err := os.Stat(in("fifo.manifest.json")); err == nil {
		t.Error("the pipe has a manifest")
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
			t.Errorf("the open file contains %q", b)
		}
	}

	must(t, nil, "report", "--store", path, "-o", in("link"))
	if !isLink("link") || read(t, in("sub/there")) == want {
		t.Error("a report does not write through a link as an export does")
	}
}

// TestExportOfLongNames exports a model and an experiment whose names are too long for a file name.
func TestExportOfLongNames(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	a := attempts(t, path)[0]
	db := writable(t, path)
	a.Model = strings.Repeat("m", 400)
	a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest}, a.Setting,
		2025, 1)
	a.Experiment, a.Run = strings.Repeat("e", 300), "long"
	e := store.Experiment{Name: a.Experiment, Spec: []byte("{}")}
	if err := db.BeginRun(t.Context(), e, store.Run{ID: a.Run}); err != nil {
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
	r := must(t, nil, "store", "import", out, "--dry-run")
	if !strings.Contains(r.out, "6 aggregates") {
		t.Errorf("import of the V3 export: %s", r.out)
	}
}

// contents returns the contents of each file in a directory, except for shared memory of SQLite.
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

// TestOutputsNeverReplaceStores tries to write over a store, and over files that belong to one,
// directly and through links.
func TestOutputsNeverReplaceStores(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := filepath.Dir(path)
	in := func(name string) string { return filepath.Join(dir, name) }
	hiddenStore := in(".secret")
	err := errors.Join(
		os.Symlink("q.db", in("link.csv")),
		os.Symlink("q.db-wal", in("wal.csv")),
		os.Link(path, in("hard.csv")),
		os.WriteFile(in("plain"), []byte("SQLite format 3"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	must(t, nil, "store", "backup", "--store", path, hiddenStore)
	before := contents(t, dir)
	for _, name := range []string{
		"q.db", "link.csv", "wal.csv", "hard.csv", "q.db-wal", "q.db-shm", "q.db-journal",
		"q.db.lock", "q.db.damaged", "q.db.ctl", "link.csv-wal",
		"secret", // because it would be written through .secret.lock, which belongs to a store
	} {
		all := [][]string{
			{"export", "-o", in(name)},
			{"export", "-o", in("new.csv"), "--calls", in(name)},
			{"report", "-o", in(name)},
		}
		if name != "secret" && name != "wal.csv" { // a directory of these names does no harm
			all = append(all, []string{"export", "--format", "inspect", "-o", in(name)})
		}
		for _, args := range all {
			r := call(t, nil, append(args, "--store", path)...)
			refused := strings.Contains(r.err, "store") && strings.Contains(r.err, "\nhint: ")
			if r.code != exitUsage || !refused || r.out != "" {
				t.Errorf("%q: exit code %d, %s", args, r.code, r.err)
			}
			if after := contents(t, dir); !reflect.DeepEqual(after, before) {
				t.Fatalf("%q changed a file", args)
			}
		}
	}
	must(t, nil, "export", "--store", path, "-o",
		in("plain")) // not a database, although it starts like one
	if _, err := os.Stat("/dev/fd"); err != nil {
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wantError(t, exitUsage, "store", "export", "--store", path, "-o",
		fmt.Sprintf("/dev/fd/%d", f.Fd()))
}

// TestInspectExportsKeepOtherFiles exports into a directory several times in one second. All logs
// stay, the remains of killed programs go, and the files of others stay.
func TestInspectExportsKeepOtherFiles(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	into := func(args ...string) result {
		args = append([]string{"export", "--store", path, "--format", "inspect", "-o", dir},
			args...)
		return call(t, nil, args...)
	}
	left := []string{
		".2026-03-02T08-30-00-00-00_e_m_0-1.eval.part",
		".2026-03-02T08-30-00-00-00_e_m_0-1.eval.lock",
		".2026-03-02T08-30-00-00-00_e_m_0-2.eval.lock",
	}
	kept := []string{".mine.part", ".notes.eval.txt", "a.eval.part"}
	for _, name := range slices.Concat(left, kept) {
		if err := os.WriteFile(in(name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d := delivery.New(io.Discard)
	if _, err := d.Open(in("now.eval")); err != nil { // another program is writing it
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
	want := []string{".mine.part", ".notes.eval.txt", ".now.eval.lock", ".now.eval.part"}
	if !slices.Equal(names, want) {
		t.Errorf("the hidden files are %q, want %q", names, want)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, foreign := range []string{
		`{"name": "my app", "icons": []}`, "", "x",
		`{"format_version": 99}`,
	} {
		if err := os.WriteFile(in("manifest.json"), []byte(foreign), 0o644); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		r := into()
		hint := strings.Contains(r.err, "\nhint: name another directory")
		if r.code != exitError || !strings.Contains(r.err, "is not a manifest of an export") ||
			!hint {
			t.Errorf("manifest.json is %q: exit code %d, %s", foreign, r.code, r.err)
		}
		if !reflect.DeepEqual(contents(t, dir), before) {
			t.Errorf("manifest.json is %q: the export changed a file", foreign)
		}
	}
}

func TestExportKeepsPermissionsOfReplacedFile(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	out := filepath.Join(t.TempDir(), "out")
	for _, mode := range []os.FileMode{0o600, 0o666, 0o440} {
		if err := errors.Join(os.WriteFile(out, nil, 0o600), os.Chmod(out, mode)); err != nil &&
			mode != 0o440 {
			t.Fatal(err)
		}
		must(t, nil, "export", "--store", path, "-o", out)
		if fi, err := os.Stat(out); err != nil || fi.Mode().Perm() != mode {
			t.Errorf("%v became %v, %v", mode, fi.Mode(), err)
		}
	}
}
