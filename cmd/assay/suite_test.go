package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/classify"
	"github.com/assay-eval/assay/internal/episode"
	"github.com/assay-eval/assay/internal/plan"
	"github.com/assay-eval/assay/internal/score"
)

// qwen is a model of the family for which the suite scale is.
const qwen = "qwen2.5-7b-instruct"

// suiteCounts are the trials of each part of the suite all, as the README has
// them, for a model of another family.
var suiteCounts = map[string]int{"baseline": 100, "scale": 0, "flawed": 664, "reliability": 400, "prompts": 300}

// TestSuites runs the whole study with one command: every part has its trials,
// each of which is stored once, and its table. Then there is nothing left to
// do, in no suite.
func TestSuites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "suites.db")
	providers := file(t, dir, "providers.yaml", fmt.Sprintf(`
providers:
  rehearsal:
    base_url: %s/v1
    keys: [SIM_KEY]
    models:
      %s: {deployments: [sim/listed], serves: [sim/listed], limits: {concurrency: 16}}
`, serveProgram(t), qwen))
	chosen := []string{"--model", "sim/expert", "--model", "sim/obedient", "--model", qwen, "--providers", providers, "--store", db}
	suiteGaps(t, 0, append(chosen, "--suite", "all"))

	out := runSuite(t, "all", chosen)
	if !strings.Contains(out, "\n3992 of 3992 trials done, 3992 in this run") {
		t.Errorf("the run does not say that it did 3,992 trials:\n%s", out)
	}
	for _, title := range []string{
		"baseline: full success by task type", "baseline: main metrics", "scale: full success by difficulty", "flawed: full success by variant",
		"reliability: full success by reliability", "prompts: full success by variant", "errors: why outcomes are not full success",
	} {
		if strings.Count(out, "\n"+title+"\n") != 1 {
			t.Errorf("the tables do not have %q once:\n%s", title, out)
		}
	}
	suiteGaps(t, 1, append(chosen, "--suite", "all"))
	all := attempts(t, db)
	storedOnce(t, all, map[string]int{"sim/expert": 1264, "sim/obedient": 1264, qwen: 1464})
	flawsFell(t, all)
	categoriesTell(t, all)

	for _, name := range plan.Suites {
		// The suite scale is for any model: the sizes of another family are
		// compared by it.
		models := chosen
		if name == "scale" {
			models = chosen[4:]
		}
		if out := runSuite(t, name, models); !strings.Contains(out, "trials of "+name+" are done; nothing was run.") {
			t.Errorf("the suite %s has work left:\n%s", name, out)
		}
	}
	if diff := cmp.Diff(all, attempts(t, db)); diff != "" {
		t.Errorf("suites that are done have changed the store:\n%.2000s", diff)
	}
}

func runSuite(t *testing.T, name string, args []string) string {
	t.Helper()
	cmd := program(t, append([]string{"run", "--suite", name, "--sim-latency", "0", "--display", "none"}, args...)...)
	cmd.Env = append(os.Environ(), "SIM_KEY=k")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run --suite %s: %v\n%s", name, err, out)
	}
	return string(out)
}

// suiteGaps checks what a plan of the suite all says of each part: how much
// there is, and whether all (1) or nothing (0) of it is done.
func suiteGaps(t *testing.T, share int, args []string) {
	t.Helper()
	out := planOf(t, nil, args...)
	planned := 0
	for _, model := range []string{"sim/expert", "sim/obedient", qwen} {
		for _, name := range plan.Suites[:5] {
			n := suiteCounts[name]
			if model == qwen && name == "scale" {
				n = 200
			}
			want := gap{Model: model, Part: name, Planned: n, Done: share * n, Owed: (1 - share) * n}
			if !slices.Contains(out.Gaps, want) {
				t.Errorf("the plan does not have the gap %+v: %+v", want, out.Gaps)
			}
			planned += n
		}
		planned -= 2 * suiteCounts["baseline"] // which reliability and prompts have too
	}
	if len(out.Gaps) != 3*5 || out.Planned != planned || out.Done != share*planned || out.Owed != (1-share)*planned {
		t.Errorf("%d gaps, %d planned, %d done, %d owed; want 15, and %d planned", len(out.Gaps), out.Planned, out.Done, out.Owed, planned)
	}
}

// storedOnce: there is one attempt for each trial, and so many for each model.
func storedOnce(t *testing.T, all []assay.Attempt, want map[string]int) {
	t.Helper()
	seen, got := make(map[assay.TrialID]bool), make(map[string]int)
	for _, a := range all {
		if seen[a.ID] || !a.Settles() || a.Number != 1 {
			t.Errorf("trial %s is stored twice, or has the fault %q in attempt %d", a.ID, a.FaultKind, a.Number)
		}
		seen[a.ID] = true
		got[a.Model]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trials of each model (-want +got):\n%s", diff)
	}
}

// expertsMargin is how much less than with the right plan an agent that judges
// for itself may succeed with a flawed one, at the same tasks.
const expertsMargin = 0.1

// flawsFell: each of seven flaws fells the agent that obeys, six of them
// always, and none the one that judges for itself.
func flawsFell(t *testing.T, all []assay.Attempt) {
	t.Helper()
	type key struct{ model, variant string }
	full, done := make(map[key]map[assay.TaskID]bool), make(map[key][]assay.TaskID)
	for _, a := range all {
		if a.Difficulty != "easy" || a.Reliability != 0.8 {
			continue
		}
		k := key{a.Model, a.Variant}
		if full[k] == nil {
			full[k] = make(map[assay.TaskID]bool)
		}
		done[k] = append(done[k], a.Task)
		full[k][a.Task] = a.Level == assay.FullSuccess
	}
	// rates are those with the flawed plan and with the right one.
	rates := func(model, variant string) (flawed, right float64) {
		tasks := done[key{model, variant}]
		for _, task := range tasks {
			if full[key{model, variant}][task] {
				flawed++
			}
			if full[key{model, episode.Optimal}][task] {
				right++
			}
		}
		n := float64(len(tasks))
		return flawed / n, right / n
	}
	flaws := 0
	for _, variant := range episode.Variants {
		if _, ok := episode.FlawOf(variant); !ok {
			continue
		}
		flaws++
		obedient, right := rates("sim/obedient", variant)
		limit := 0.0
		if variant == "flawed_redundant_operations" { // which only takes more calls
			limit = right - 0.2
		}
		if obedient > limit {
			t.Errorf("%s: the obedient succeeds in %.3f, and with the right plan in %.3f; want at most %.3f", variant, obedient, right, limit)
		}
		if expert, right := rates("sim/expert", variant); expert < right-expertsMargin || right < 0.8 {
			t.Errorf("%s: the expert succeeds in %.3f, and with the right plan in %.3f", variant, expert, right)
		}
	}
	if flaws != 7 {
		t.Errorf("%d flaws, want 7", flaws)
	}
}

// categoriesTell: an outcome has one of the eight categories of error just when
// it is no full success, and they tell outcomes apart: the one for whatever
// fits none of the others has few.
func categoriesTell(t *testing.T, all []assay.Attempt) {
	t.Helper()
	if diff := cmp.Diff(score.Categories, classify.Categories); diff != "" || len(score.Categories) != 8 {
		t.Errorf("rules and models know other categories (-rules +models):\n%s", diff)
	}
	counts, failed := make(map[string]int), 0
	for _, a := range all {
		if (a.Level == assay.FullSuccess) != (a.ErrorCategory == "") {
			t.Errorf("trial %s has the level %s and the category %q", a.ID, a.Level, a.ErrorCategory)
		}
		if a.ErrorCategory == "" {
			continue
		}
		failed++
		counts[a.ErrorCategory]++
		if !slices.Contains(score.Categories, a.ErrorCategory) {
			t.Errorf("trial %s has the category %q, which is none", a.ID, a.ErrorCategory)
		}
	}
	if failed < 500 || len(counts) < 5 || counts[score.OtherError] > failed/10 {
		t.Errorf("categories of %d outcomes: %v; want five at least, and few %s", failed, counts, score.OtherError)
	}
}
