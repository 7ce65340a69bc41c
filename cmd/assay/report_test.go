//go:build !race

package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// TestReport checks the counts of a report, its warnings, and that every format shows the facts.
func TestReport(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	var a struct {
		Planned, Done int
		Cells         []struct{ Done int }
		Warnings      []report.Warning
		Repeats       []any
		Variants      []any `json:"variant_comparisons"`
		Models        []any `json:"model_comparisons"`
		Curves        []any `json:"reliability"`
	}
	if err := json.Unmarshal([]byte(must(t, nil, "report", "--store", path, "--json").out),
		&a); err != nil {
		t.Fatal(err)
	}
	done := 0
	for _, c := range a.Cells {
		done += c.Done
	}
	if n := len(attempts(t, path)); done != n || a.Done != n || a.Planned != n {
		t.Errorf("cells count %d outcomes, the table counts %d of %d, and the store has %d",
			done, a.Done, a.Planned, n)
	}
	// The obedient agent fails at the missing step in every repeat.
	if !slices.ContainsFunc(a.Warnings, func(x report.Warning) bool { return x.Kind == "zero" }) {
		t.Errorf("warnings %v, want one about 0 %%", a.Warnings)
	}
	if len(a.Repeats) != 2 || len(a.Variants) != 4 || len(a.Models) != 1 || len(a.Curves) == 0 {
		t.Errorf("%d repeats, %d comparisons of variants, %d of models, %d curves",
			len(a.Repeats), len(a.Variants), len(a.Models), len(a.Curves))
	}
	for format, marks := range map[string][]string{
		"text": {"Experiment small", "also shows: Full success"},
		"details": {
			"Experiment small", ": some figures may be misleading",
			"What each variant changes", snapshotOf(t, path),
		},
		"md":   {"# Experiment small", "| model |", snapshotOf(t, path)},
		"html": {"<title>", "vega", "trial-", snapshotOf(t, path)},
	} {
		args := []string{"report", "small", "--store", path, "--format", format}
		if format == "details" {
			args = []string{"report", "small", "--store", path, "--details"}
		}
		if format == "html" {
			args = append(args, "--transcripts", "2")
		}
		out := must(t, nil, args...).out
		for _, m := range marks {
			if !strings.Contains(out, m) {
				t.Errorf("the report as %s lacks %q", format, m)
			}
		}
	}
	wantError(t, exitError, "did you mean small?", "report", "smal", "--store", path)
}

// TestCompare checks that flips name trials with different levels, and that an experiment is
// not compared with itself.
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
	if v.Whole.Difference == 0 || len(v.Flips) != v.Worse+v.Better || v.Worse == 0 ||
		v.A.Trials != v.B.Trials {
		t.Errorf("%+v with %d flips", v.Whole, len(v.Flips))
	}
	for _, f := range v.Flips {
		if levels[f.A] != f.LevelA || levels[f.B] != f.LevelB ||
			(f.LevelA == assay.FullSuccess) == (f.LevelB == assay.FullSuccess) {
			t.Errorf("%+v is not a flip: the levels are %s and %s", f, levels[f.A], levels[f.B])
		}
	}

	wantError(t, exitError, "both sides are the same",
		"compare", "experiment:small", "small", "--store", path)
	r = must(t, nil, "compare", "sim/expert", "sim/obedient", "--store", path,
		"--format", "html", "--transcripts", "1")
	if n := strings.Count(r.out, `id="episode-trial-`); n != 2 {
		t.Errorf("%d transcripts, want both of the first flip", n)
	}
	wantError(t, exitError, "sim/obedient", "compare", "sim/expert", "sim/obedint", "--store", path)
	wantError(t, exitError, "no experiment", "compare", "sim/expert", "unknown", "--store", path)
}

// TestImportLegacy imports the original's real database. It stays apart from the trials.
func TestImportLegacy(t *testing.T) {
	t.Parallel()
	const real = repository + "/../shared/data/legacy/master_database_2025-08-30.json"
	if _, err := os.Stat(real); err != nil {
		t.Skipf("the original's database is missing: %v", err)
	}
	path := smallRun(t)
	before := must(t, nil, "export", "--store", path).out
	r := must(t, nil, "store", "import", real, "--store", path)
	for _, text := range []string{
		"371 aggregates, 370 usable, 195 of these corrected", " 81  total, success and failed count every",
	} {
		if !strings.Contains(r.out, text) {
			t.Errorf("the import does not mention %q:\n%s", text, r.out)
		}
	}
	if after := must(t, nil, "export", "--store", path).out; after != before {
		t.Error("the import changed the exported attempts")
	}
	wantError(t, exitError, "already imported", "store", "import", real, "--store", path)
	out := must(t, nil, "report", "--store", path, "--format", "md").out
	const label = "From another system: master_database_2025-08-30.json"
	if !strings.Contains(strings.ReplaceAll(out, "\\_", "_"), label) {
		t.Error("the report does not show the imported database with its label")
	}
	verifyJSON(t, path, exitOK)
	cut := file(t, t.TempDir(), "cut.json", `{"version": "3.0", "models": {`)
	wantError(t, exitError, "cut.json:1:", "store", "import", cut, "--store", path)
}
