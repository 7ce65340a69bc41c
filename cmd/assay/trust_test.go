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

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// smallRun runs an experiment of two models, three variants and two reliabilities
// with repeats, and returns its store.
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
	r := call(t, nil, "verify", "--store", path, "--json")
	if r.code != wantCode {
		t.Fatalf("verify: exit code %d, want %d\n%s%s", r.code, wantCode, r.out, r.err)
	}
	v := new(audit.Report)
	if err := json.Unmarshal([]byte(r.out), v); err != nil {
		t.Fatal(err)
	}
	return v
}

// TestVerify: a run's store is whole, with every score proved; what is changed is
// found by what it says too, keeps runs away, and is left behind by recover, after
// which the same command runs what is pending.
func TestVerify(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	n := len(attempts(t, path))
	v := verifyJSON(t, path, exitOK)
	if len(v.Problems) > 0 || v.Attempts != n || v.Rescored != n || v.Unsealed != 0 || len(v.Unjudged) > 0 {
		t.Fatalf("%+v, want %d whole attempts with proved scores", v, n)
	}
	if text := must(t, nil, "verify", "--store", path).out; !strings.Contains(text, "The store is whole.") {
		t.Errorf("verify says %q", text)
	}
	tamper(t, path, "UPDATE attempts SET level = 'full_success', error_category = '' WHERE id = (SELECT min(id) FROM attempts WHERE level = 'failure')")
	v = verifyJSON(t, path, exitError)
	for _, check := range []string{"seal", "score"} {
		if !slices.ContainsFunc(v.Problems, func(p store.Problem) bool { return p.Check == check }) {
			t.Errorf("problems %v, want one of %s", v.Problems, check)
		}
	}
	experiment := filepath.Join(filepath.Dir(path), "small.yaml")
	if r := call(t, nil, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none"); r.code != exitError || !strings.Contains(r.err, "assay recover") {
		t.Errorf("a run on it: exit code %d, %s", r.code, r.err)
	}
	if got := len(attempts(t, path)); got != n {
		t.Errorf("%d attempts can be read, want %d", got, n)
	}
	if r := must(t, nil, "status", "--store", path); !strings.Contains(r.err, "damaged") {
		t.Errorf("a reader is not warned: %q", r.err)
	}
	whole := path + ".whole"
	if r := call(t, nil, "recover", "--store", path, whole); r.code != exitError || !strings.Contains(r.out, "left 1 attempt that cannot") {
		t.Errorf("recover says %q", r.out)
	}
	verifyJSON(t, whole, exitOK)
	mustProgram(t, "run", experiment, "--store", whole, "--sim-latency", "0", "--display", "none")
	if v := verifyJSON(t, whole, exitOK); v.Outcomes != n {
		t.Errorf("%d outcomes after what was pending ran, want %d", v.Outcomes, n)
	}
}

// tamper changes a store behind the back of its triggers.
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

// TestVerifyLooksAtWhatAttemptsSay: seals prove that a row is as it was saved; these
// rows were saved so, by another program or another time, and are wrong all the same.
func TestVerifyLooksAtWhatAttemptsSay(t *testing.T) {
	t.Parallel()
	source := smallRun(t)
	sound := attempts(t, source)[0]
	for name, c := range map[string]struct {
		spoil func(*assay.Attempt)
		check string
	}{
		"another model answered":     {func(a *assay.Attempt) { a.ServedModel = "gpt-4o" }, "served model"},
		"another model helped":       {func(a *assay.Attempt) { a.AddServed("gpt-4o") }, "served model"},
		"a model nobody planned":     {func(a *assay.Attempt) { a.Model = "test-model-protection" }, "known"},
		"a variant nobody planned":   {func(a *assay.Attempt) { a.Variant = "flawed" }, "known"},
		"a type nobody planned":      {func(a *assay.Attempt) { a.TaskType = "test_task" }, "known"},
		"a phantom reliability":      {func(a *assay.Attempt) { a.Reliability = 1 }, "known"},
		"a failure without category": {func(a *assay.Attempt) { a.Level, a.ErrorCategory = assay.Failure, "" }, "category"},
		"a category of its own":      {func(a *assay.Attempt) { a.Level, a.ErrorCategory = assay.Failure, "oops" }, "category"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			must(t, nil, "backup", "--store", source, path)
			db, err := store.Open(t.Context(), path, store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			a := sound
			a.Repeat = 99 // so that it is not settled
			c.spoil(&a)
			a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest}, a.Setting, 2025, a.Repeat)
			if err := errors.Join(db.Save(t.Context(), &a, nil), db.Close()); err != nil {
				t.Fatal(err)
			}
			v := verifyJSON(t, path, exitError)
			if !slices.ContainsFunc(v.Problems, func(p store.Problem) bool { return p.Check == c.check }) {
				t.Errorf("problems %v, want one of %q", v.Problems, c.check)
			}
			if _, err := os.Stat(path + ".damaged"); err == nil {
				t.Error("a store that is as it was written counts as damaged")
			}
		})
	}
}

// TestMaintenance goes through backups, deletions and merges by command.
func TestMaintenance(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	dir := t.TempDir()
	all := attempts(t, path)
	backup := filepath.Join(dir, "backup.db")
	if r := must(t, nil, "backup", "--store", path, backup); !strings.Contains(r.out, "snapshot") {
		t.Errorf("backup says %q", r.out)
	}
	if r := call(t, nil, "backup", "--store", path, backup); r.code != exitError || !strings.Contains(r.err, "already exists") {
		t.Errorf("a second backup there: %d, %s", r.code, r.err)
	}
	preview := must(t, nil, "delete", "--store", path, "--model", "sim/obedient").out
	if !strings.Contains(preview, "Nothing was deleted") || len(attempts(t, path)) != len(all) {
		t.Errorf("the preview says %q, and %d of %d attempts are left", preview, len(attempts(t, path)), len(all))
	}
	must(t, nil, "delete", "--store", path, "--model", "sim/obedient", "--yes")
	for _, a := range attempts(t, path) {
		if a.Model == "sim/obedient" {
			t.Fatal("an attempt of the model is left")
		}
	}
	verifyJSON(t, path, exitOK)
	merged := filepath.Join(dir, "merged.db")
	if r := must(t, nil, "merge", merged, path, backup, path); !strings.Contains(r.out, fmt.Sprintf("%d attempts", len(all))) {
		t.Errorf("merge says %q, want all %d attempts back", r.out, len(all))
	}
	must(t, nil, "delete", "--store", merged, "--transcripts-only", "--level", "full_success", "--yes")
	if v := verifyJSON(t, merged, exitOK); v.Dropped == 0 || v.Attempts != len(all) {
		t.Errorf("%+v, want all attempts and fewer transcripts", v)
	}
	for _, args := range [][]string{{"delete", "--store", path}, {"delete", "--store", path, "--level", "success"}} {
		if r := call(t, nil, args...); r.code != exitUsage {
			t.Errorf("%v: exit code %d, want %d", args, r.code, exitUsage)
		}
	}
	if r := call(t, nil, "delete", "--store", path, "--model", "sim/expret"); r.code != exitError || !strings.Contains(r.err, "sim/expert") {
		t.Errorf("a model that is not there: %d, %s", r.code, r.err)
	}
}

// TestExports: every format holds the same attempts, and its manifest proves it.
func TestExports(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	dir := t.TempDir()
	want := attempts(t, path)
	for _, format := range []string{"jsonl", "csv", "parquet"} {
		out, calls := filepath.Join(dir, "a."+format), filepath.Join(dir, "calls."+format)
		must(t, nil, "export", "--store", path, "--format", format, "--output", out, "--calls", calls)
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
		if manifest.Counts.Attempts != len(want) || manifest.Snapshot != snapshotOf(t, path) || len(manifest.Files) != 2 {
			t.Errorf("%s: manifest %+v", format, manifest)
		}
	}
	// Conditions and states.
	some := must(t, nil, "export", "--store", path, "--where", "model=sim/expert", "--where", "level!=full_success").out
	n := 0
	for _, a := range want {
		if a.Model == "sim/expert" && a.Level != assay.FullSuccess {
			n++
		}
	}
	if got := strings.Count(some, "\n"); got != n || n == 0 {
		t.Errorf("%d attempts fit the conditions, want %d", got, n)
	}
	if since := must(t, nil, "export", "--store", path, "--since", snapshotOf(t, path)).out; since != "" {
		t.Errorf("since now there is %q", since)
	}
	if r := call(t, nil, "export", "--store", path, "--where", "modl=x"); r.code != exitUsage || !strings.Contains(r.err, "model") {
		t.Errorf("an unknown field: %d, %s", r.code, r.err)
	}
}

// TestForeignFormats: the original's database and Inspect's logs are derived from the
// same attempts.
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
		t.Errorf("V3 has %+v, want %d tests, %d full", sum, len(all), full)
	}
	csv := must(t, nil, "export", "--store", path, "--format", "csv50").out
	header, _, _ := strings.Cut(csv, "\n")
	if n := len(strings.Split(header, ",")); n != 50 || strings.Count(csv, "\n") != 1+len(d.Aggregates) {
		t.Errorf("%d columns and %d rows, want 50 and %d", n, strings.Count(csv, "\n")-1, len(d.Aggregates))
	}
	logs := filepath.Join(dir, "logs")
	must(t, nil, "export", "--store", path, "--format", "inspect", "--output", logs)
	if files, err := filepath.Glob(logs + "/*.eval"); len(files) != 2 || err != nil {
		t.Errorf("logs %v, %v, want one a model", files, err)
	}
	if r := call(t, nil, "export", "--store", path, "--format", "inspect"); r.code != exitUsage {
		t.Errorf("logs on standard output: exit code %d", r.code)
	}
}

// TestReport: all formats say the same of the same attempts, in one file, with the
// warnings and the facts.
func TestReport(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	var a report.Analysis
	if err := json.Unmarshal([]byte(must(t, nil, "report", "--store", path, "--json").out), &a); err != nil {
		t.Fatal(err)
	}
	done := 0
	for _, c := range a.Cells {
		done += c.Done
	}
	if n := len(attempts(t, path)); done != n || a.Done != n || a.Planned != n {
		t.Errorf("cells count %d outcomes, the table %d of %d, the store %d", done, a.Done, a.Planned, n)
	}
	// An obedient agent falls over the missing step, in every repeat.
	if !slices.ContainsFunc(a.Warnings, func(x report.Warning) bool { return x.Kind == "zero" }) {
		t.Errorf("warnings %v, want one of 0 %%", a.Warnings)
	}
	if len(a.Repeats) != 2 || len(a.Variants) != 4 || len(a.Models) != 1 || len(a.Curves) == 0 {
		t.Errorf("%d repeats, %d and %d comparisons, %d curves", len(a.Repeats), len(a.Variants), len(a.Models), len(a.Curves))
	}
	for format, marks := range map[string][]string{
		"text": {"Experiment small", "warnings: some figures may be misleading", "What each variant changes", snapshotOf(t, path)},
		"md":   {"# Experiment small", "| model |", snapshotOf(t, path)},
		"html": {"<title>", "vega", "trial-", snapshotOf(t, path)},
	} {
		args := []string{"report", "small", "--store", path, "--format", format}
		if format == "html" {
			args = append(args, "--transcripts", "2")
		}
		out := must(t, nil, args...).out
		for _, m := range marks {
			if !strings.Contains(out, m) {
				t.Errorf("%s does not have %q", format, m)
			}
		}
	}
	if r := call(t, nil, "report", "smal", "--store", path); r.code != exitError || !strings.Contains(r.err, "small") {
		t.Errorf("an unknown experiment: %d, %s", r.code, r.err)
	}
}

// TestCompare: flips lead to trials that differ, and a side against itself does not.
func TestCompare(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	levels := make(map[assay.TrialID]assay.Level)
	for _, a := range attempts(t, path) {
		levels[a.ID] = a.Level
	}
	var v report.Comparison
	r := must(t, nil, "compare", "sim/expert", "sim/obedient", "--store", path, "--format", "json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatal(err)
	}
	if v.Whole.Difference >= 0 || len(v.Flips) != v.Worse+v.Better || v.Worse == 0 || v.A.Trials != v.B.Trials {
		t.Errorf("%+v with %d flips", v.Whole, len(v.Flips))
	}
	for _, f := range v.Flips {
		if levels[f.A] != f.LevelA || levels[f.B] != f.LevelB || (f.LevelA == assay.FullSuccess) == (f.LevelB == assay.FullSuccess) {
			t.Errorf("%+v is no flip: %s and %s", f, levels[f.A], levels[f.B])
		}
	}
	if r := must(t, nil, "compare", "experiment:small", "small", "--store", path); !strings.Contains(r.out, "scored the same") {
		t.Errorf("an experiment against itself: %s", r.out)
	}
	if r := must(t, nil, "compare", "sim/expert", "sim/obedient", "--store", path, "--format", "html", "--transcripts", "1"); strings.Count(r.out, `id="episode-trial-`) != 2 {
		t.Errorf("%d transcripts, want both of the first flip", strings.Count(r.out, `id="episode-trial-`))
	}
	for _, c := range []struct{ a, b, hint string }{
		{"sim/expert", "sim/obedint", "sim/obedient"},
		{"sim/expert", "nobody", "no experiment"},
	} {
		if r := call(t, nil, "compare", c.a, c.b, "--store", path); r.code != exitError || !strings.Contains(r.err, c.hint) {
			t.Errorf("%s, %s: %d, %s", c.a, c.b, r.code, r.err)
		}
	}
}

// TestImportLegacy takes in the original's real database, apart from trials.
func TestImportLegacy(t *testing.T) {
	t.Parallel()
	const real = repository + "/../shared/data/legacy/master_database_2025-08-30.json"
	if _, err := os.Stat(real); err != nil {
		t.Skipf("the original's database is not here: %v", err)
	}
	path := smallRun(t)
	before := must(t, nil, "export", "--store", path).out
	r := must(t, nil, "import", "legacy", real, "--store", path)
	for _, say := range []string{"371 aggregates", "doubled_counts", "test_model", "phantom_rate"} {
		if !strings.Contains(r.out, say) {
			t.Errorf("the import does not tell of %q:\n%s", say, r.out)
		}
	}
	if after := must(t, nil, "export", "--store", path).out; after != before {
		t.Error("aggregates have become attempts")
	}
	if r := call(t, nil, "import", "legacy", real, "--store", path); r.code != exitError || !strings.Contains(r.err, "already imported") {
		t.Errorf("a second import: %d, %s", r.code, r.err)
	}
	out := must(t, nil, "report", "--store", path, "--format", "md").out
	if !strings.Contains(out, "Of another system: master\\_database\\_2025-08-30.json") && !strings.Contains(out, "Of another system: master_database_2025-08-30.json") {
		t.Error("the report does not show them, labelled")
	}
	verifyJSON(t, path, exitOK)
	if r := call(t, nil, "import", "legacy", file(t, t.TempDir(), "cut.json", `{"version": "3.0", "models": {`), "--store", path); r.code != exitError || !strings.Contains(r.err, "cut.json:1:") {
		t.Errorf("a file that was cut off: %d, %s", r.code, r.err)
	}
}

// TestDamagedStoreIsRead: what is whole around a page that is lost is exported and
// reported, and both say that something is missing.
func TestDamagedStoreIsRead(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	all := attempts(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	at := bytes.LastIndex(b, []byte(episode.TemplatesHash)) / page * page // a leaf of attempts
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
	if r.code != exitError || n == 0 || n >= len(all) || !strings.Contains(r.err, unread(len(all)-n)) {
		t.Errorf("export: exit code %d, %d of %d attempts\n%s", r.code, n, len(all), r.err)
	}
	var a report.Analysis
	if err := json.Unmarshal([]byte(must(t, nil, "report", "--store", path, "--json").out), &a); err != nil {
		t.Fatal(err)
	}
	if a.Done != n || !slices.ContainsFunc(a.Warnings, func(x report.Warning) bool { return x.Kind == "damaged" }) {
		t.Errorf("the report counts %d outcomes, want %d, and has the warnings %+v", a.Done, n, a.Warnings)
	}
	var s []session.Status
	r = must(t, nil, "status", "--store", path, "--json")
	if err := json.Unmarshal([]byte(r.out), &s); err != nil {
		t.Fatal(err)
	}
	if len(s) != 1 || s[0].Done < n || s[0].Planned != len(all) || !strings.Contains(r.err, fmt.Sprintf("skipped %d attempts after row ID", len(all)-n)) {
		t.Errorf("status: %+v, and %s", s, r.err)
	}
	if r = must(t, nil, "status", "--store", path); !strings.Contains(r.out, unread(len(all)-n)) {
		t.Errorf("status does not say what cannot be read\n%s", r.out)
	}
	var v report.Comparison
	if err := json.Unmarshal([]byte(must(t, nil, "compare", "--store", path, "--json", a.Experiment, a.Experiment).out), &v); err != nil {
		t.Fatal(err)
	}
	if v.A.Trials != n || v.Unread != len(all)-n {
		t.Errorf("compare: %d trials and %d unread, want %d and %d", v.A.Trials, v.Unread, n, len(all)-n)
	}
	whole := path + ".whole"
	r = call(t, nil, "recover", "--store", path, whole)
	if r.code != exitError {
		t.Errorf("recover of what lost attempts: exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if v := verifyJSON(t, whole, exitOK); v.Attempts < n || v.Attempts >= len(all) || !strings.Contains(r.out, counted(len(all)-v.Attempts, "attempt")) {
		t.Errorf("%d attempts are recovered of %d, %d of which can be read\n%s", v.Attempts, len(all), n, r.out)
	}
}
