package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportFiles writes the same attempts in two formats. A failed export leaves no files behind.
func TestExportFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	experiment := file(t, dir, "e.yaml", oneModel)
	db := filepath.Join(dir, "assay.db")
	must(t, nil, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")
	jsonl, csv := filepath.Join(dir, "out.jsonl"), filepath.Join(dir, "out.csv")
	r := must(t, nil, "export", "--store", db, "--output", jsonl)
	must(t, nil, "export", "--store", db, "--format", "csv", "-o", csv)
	if !strings.HasPrefix(r.err, "5 attempts of snapshot 5-") {
		t.Errorf("export prints %q", r.err)
	}
	for path, lines := range map[string]int{jsonl: 5, csv: 6} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n != lines {
			t.Errorf("%s has %d lines, want %d", path, n, lines)
		}
	}
	before := tree(t, dir)
	missing := filepath.Join(dir, "no", "such", "dir.csv")
	wantError(t, exitError, "there is no directory", "export", "--store", db, "--output", missing)
	wantError(t, exitError, "known are e", "export", "--store", db, "--experiment", "f")
	if tree(t, dir) != before {
		t.Error("a failed export left something behind")
	}
}

// TestStatusWithoutLibrary deletes the library of one of two experiments. Status shows both.
func TestStatusWithoutLibrary(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tasks := file(t, dir, "tasks.json", `[{"id": "t", "task_type": "basic_task",
		"description": "Read it.", "required_tools": ["file_operations_reader"]}]`)
	lib := filepath.Join(dir, "lib.db")
	must(t, nil, "library", "import", tasks, "-o", lib)
	db := filepath.Join(dir, "assay.db")
	mine := file(t, dir, "mine.yaml", "models: [sim/mute]\nlibrary: lib.db\n"+
		"task_types: [basic_task]\ntasks_per_type: all\nvariants: [cot]\n")
	other := file(t, dir, "other.yaml", "models: [sim/mute]\ntasks_per_type: 1\nvariants: [cot]\n")
	for _, e := range []string{mine, other} {
		must(t, nil, "run", e, "--store", db, "--sim-latency", "0", "--display", "none")
	}
	if err := os.Remove(lib); err != nil {
		t.Fatal(err)
	}
	out := must(t, nil, "status", "--store", db).out
	for _, name := range []string{"mine", "other"} {
		if !strings.Contains(out, "experiment "+name) {
			t.Errorf("status lacks %s:\n%s", name, out)
		}
	}
}
