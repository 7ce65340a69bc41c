package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// smallRun runs an experiment with two models, three variants, two reliabilities and repeats, and
// returns its store.
func smallRun(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "r.db")
	experiment := file(t, dir, "small.yaml", `
name: small
models: [sim/expert, sim/obedient]
variants: [baseline, optimal, flawed_missing_step]
reliabilities: [0.9, 0.6]
tasks_per_type: 3
repeats: 2
tools: listed
`)
	mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	return path
}

func verifyJSON(t testing.TB, path string, wantCode int) *audit.Report {
	t.Helper()
	r := call(t, nil, "store", "verify", "--store", path, "--json")
	if r.code != wantCode {
		t.Fatalf("verify: exit code %d, want %d\n%s%s", r.code, wantCode, r.out, r.err)
	}
	v := new(audit.Report)
	if err := json.Unmarshal([]byte(r.out), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// wantError checks that a command fails with an exit code and an error that contains a text.
func wantError(t testing.TB, code int, text string, args ...string) {
	t.Helper()
	if r := call(t, nil, args...); r.code != code || !strings.Contains(r.err, text) {
		t.Errorf("%q: exit code %d, error %q; want %d, %q", args, r.code, r.err, code, text)
	}
}

// TestVerifyFindsChangedOutcome changes an outcome in a store. Verify finds it, no run writes
// to the store, recover leaves the attempt out, and the same command then runs the trial again.
func TestVerifyFindsChangedOutcome(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	n := len(attempts(t, path))
	v := verifyJSON(t, path, exitOK)
	if len(v.Problems) > 0 || v.Attempts != n || v.Rescored != n ||
		len(v.Unjudged) > 0 {
		t.Fatalf("verify = %+v, want %d attempts with proved scores", v, n)
	}
	text := must(t, nil, "store", "verify", "--store", path).out
	if !strings.Contains(text, "The store is whole.") {
		t.Errorf("verify prints %q", text)
	}

	tamper(t, path, failureToSuccess)
	v = verifyJSON(t, path, exitError)
	for _, check := range []string{"seal", "score"} {
		if !slices.ContainsFunc(v.Problems,
			func(p store.Problem) bool { return p.Check == check }) {
			t.Errorf("verify found %v, want a problem with the %s", v.Problems, check)
		}
	}
	experiment := filepath.Join(filepath.Dir(path), "small.yaml")
	wantError(t, exitError, "recover\" copies", "run", experiment, "--store", path,
		"--sim-latency", "0", "--display", "none")
	r := call(t, nil, "export", "--store", path)
	if got := strings.Count(r.out, "\n"); r.code != exitError || got != n-1 {
		t.Errorf("export: exit code %d, %d attempts, want %d", r.code, got, n-1)
	}
	if r := call(t, nil, "status", "--store", path); !strings.Contains(r.err, "damaged") {
		t.Errorf("status warns %q, want a warning about damage", r.err)
	}

	whole := path + ".whole"
	r = call(t, nil, "store", "recover", "--store", path, whole)
	if r.code != exitError || !strings.Contains(r.out, "left 1 attempt that cannot") {
		t.Errorf("recover: exit code %d, %q", r.code, r.out)
	}
	verifyJSON(t, whole, exitOK)
	mustProgram(t, "run", experiment, "--store", whole, "--sim-latency", "0", "--display", "none")
	if v := verifyJSON(t, whole, exitOK); v.Outcomes != n {
		t.Errorf("%d outcomes after the second run, want %d", v.Outcomes, n)
	}
}

// failureToSuccess turns the first failure into a full success.
const failureToSuccess = `UPDATE attempts SET level = 'full_success', error_category = ''
	WHERE id = (SELECT min(id) FROM attempts WHERE level = 'failure')`

// tamper changes a store while the trigger that prevents that is dropped.
func tamper(t testing.TB, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var trigger string
	err = db.QueryRow("SELECT sql FROM sqlite_schema WHERE name = 'attempts_keep'").Scan(&trigger)
	for _, step := range []string{"DROP TRIGGER attempts_keep", text, trigger} {
		if err == nil {
			_, err = db.Exec(step)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestVerifyChecksContentOfAttempts saves attempts that cannot be right. Their seals are valid,
// because a seal only proves that a row is as it was saved.
func TestVerifyChecksContentOfAttempts(t *testing.T) {
	t.Parallel()
	source := smallRun(t)
	sound := attempts(t, source)[0]
	for name, c := range map[string]struct {
		spoil func(*assay.Attempt)
		check string
	}{
		"another model answered": {
			func(a *assay.Attempt) { a.ServedModel = "gpt-4o" },
			"served model",
		},
		"another model helped": {
			func(a *assay.Attempt) { a.Add(&assay.Response{ServedModel: "gpt-4o"}) },
			"served model",
		},
		"unplanned model": {
			func(a *assay.Attempt) { a.Model = "test-model-protection" },
			"known",
		},
		"unplanned variant":     {func(a *assay.Attempt) { a.Variant = "flawed" }, "known"},
		"unplanned task type":   {func(a *assay.Attempt) { a.TaskType = "test_task" }, "known"},
		"unplanned reliability": {func(a *assay.Attempt) { a.Reliability = 1 }, "known"},
		"failure without category": {func(a *assay.Attempt) {
			a.Level, a.ErrorCategory = assay.Failure, ""
		}, "category"},
		"unknown category": {func(a *assay.Attempt) {
			a.Level, a.ErrorCategory = assay.Failure, "oops"
		}, "category"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			must(t, nil, "store", "backup", "--store", source, path)
			db, err := store.Open(t.Context(), path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a := sound
			a.Repeat = 99 // a trial that is not settled
			c.spoil(&a)
			task := assay.TaskRef{ID: a.Task, Digest: a.TaskDigest}
			a.Trial = assay.NewTrial(a.Cell, task, a.Setting, 2025, a.Repeat)
			if err := errors.Join(db.Save(t.Context(), &a, nil), db.Close()); err != nil {
				t.Fatal(err)
			}
			v := verifyJSON(t, path, exitError)
			if !slices.ContainsFunc(v.Problems,
				func(p store.Problem) bool { return p.Check == c.check }) {
				t.Errorf("verify found %v, want a problem with the %s", v.Problems, c.check)
			}
			if _, err := os.Stat(path + ".damaged"); err == nil {
				t.Error("the store is marked as damaged although it is as it was written")
			}
		})
	}
}

func TestMergeRestoresDeletedAttemptsFromBackup(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	dir := t.TempDir()
	all := attempts(t, path)
	backup := filepath.Join(dir, "backup.db")
	r := must(t, nil, "store", "backup", "--store", path, backup)
	if !strings.Contains(r.out, "snapshot") {
		t.Errorf("backup prints %q", r.out)
	}
	wantError(t, exitError, "already exists", "store", "backup", "--store", path, backup)

	preview := must(t, nil, "store", "delete", "--store", path, "--model", "sim/obedient").out
	if !strings.Contains(preview, "Nothing was deleted") || len(attempts(t, path)) != len(all) {
		t.Errorf("the preview prints %q and leaves %d of %d attempts",
			preview, len(attempts(t, path)), len(all))
	}
	must(t, nil, "store", "delete", "--store", path, "--model", "sim/obedient", "--yes")
	for _, a := range attempts(t, path) {
		if a.Model == "sim/obedient" {
			t.Fatal("the store still has an attempt of the deleted model")
		}
	}
	verifyJSON(t, path, exitOK)
	merged := filepath.Join(dir, "merged.db")
	r = must(t, nil, "store", "merge", merged, path, backup, path)
	if !strings.Contains(r.out, fmt.Sprintf("%d attempts", len(all))) {
		t.Errorf("merge prints %q, want %d attempts", r.out, len(all))
	}
	must(t, nil, "store", "delete", "--store", merged, "--transcripts-only", "--level", "full_success",
		"--yes")
	if v := verifyJSON(t, merged, exitOK); v.Dropped == 0 || v.Attempts != len(all) {
		t.Errorf("verify = %+v, want all attempts and fewer transcripts", v)
	}

	wantError(t, exitUsage, "nothing is chosen", "store", "delete", "--store", path)
	wantError(t, exitUsage, "the levels are", "store", "delete", "--store", path, "--level", "success")
	wantError(t, exitError, "did you mean sim/expert?", "store", "delete", "--store", path, "--model",
		"sim/expret")
}

// TestDamagedStoreIsRead loses a page of a store. All commands read the remaining attempts, and
// report that some are missing.
func TestDamagedStoreIsRead(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	all := attempts(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	at := bytes.LastIndex(b,
		[]byte(episode.TemplatesHash)) / page * page // a leaf page of the table of attempts
	clear(b[at : at+page])
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "a.jsonl")
	r := call(t, nil, "export", "--store", path, "--output", out)
	written, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	n := bytes.Count(written, []byte("\n"))
	if r.code != exitError || n == 0 || n >= len(all) ||
		!strings.Contains(r.err, unread(len(all)-n)) {
		t.Errorf("export: exit code %d with %d of %d attempts\n%s", r.code, n, len(all), r.err)
	}
	var a report.Analysis
	if err := json.Unmarshal([]byte(call(t, nil, "report", "--store", path, "--json").out),
		&a); err != nil {
		t.Fatal(err)
	}
	if a.Done != n || !slices.ContainsFunc(a.Warnings,
		func(x report.Warning) bool { return x.Kind == "damaged" }) {
		t.Errorf("%d outcomes in the report, warnings %+v; want %d and a warning about damage",
			a.Done, a.Warnings, n)
	}
	var s []session.Status
	r = call(t, nil, "status", "--store", path, "--json")
	if err := json.Unmarshal([]byte(r.out), &s); err != nil {
		t.Fatal(err)
	}
	if len(s) != 1 || s[0].Done < n || s[0].Planned != len(all) ||
		!strings.Contains(r.err, fmt.Sprintf("skipped %d attempts after row ID", len(all)-n)) {
		t.Errorf("status = %+v with warnings %s", s, r.err)
	}
	if r = call(t, nil, "status", "--store", path); !strings.Contains(r.out, unread(len(all)-n)) {
		t.Errorf("status does not mention unreadable attempts\n%s", r.out)
	}
	var v report.Comparison
	if err := json.Unmarshal([]byte(call(t, nil, "compare", "--store", path, "--json",
		"sim/expert", "sim/obedient").out), &v); err != nil {
		t.Fatal(err)
	}
	if got := v.A.Trials + v.B.Trials; got != n || v.Unread != len(all)-n {
		t.Errorf("compare: %d trials and %d unread, want %d and %d", got, v.Unread, n, len(all)-n)
	}
	whole := path + ".whole"
	r = call(t, nil, "store", "recover", "--store", path, whole)
	if r.code != exitError {
		t.Errorf("recover after losing attempts: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	rest := verifyJSON(t, whole, exitOK)
	if rest.Attempts < n || rest.Attempts >= len(all) ||
		!strings.Contains(r.out, counted(len(all)-rest.Attempts, "attempt")) {
		t.Errorf("%d of %d attempts are recovered, %d are readable\n%s", rest.Attempts, len(all), n,
			r.out)
	}
}

// TestReadersTellWhatIsNotProved turns twenty failures into successes. Every reader leaves them
// out, warns of it, and ends with an error.
func TestReadersTellWhatIsNotProved(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	const few = " WHERE id IN (SELECT id FROM attempts WHERE level <> 'full_success' LIMIT 20)"
	var before []session.Status
	decode(t, must(t, nil, "status", "--store", path, "--json").out, &before)
	var trial string
	query(t, path, "SELECT lower(hex(trial)) FROM attempts"+few, &trial)
	tamper(t, path, "UPDATE attempts SET level = 'full_success', error_category = ''"+few)

	read := func(args ...string) result {
		t.Helper()
		r := call(t, nil, append(args, "--store", path)...)
		if r.code != exitError || !strings.Contains(r.err, "is not as it was saved") {
			t.Errorf("%q: exit code %d, %q", args, r.code, r.err)
		}
		return r
	}
	var after []session.Status
	decode(t, read("status", "--json").out, &after)
	if before[0].Done-after[0].Done != 20 || after[0].Pending != 20 || after[0].Unread != 20 {
		t.Errorf("status: %d done before, %+v after", before[0].Done, after[0])
	}
	var r report.Analysis
	decode(t, read("report", "--json").out, &r)
	isDamage := func(w report.Warning) bool { return w.Kind == "damaged" }
	if i := slices.IndexFunc(r.Warnings, isDamage); i < 0 ||
		!strings.Contains(strings.Join(r.Warnings[i].Where, " "), "20 attempts") {
		t.Errorf("report warns of %v", r.Warnings)
	}
	var c struct{ Unread int }
	decode(t, read("compare", "sim/expert", "sim/obedient", "--json").out, &c)
	if c.Unread != 20 {
		t.Errorf("compare: %d unread, want 20", c.Unread)
	}
	now := openPagesUntil(t, exitError, "--store", path).loaded().get("/")
	if !strings.Contains(now, "20 attempts cannot be read or proved and count as pending") {
		t.Errorf("the first page does not say what it leaves out\n%s", now)
	}
	if r := read("show", trial); !strings.Contains(r.err, "cannot be read or proved") {
		t.Errorf("show: %q", r.err)
	}
	to := filepath.Join(t.TempDir(), "out.jsonl")
	read("export", "--output", to)
	var m export.Manifest
	text, err := os.ReadFile(to + ".manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(text), &m)
	if m.Missing.Attempts != 20 || m.Counts.Attempts != before[0].Done-20 {
		t.Errorf("the export misses %+v and has %+v", m.Missing, m.Counts)
	}
	g := call(t, nil, "gate", "model:sim/obedient", "--baseline", "model:sim/expert", "--store", path)
	if g.code == exitOK || !strings.Contains(g.err, "is not as it was saved") {
		t.Errorf("gate: exit code %d, %q", g.code, g.err)
	}
}

// query returns the first value that a query finds in a store.
func query(t testing.TB, path, text string, to any) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		err = errors.Join(db.QueryRow(text).Scan(to), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
