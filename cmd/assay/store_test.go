package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
)

// TestDeleteTellsWhoOwes: a trial that one experiment settled another never tries, and
// owes all the same when its outcome goes.
func TestDeleteTellsWhoOwes(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	second := file(t, t.TempDir(), "second.yaml", `
name: second
models: [sim/expert]
variants: [baseline]
reliabilities: [0.9]
tasks_per_type: 3
repeats: 2
tools: listed
`)
	mustProgram(t, "run", second, "--store", path, "--sim-latency", "0", "--display", "none")
	shared := 0
	for _, a := range attempts(t, path) {
		if a.Experiment != "small" {
			t.Fatalf("experiment %s tried a trial that is settled", a.Experiment)
		}
		if a.Model == "sim/expert" && a.Variant == "baseline" && a.Reliability == 0.9 {
			shared++
		}
	}
	want := fmt.Sprintf("experiment second plans %d of the trials that lose their outcome", shared)
	if r := must(t, nil, "delete", "--store", path, "--experiment", "small"); shared == 0 || !strings.Contains(r.out, want) {
		t.Errorf("the preview says %q, want %q", r.out, want)
	}
	if r := must(t, nil, "delete", "--store", path, "--experiment", "small", "--transcripts-only"); strings.Contains(r.out, "pending afterwards") {
		t.Errorf("transcripts settle nothing, and it says %q", r.out)
	}
	var d deletion
	r := must(t, nil, "delete", "--store", path, "--experiment", "small", "--yes", "--json")
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]audit.Loss{{Experiment: "second", Trials: shared}}, d.Pending); diff != "" || !d.Done {
		t.Errorf("%s: (-want +got):\n%s", r.out, diff)
	}
	verifyJSON(t, path, exitOK)
}

func TestDeleteRefusesTheFuture(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	n := len(attempts(t, path))
	for _, age := range []string{"-720h", "0s"} {
		r := call(t, nil, "delete", "--store", path, "--model", "sim/expert", "--older-than="+age, "--yes")
		if r.code != exitUsage || !strings.Contains(r.err, "--older-than") || len(attempts(t, path)) != n {
			t.Errorf("--older-than=%s: exit code %d, %s", age, r.code, r.err)
		}
	}
}

// TestDeleteTwice: an experiment can be made and deleted as often as one likes.
func TestDeleteTwice(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	experiment := filepath.Join(filepath.Dir(path), "small.yaml")
	for range 2 {
		must(t, nil, "delete", "--store", path, "--experiment", "small", "--yes")
		verifyJSON(t, path, exitOK)
		mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	}
	verifyJSON(t, path, exitOK)
}

// TestVerifyWhereNothingCanBeWritten prints what it found, and that no mark is there.
func TestVerifyWhereNothingCanBeWritten(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	tamper(t, path, "UPDATE attempts SET level = 'full_success', error_category = '' WHERE id = (SELECT min(id) FROM attempts WHERE level = 'failure')")
	if err := os.MkdirAll(path+".damaged/in the way", 0o755); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "verify", "--store", path)
	if r.code != exitError || !strings.Contains(r.out, "is not as it was saved") || !strings.Contains(r.out, "the store is damaged.") {
		t.Errorf("exit code %d, %q", r.code, r.out)
	}
	if !strings.Contains(r.err, "mark store") || !strings.Contains(r.err, "\nhint: ") {
		t.Errorf("it does not say that the mark is missing: %q", r.err)
	}
}

// TestVerifyThroughALink names the file that is there.
func TestVerifyThroughALink(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	tamper(t, path, "UPDATE attempts SET input_tokens = input_tokens + 1 WHERE id = 1")
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "verify", "--store", link)
	_, after, _ := strings.Cut(r.out, "No run writes to it while ")
	mark, _, _ := strings.Cut(after, " exists.")
	if _, err := os.Stat(mark); r.code != exitError || err != nil {
		t.Errorf("exit code %d, %q names no file that is there: %v", r.code, r.out, err)
	}
}

// TestRecoverSaysWhatItLost by its exit code too.
func TestRecoverSaysWhatItLost(t *testing.T) {
	t.Parallel()
	source := smallRun(t)
	for name, c := range map[string]struct {
		sql, says string
		code      int
	}{
		"nothing":     {"SELECT 1", "attempts", exitOK},
		"a view":      {"DROP VIEW results", "attempts", exitOK},
		"transcripts": {"DROP TRIGGER transcripts_stay; DELETE FROM transcripts", "kept without their transcripts", exitOK},
		"a level":     {"UPDATE attempts SET turns = turns + 1 WHERE id = 3", "left 1 attempt that cannot", exitError},
		"a table":     {"DROP TABLE scores", "1 table lost everything after the damage", exitError},
		"no run of ours": {`INSERT INTO runs (seq, id, experiment, library_path, library_name, library_digest, planned, program, host, pid, started_at, spec)
			SELECT 0, 'zero', experiment, library_path, library_name, library_digest, planned, program, host, pid, started_at, spec FROM runs LIMIT 1`, "run zero: has a row ID that assay never uses", exitOK},
		"an attempt": {"DROP TRIGGER attempts_stay; DELETE FROM attempts WHERE id = 3", "1 attempt is missing", exitError},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "s.db")
		must(t, nil, "backup", "--store", source, path)
		tamper(t, path, c.sql)
		r := call(t, nil, "recover", "--store", path, filepath.Join(dir, "whole.db"))
		if r.code != c.code || !strings.Contains(r.out+r.err, c.says) {
			t.Errorf("%s: exit code %d, want %d; %s%s", name, r.code, c.code, r.out, r.err)
		}
		verifyJSON(t, filepath.Join(dir, "whole.db"), exitOK)
	}
}

// TestMergeReportsPlans of one name that differ.
func TestMergeReportsPlans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	for _, model := range []string{"sim/expert", "sim/obedient"} {
		path := filepath.Join(dir, filepath.Base(model)+".db")
		experiment := file(t, dir, "e.yaml", "name: e\nmodels: ["+model+"]\nvariants: [baseline]\ntasks_per_type: 1\n")
		mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
		paths = append(paths, path)
	}
	merged := filepath.Join(dir, "merged.db")
	if r := must(t, nil, "merge", merged, paths[0], paths[1]); !strings.Contains(r.out, "experiment e has two plans, which differ in models") {
		t.Errorf("merge says %q", r.out)
	}
	var out struct {
		Plans []store.PlanConflict `json:"plan_conflict_list"`
	}
	r := must(t, nil, "merge", merged+"2", paths[1], paths[0], "--json")
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || len(out.Plans) != 1 || out.Plans[0].Fields[0] != "models" {
		t.Errorf("merge says %s, %v", r.out, err)
	}
}

// TestBackupOfDamageIsRefused, and a copy without a name.
func TestBackupOfDamageIsRefused(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	if r := call(t, nil, "backup", "--store", path, ""); r.code == exitOK || !strings.Contains(r.err, "has no name") {
		t.Errorf("backup without a name: %d, %s", r.code, r.err)
	}
	tamper(t, path, "UPDATE attempts SET turns = turns + 1 WHERE id = 3")
	verifyJSON(t, path, exitError)
	if r := call(t, nil, "backup", "--store", path, path+"2"); r.code != exitError || !strings.Contains(r.err, "assay recover") {
		t.Errorf("backup of a damaged store: %d, %s", r.code, r.err)
	}
}

// TestCutTableIsNoticed: a page that leads to others and leads nowhere makes a table end
// early, without an error. Its seals tell.
func TestCutTableIsNoticed(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	n := len(attempts(t, path))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var root int64
	if err := errors.Join(db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = 'attempts'").Scan(&root), db.Close()); err != nil {
		t.Fatal(err)
	}
	const page = 4096
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[(root-1)*page+page/2 : root*page])
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "a.jsonl")
	r := call(t, nil, "export", "--store", path, "-o", out)
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	has := bytes.Count(written, []byte("\n"))
	if r.code != exitError || has >= n || !strings.Contains(r.err, unread(n-has)) {
		t.Errorf("export of %d of %d attempts: exit code %d\n%s", has, n, r.code, r.err)
	}
	if r := must(t, nil, "report", "--store", path); !strings.Contains(r.out, fmt.Sprintf("%d attempts cannot be read", n-has)) {
		t.Errorf("report:\n%.2000s", r.out)
	}
}
