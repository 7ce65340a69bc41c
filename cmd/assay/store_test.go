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

// TestDeleteCountsPendingTrialsOfOtherExperiments deletes the outcomes of trials that two
// experiments plan. The second experiment never tried them, because the first had settled them.
func TestDeleteCountsPendingTrialsOfOtherExperiments(t *testing.T) {
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
			t.Fatalf("experiment %s tried a settled trial", a.Experiment)
		}
		if a.Model == "sim/expert" && a.Variant == "baseline" && a.Reliability == 0.9 {
			shared++
		}
	}
	want := fmt.Sprintf("%d trials of experiment second lose their outcome and would be", shared)
	r := must(t, nil, "store", "delete", "--store", path, "--experiment", "small")
	if shared == 0 || !strings.Contains(r.out, want) {
		t.Errorf("the preview prints %q, want %q", r.out, want)
	}
	r = must(t, nil, "store", "delete", "--store", path, "--experiment", "small", "--transcripts-only")
	if strings.Contains(r.out, "pending afterwards") {
		t.Errorf("deleting transcripts makes trials pending: %q", r.out)
	}

	var d deletion
	r = must(t, nil, "store", "delete", "--store", path, "--experiment", "small", "--yes", "--json")
	if err := json.Unmarshal([]byte(r.out), &d); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]audit.Loss{{Experiment: "second", Trials: shared}},
		d.Pending); diff != "" || !d.Done {
		t.Errorf("%s: (-want +got):\n%s", r.out, diff)
	}
	verifyJSON(t, path, exitOK)
}

func TestDeleteRefusesAgesThatAreNotPositive(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	n := len(attempts(t, path))
	for _, age := range []string{"-720h", "0s"} {
		r := call(t, nil, "store", "delete", "--store", path, "--model", "sim/expert",
			"--older-than="+age,
			"--yes")
		if r.code != exitUsage || !strings.Contains(r.err, "--older-than") ||
			len(attempts(t, path)) != n {
			t.Errorf("--older-than=%s: exit code %d, %s", age, r.code, r.err)
		}
	}
}

func TestDeletedExperimentCanRunAgain(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	experiment := filepath.Join(filepath.Dir(path), "small.yaml")
	for range 2 {
		must(t, nil, "store", "delete", "--store", path, "--experiment", "small", "--yes")
		verifyJSON(t, path, exitOK)
		mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display",
			"none")
	}
	verifyJSON(t, path, exitOK)
}

// TestVerifyReportsThatMarkCannotBeWritten also checks that verify prints the damage nevertheless.
func TestVerifyReportsThatMarkCannotBeWritten(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	tamper(t, path, failureToSuccess)
	if err := os.MkdirAll(path+".damaged/in the way", 0o755); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "store", "verify", "--store", path)
	if r.code != exitError {
		t.Errorf("exit code %d, want %d", r.code, exitError)
	}
	for _, text := range []string{"is not as it was saved", "the store is damaged."} {
		if !strings.Contains(r.out, text) {
			t.Errorf("verify prints %q, want %q", r.out, text)
		}
	}
	if !strings.Contains(r.err, "mark store") || !strings.Contains(r.err, "\nhint: ") {
		t.Errorf("the error is %q, want that the mark cannot be written, with a hint", r.err)
	}
}

func TestVerifyThroughLinkNamesTheMark(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	tamper(t, path, "UPDATE attempts SET input_tokens = input_tokens + 1 WHERE id = 1")
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "store", "verify", "--store", link)
	_, after, _ := strings.Cut(r.out, "No run writes to it while ")
	mark, _, _ := strings.Cut(after, " exists.")
	if _, err := os.Stat(mark); r.code != exitError || err != nil {
		t.Errorf("exit code %d, %q does not name the mark: %v", r.code, r.out, err)
	}
}

func TestRecoverReportsLosses(t *testing.T) {
	t.Parallel()
	source := smallRun(t)
	const foreignRun = `
		INSERT INTO runs (seq, id, experiment, library_path, library_name, library_digest, planned,
			program, host, pid, started_at, spec)
		SELECT 0, 'zero', experiment, library_path, library_name, library_digest, planned,
			program, host, pid, started_at, spec FROM runs LIMIT 1`
	const noTranscripts = "DROP TRIGGER transcripts_stay; DELETE FROM transcripts"
	const noAttempt = "DROP TRIGGER attempts_stay; DELETE FROM attempts WHERE id = 3"
	const otherTurns = "UPDATE attempts SET turns = turns + 1 WHERE id = 3"
	for _, tc := range []struct {
		name, sql, prints string
		code              int
	}{
		{"nothing", "SELECT 1", "attempts", exitOK},
		{"view", "DROP VIEW results", "attempts", exitOK},
		{"transcripts", noTranscripts, "kept without their transcripts", exitOK},
		{"changed attempt", otherTurns, "left 1 attempt that cannot", exitError},
		{"empty table", "DROP TABLE scores", "attempts", exitOK},
		{"foreign run", foreignRun, "run zero: has a row ID that assay never uses", exitOK},
		{"attempt", noAttempt, "1 attempt is missing", exitError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "s.db")
			must(t, nil, "store", "backup", "--store", source, path)
			tamper(t, path, tc.sql)
			whole := filepath.Join(dir, "whole.db")
			r := call(t, nil, "store", "recover", "--store", path, whole)
			if r.code != tc.code || !strings.Contains(r.out+r.err, tc.prints) {
				t.Errorf("exit code %d with %q, want %d with %q", r.code, r.out+r.err, tc.code,
					tc.prints)
			}
			verifyJSON(t, whole, exitOK)
		})
	}
}

// TestMergeReportsPlans merges stores in which one name stands for different plans.
func TestMergeReportsPlans(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var paths []string
	for _, model := range []string{"sim/expert", "sim/obedient"} {
		path := filepath.Join(dir, filepath.Base(model)+".db")
		experiment := file(t, dir, "e.yaml",
			"name: e\nmodels: ["+model+"]\nvariants: [baseline]\ntasks_per_type: 1\n")
		mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display",
			"none")
		paths = append(paths, path)
	}
	merged := filepath.Join(dir, "merged.db")
	r := must(t, nil, "store", "merge", merged, paths[0], paths[1])
	if !strings.Contains(r.out, "experiment e has two plans, which differ in models") {
		t.Errorf("merge prints %q", r.out)
	}
	var out struct {
		Plans []store.PlanConflict `json:"plan_conflict_list"`
	}
	r = must(t, nil, "store", "merge", merged+"2", paths[1], paths[0], "--json")
	decode(t, r.out, &out)
	if len(out.Plans) != 1 || out.Plans[0].Fields[0] != "models" {
		t.Errorf("merge prints %s", r.out)
	}
}

func TestBackupRefusesDamagedStore(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	r := call(t, nil, "store", "backup", "--store", path, "")
	if r.code == exitOK || !strings.Contains(r.err, "has no name") {
		t.Errorf("backup without a name: %d, %s", r.code, r.err)
	}
	tamper(t, path, "UPDATE attempts SET turns = turns + 1 WHERE id = 3")
	verifyJSON(t, path, exitError)
	wantError(t, exitError, "recover\"", "store", "backup", "--store", path, path+"2")
}

// TestCutTableIsNoticed clears the second half of a table's root page. SQLite then reads fewer rows
// without an error, but the seals show that some are missing.
func TestCutTableIsNoticed(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	n := len(attempts(t, path))
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var root int64
	row := db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = 'attempts'")
	if err := errors.Join(row.Scan(&root), db.Close()); err != nil {
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
	r = call(t, nil, "report", "--store", path)
	if r.code != exitError || !strings.Contains(r.out, fmt.Sprintf("%d attempts cannot be read", n-has)) {
		t.Errorf("report:\n%.2000s", r.out)
	}
}
