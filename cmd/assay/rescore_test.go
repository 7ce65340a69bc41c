//go:build !race

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

var allRules = strings.Join(score.Versions(), ", ")

// TestRescoreCorrectsWrongVerdicts stores wrong verdicts for more outcomes than fit into one batch.
// Rescore stores the right ones again. The attempts never change.
func TestRescoreCorrectsWrongVerdicts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: plays hundreds of trials")
	}
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "r.db")
	experiment := file(t, dir, "r.yaml", `
models: [sim/obedient, sim/mute]
variants: [optimal, flawed_missing_step]
reliabilities: [0.6]
tasks_per_type: 32
`)
	mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	right, saved := must(t, nil, "export", "--store", path).out, asSaved(t, path)
	want := misjudge(t, path)
	if want.Changed < 2*audit.RescoreBatch || len(want.Levels) < 3 {
		t.Fatalf("the wrong verdicts do not fill two batches: %+v", want)
	}
	wrong, misjudged := must(t, nil, "export", "--store", path).out, snapshotOf(t, path)
	if wrong == right {
		t.Fatal("the export lacks the wrong verdicts")
	}

	if diff := cmp.Diff(want, rescoredBy(t, "--store", path, "--dry-run")); diff != "" {
		t.Errorf("rescore --dry-run (-want +got):\n%s", diff)
	}
	text := must(t, nil, "store", "rescore", "--store", path, "--dry-run").out
	for _, line := range []string{
		fmt.Sprintf("%d outcomes judged again by the rules %s; %d differ and would be stored\n",
			want.Outcomes, allRules, want.Changed),
		fmt.Sprintf("  %6d  failure → full_success\n", want.Levels["failure → full_success"]),
		fmt.Sprintf("  %6d  another error category\n", want.Categories),
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the text lacks %q:\n%s", line, text)
		}
	}
	got := snapshotOf(t, path)
	if got != misjudged || must(t, nil, "export", "--store", path).out != wrong {
		t.Errorf("a dry run changed the store from %s to %s", misjudged, got)
	}

	if diff := cmp.Diff(want, rescoredBy(t, "--store", path)); diff != "" {
		t.Errorf("rescore (-want +got):\n%s", diff)
	}
	if got := must(t, nil, "export", "--store", path).out; got != right {
		t.Error("the export differs from the one before the wrong verdicts")
	}
	if got := snapshotOf(t, path); got == misjudged {
		t.Error("the right verdicts and the wrong ones have the same snapshot")
	}
	if diff := cmp.Diff(saved, asSaved(t, path)); diff != "" {
		t.Errorf("attempts changed:\n%.2000s", diff)
	}
	if again := rescoredBy(t, "--store", path); again.Changed != 0 || again.Outcomes != len(saved) {
		t.Errorf("a second rescore gives %+v, want no change", again)
	}
}

// misjudge stores a wrong verdict for most outcomes. It returns the summary that a rescore must
// give.
func misjudge(t *testing.T, path string) audit.Rescored {
	t.Helper()
	levels, categories := make(map[string]int), 0
	all := attempts(t, path)
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var wrong []store.Rescored
	for i, a := range all {
		o := a.Outcome
		o.Adherence = 0.123 // no plan gives this value
		switch {
		case i%10 == 0: // keep the right verdict
			continue
		case i%10 == 1: // change a measure, but not the level
		case o.Level == assay.FullSuccess:
			o.Level, o.ErrorCategory = assay.Failure, assay.CategoryOther
		default:
			o.Level, o.ErrorCategory = assay.FullSuccess, ""
		}
		if o.Level != a.Level {
			levels[fmt.Sprintf("%s → %s", o.Level, a.Level)]++
			categories++
		}
		wrong = append(wrong, store.Rescored{
			Trial: a.ID, Number: a.Number, Outcome: o, At: time.Now(), Program: "older",
		})
	}
	for batch := range slices.Chunk(wrong, 100) {
		if err := db.Rescore(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	return audit.Rescored{
		Outcomes: len(all), Changed: len(wrong), Levels: levels, Categories: categories,
		Skipped: map[string]int{},
	}
}

// rescoredBy runs `assay store rescore --json`.
func rescoredBy(t *testing.T, args ...string) audit.Rescored {
	t.Helper()
	var out audit.Rescored
	decode(t, must(t, nil, append([]string{"store", "rescore", "--json"}, args...)...).out, &out)
	return out
}

func snapshotOf(t *testing.T, path string) string {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	snapshot, err := db.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// asSaved returns the attempts as they were saved, without later verdicts.
func asSaved(t *testing.T, path string) []assay.Attempt {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []assay.Attempt
	for a, err := range db.Attempts(t.Context(), store.Filter{AsSaved: true}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// TestRescoreSkipsUnknownWorlds saves an outcome in a world of a later program.
func TestRescoreSkipsUnknownWorlds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "r.db")
	experiment := file(t, dir, "r.yaml",
		"models: [sim/mute]\ntasks_per_type: 1\nvariants: [cot]\ntask_types: [basic_task]\n")
	must(t, nil, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	a := attempts(t, path)[0]
	set := a.Setting
	set.World = "assay-9"
	a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest}, set, 1,
		a.Repeat)
	a.Adherence = 0.123
	saveAttempt(t, path, &a)
	got := rescoredBy(t, "--store", path)
	want := map[string]int{`this program does not know the world "assay-9"`: 1}
	if diff := cmp.Diff(want, got.Skipped); diff != "" || got.Outcomes != 1 || got.Changed != 0 {
		t.Errorf("%+v\nskipped (-want +got):\n%s", got, diff)
	}
	if diff := cmp.Diff(a, attempts(t, path)[1]); diff != "" {
		t.Errorf("the attempt changed:\n%s", diff)
	}
}

func saveAttempt(t *testing.T, path string, a *assay.Attempt) {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Save(t.Context(), a, &assay.Transcript{Ended: a.Ended}); err != nil {
		t.Fatal(err)
	}
}
