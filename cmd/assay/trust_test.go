//go:build !race

package main

import (
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

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

// meddle changes a store as another program can, without the triggers that prevent it.
func meddle(t testing.TB, path, change string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	var drop, restore string
	err = db.QueryRow(`SELECT group_concat('DROP TRIGGER ' || name, ';'), group_concat(sql, ';')
		FROM sqlite_schema WHERE type = 'trigger'`).Scan(&drop, &restore)
	if err == nil {
		_, err = db.Exec("PRAGMA foreign_keys = OFF; " + drop + "; " + change)
	}
	if err == nil && !strings.HasPrefix(change, "DROP") { // a trigger may be of what is gone
		_, err = db.Exec(restore)
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
			db, err := store.Open(t.Context(), path)
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

// TestReadersTellWhatIsNotProved turns twenty failures into successes. Every reader leaves them
// out, warns of it, and ends with an error.
func TestReadersTellWhatIsNotProved(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	const few = " WHERE id IN (SELECT id FROM attempts WHERE level <> 'full_success' LIMIT 20)"
	var before []session.Status
	decode(t, must(t, nil, "status", "--store", path, "--json").out, &before)
	var trial string
	firstRow(t, path, "SELECT lower(hex(trial)) FROM attempts"+few, &trial)
	meddle(t, path, "UPDATE attempts SET level = 'full_success', error_category = ''"+few)

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
	var r struct{ Warnings []report.Warning }
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

// firstRow returns the first value that a query finds in a store.
func firstRow(t testing.TB, path, text string, to any) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err == nil {
		err = errors.Join(db.QueryRow(text).Scan(to), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}
