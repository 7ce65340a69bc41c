package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/legacy"
)

// TestExports checks that every format has the same attempts, and a manifest that proves its files.
func TestExports(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	dir := t.TempDir()
	want := attempts(t, path)
	for _, format := range []string{"jsonl", "csv", "parquet"} {
		out, calls := filepath.Join(dir, "a."+format), filepath.Join(dir, "calls."+format)
		must(t, nil, "export", "--store", path, "--format", format, "--output", out, "--calls",
			calls)
		f, err := os.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		var got []assay.Attempt
		for a, err := range export.Read(f) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a)
		}
		f.Close()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-jsonl +%s):\n%s", format, format, diff)
		}
		m, err := os.Open(out + ".manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := export.ReadManifest(m)
		m.Close()
		if err == nil {
			err = manifest.Verify(t.Context(), dir)
		}
		if err != nil {
			t.Errorf("%s: %v", format, err)
		}
		complete := manifest.Counts.Attempts == len(want) && len(manifest.Files) == 2
		if !complete || manifest.Snapshot != snapshotOf(t, path) {
			t.Errorf("%s: manifest %+v", format, manifest)
		}
	}

	some := must(t, nil, "export", "--store", path,
		"--where", "model=sim/expert", "--where", "level!=full_success").out
	n := 0
	for _, a := range want {
		if a.Model == "sim/expert" && a.Level != assay.FullSuccess {
			n++
		}
	}
	if got := strings.Count(some, "\n"); got != n || n == 0 {
		t.Errorf("%d attempts match the conditions, want %d", got, n)
	}
	if since := must(t, nil, "export", "--store", path, "--since",
		snapshotOf(t, path)).out; since != "" {
		t.Errorf("the export since the present snapshot is %q, want nothing", since)
	}
	wantError(t, exitUsage, "model", "export", "--store", path, "--where", "modl=x")
}

// TestForeignFormats checks that the original's database and Inspect's logs contain all attempts.
func TestForeignFormats(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	dir := t.TempDir()
	v3 := must(t, nil, "export", "--store", path, "--format", "v3").out
	d, err := legacy.Read(strings.NewReader(v3))
	if err != nil {
		t.Fatal(err)
	}
	var sum legacy.Counts
	for i := range d.Aggregates {
		sum.Add(d.Aggregates[i].Stored)
	}
	full := 0
	all := attempts(t, path)
	for _, a := range all {
		if a.Level == assay.FullSuccess {
			full++
		}
	}
	if sum.Total != len(all) || sum.Full != full {
		t.Errorf("the V3 file counts %+v, want %d tests, %d full", sum, len(all), full)
	}
	csv := must(t, nil, "export", "--store", path, "--format", "csv50").out
	header, _, _ := strings.Cut(csv, "\n")
	n := len(strings.Split(header, ","))
	if n != 50 || strings.Count(csv, "\n") != 1+len(d.Aggregates) {
		t.Errorf("the CSV has %d columns and %d rows, want 50 and %d",
			n, strings.Count(csv, "\n")-1, len(d.Aggregates))
	}
	logs := filepath.Join(dir, "logs")
	must(t, nil, "export", "--store", path, "--format", "inspect", "--output", logs)
	if files, err := filepath.Glob(logs + "/*.eval"); len(files) != 2 || err != nil {
		t.Errorf("logs %v, error %v; want one log per model", files, err)
	}
	wantError(t, exitUsage, "several files", "export", "--store", path, "--format", "inspect")
}
