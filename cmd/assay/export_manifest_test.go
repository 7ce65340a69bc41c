package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/result/export"
)

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

// TestExportManifests checks that every format has a manifest with the conditions of the export,
// and that --check finds a changed file.
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
		args := []string{
			"export", "--store", path, "--format", format, "-o", out,
			"--where", where[0], "--where", where[1], "--experiment", "quick",
		}
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
		if err := m.Verify(t.Context(), filepath.Dir(name)); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if len(m.Files) != files || string(m.Files[0].Format) != format || m.Files[0].Rows != 5 {
			t.Errorf("%s: files %+v", format, m.Files)
		}
		filtered := m.Filter.Experiment == "quick" && slices.Equal(m.Filter.Where, where)
		if m.Counts.Attempts != 5 || m.Snapshot != snapshotOf(t, path) || !filtered {
			t.Errorf("%s: manifest %+v", format, m)
		}
		for _, named := range []string{name, args[6]} {
			r := must(t, nil, "export", "--check", named)
			summary := "5 attempts, snapshot " + m.Snapshot
			if strings.Count(r.out, ": whole, ") != files || !strings.Contains(r.out, summary) {
				t.Errorf("%s: --check %s prints %s", format, named, r.out)
			}
		}
	}
	if err := os.WriteFile(out, []byte(read(t, out)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "export", "--check", out)
	if r.code != exitError || !strings.Contains(r.err, "verify out: has ") || r.out != "" {
		t.Errorf("check of a changed file: exit code %d, %q, %s", r.code, r.out, r.err)
	}
	for _, other := range []string{filepath.Join(dir, "none"), path, t.TempDir()} {
		wantError(t, exitError, "\nhint: name an exported file", "export", "--check", other)
	}
}

// TestExportOfDamagedTranscripts checks that only damage to selected transcripts counts as missing.
func TestExportOfDamagedTranscripts(t *testing.T) {
	t.Parallel()
	path := quickRun(t,
		"models: [sim/listed, sim/expert]\ntasks_per_type: 1\nvariants: [optimal]\n")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	const damage = `UPDATE transcripts SET body = x'28b52ffd0001' WHERE attempt IN
		(SELECT a.id FROM attempts a JOIN trials t ON t.id = a.trial WHERE t.model = 'sim/expert')`
	for _, step := range []string{"DROP TRIGGER transcripts_keep", damage} {
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
		code, message := exitOK, ""
		if c.lost != "" {
			code, message = exitError, c.lost+", so the export is incomplete\nhint: "
		}
		if r.code != code || !strings.Contains(r.err, message) {
			t.Errorf("%q: exit code %d, %s, want %d, %q", c.args, r.code, r.err, code, message)
		}
		if checked.code != code || !strings.Contains(checked.err, message) ||
			!strings.Contains(checked.out, "whole") {
			t.Errorf("%q: --check ends with %d, %s%s", c.args, checked.code, checked.out,
				checked.err)
		}
	}
}

// TestExportOfDamagedAttempts checks that an export with a filter may, but need not, be incomplete:
// the damaged attempt may not match the filter.
func TestExportOfDamagedAttempts(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	tamper(t, path, "UPDATE attempts SET started_at = 'no time' WHERE id = 3")
	for _, c := range []struct {
		args   []string
		prints string
	}{
		{nil, "1 attempt cannot be read or proved, so the export is incomplete"},
		{
			[]string{"--where", "model=sim/listed"},
			"1 attempt cannot be read or proved, so the export may be incomplete",
		},
		{[]string{"--experiment", "quick"}, "may be incomplete"},
	} {
		r := call(t, nil, append([]string{"export", "--store", path}, c.args...)...)
		if r.code != exitError || strings.Count(r.out, "\n") != 4 ||
			!strings.Contains(r.err, c.prints) {
			t.Errorf("%q: exit code %d, %d attempts, %s", c.args, r.code,
				strings.Count(r.out, "\n"), r.err)
		}
		for _, format := range []string{"jsonl", "v3", "inspect"} {
			out := filepath.Join(t.TempDir(), "out")
			args := append([]string{"export", "--store", path, "-o", out, "--format", format},
				c.args...)
			wantError(t, exitError, c.prints, args...)
			r := call(t, nil, "export", "--check", out)
			whole := strings.Contains(r.out, "4 attempts, snapshot ")
			if r.code != exitError || !whole || !strings.Contains(r.err, c.prints) {
				t.Errorf("%s: --check ends with %d, %s%s", format, r.code, r.out, r.err)
			}
		}
	}
}

// TestExportWithoutTranscripts exports attempts whose transcripts were deleted. The export mentions
// them, but that is not an error.
func TestExportWithoutTranscripts(t *testing.T) {
	t.Parallel()
	path := quickRun(t,
		"models: [sim/listed, sim/expert]\ntasks_per_type: 1\nvariants: [optimal]\n")
	must(t, nil, "store", "delete", "--store", path, "--transcripts-only",
		"--model", "sim/listed", "--yes")
	const note = "5 attempts exported without calls and messages"
	for _, c := range []struct {
		args []string
		lost bool
	}{
		{nil, false},
		{[]string{"--calls", filepath.Join(t.TempDir(), "calls")}, true},
		{
			[]string{"--calls", filepath.Join(t.TempDir(), "calls"), "--where", "model=sim/expert"},
			false,
		},
		{[]string{"--format", "inspect"}, true},
	} {
		out := filepath.Join(t.TempDir(), "out")
		r := must(t, nil, append([]string{"export", "--store", path, "-o", out}, c.args...)...)
		checked := must(t, nil, "export", "--check", out)
		if strings.Contains(r.err, note) != c.lost ||
			strings.Contains(checked.out, note) != c.lost {
			t.Errorf("%q prints %s, and --check %s", c.args, r.err, checked.out)
		}
	}
}

// TestCheckFindsManifests checks that every file of an export leads to its manifest, and that a
// manifest cannot control the terminal.
func TestCheckFindsManifests(t *testing.T) {
	t.Parallel()
	path := quickRun(t, oneModel)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	must(t, nil, "export", "--store", path, "-o", in("zold.jsonl"), "--calls", in("calls.jsonl"),
		"--where", "repeat=2")
	must(t, nil, "export", "--store", path, "-o", in("out.jsonl"), "--calls", in("calls.jsonl"))
	must(t, nil, "export", "--store", path, "--format", "inspect", "-o", dir)
	logs, err := filepath.Glob(in("*.eval"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	for name, want := range map[string]string{
		in("calls.jsonl"): "out.jsonl: whole, 5 attempts\ncalls.jsonl: whole, ",
		// the latest manifest that lists it
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
	wantError(t, exitError, "no manifest in its directory lists it", "export", "--check",
		in("other.eval"))

	evil := `{"format_version": 1, "snapshot": "\u001b[2J", "store": "\u202e", "files": [
		{"name": "\u001b[31mred", "format": "\u001bx", "table": "\u001b"},
		{"name": "out.jsonl", "format": "v3", "table": "\u001b", "sha256": "\u001b[2J"}]}`
	if err := os.WriteFile(in("m.json"), []byte(evil), 0o644); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "export", "--check", in("m.json"))
	obeyed := strings.ContainsAny(r.out+r.err, "\x1b\u202e")
	if r.code != exitError || obeyed || !strings.Contains(r.err, "red") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}
