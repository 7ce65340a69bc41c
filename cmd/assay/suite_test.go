package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
)

// Models at a provider. The suite all compares sizes in the family of the first one only.
const (
	family = "qwen2.5-7b-instruct"
	other  = "deepseek-v3"
)

// TestSuites runs the whole study with one command. Every part has its trials and its table, and
// each trial is stored once. Afterwards no suite has anything left to do.
func TestSuites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: plays a whole suite")
	}
	dir := t.TempDir()
	db := filepath.Join(dir, "suites.db")
	providers := file(t, dir, "providers.yaml", fmt.Sprintf(`
providers:
  rehearsal:
    base_url: %s/v1
    keys: [SIM_KEY]
    models:
      %s: {deployments: [sim/listed-1], serves: [sim/listed]}
      %s: {deployments: [sim/listed-2], serves: [sim/listed], limits: {concurrency: 16}}
`, serveProgram(t), family, other))
	where := []string{"--providers", providers, "--store", db}
	builtin := slices.Concat(where, []string{"--model", "sim/expert", "--model", "sim/obedient"})
	three := slices.Concat(builtin, []string{"--model", other})
	out := runSuite(t, "all", three)
	if !strings.Contains(out, " 4492 of 4492 trials done in ") {
		t.Errorf("the run did not report 4,492 trials:\n%s", out)
	}
	out = must(t, nil, "report", "all", "--details", "--store", db).out
	for title, lead := range map[string]string{
		"Part models":               "Full success by task type.",
		"Part models: main metrics": "",
		"Part scale":                "Full success by difficulty.",
		"Part flawed":               "Full success by variant.",
		"Part reliability":          "Full success by reliability.",
		"Part prompts":              "Full success by variant.",
		"Why trials failed":         "",
	} {
		if strings.Count(out, "\n"+title+"\n"+strings.Repeat("─", len(title))+"\n"+lead) != 1 {
			t.Errorf("the tables do not have %q once:\n%s", title, out)
		}
	}
	all := attempts(t, db)
	storedOnce(t, all, map[string]int{"sim/expert": 1564, "sim/obedient": 1564, other: 1364})
	checkFlaws(t, all)
	checkCategories(t, all)

	before := exportedBytes(t, db)
	for _, name := range plan.Suites {
		if name == "faults" || name == "profile" { // they are no parts of all
			continue
		}
		models := three
		if name == "scale" { // outside the suite all, it has trials for any model
			models = builtin
		}
		done := "trials of " + name + " were done already, so nothing was run."
		if out := runSuite(t, name, models); !strings.Contains(out, done) {
			t.Errorf("the suite %s has pending trials:\n%s", name, out)
		}
	}
	if !bytes.Equal(before, exportedBytes(t, db)) {
		t.Error("suites without pending trials changed the store")
	}
}

// TestGamesDoNotPayInSuites plays a suite with one agent that searches without reading the task, and
// one that copies the plan. [TestBuiltinLibraryIsSound] covers the agents to whom a suite's prompts
// and plans make no difference.
func TestGamesDoNotPayInSuites(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: plays a whole suite")
	}
	db := filepath.Join(t.TempDir(), "games.db")
	args := []string{"--store", db}
	for _, agent := range []string{sim.Sprayer, sim.Copier} {
		args = append(args, "--model", agent)
	}
	runSuite(t, "flawed", args)
	played, full, partial := make(map[string]int), make(map[string]int), make(map[string]int)
	for _, a := range attempts(t, db) {
		if a.Variant == assay.Optimal {
			continue // whoever copies the right plan succeeds
		}
		played[a.Model]++
		switch {
		case a.Level == assay.PartialSuccess:
			partial[a.Model]++
		case a.Level == assay.FullSuccess:
			full[a.Model]++
			flaw, _ := assay.FlawOf(a.Variant)
			if a.Model == sim.Copier && flaw != assay.RedundantOperations {
				t.Errorf("%s fully succeeds with %s at task %s", a.Model, a.Variant, a.Task)
			}
		}
	}
	for agent, n := range played {
		most := 0.02
		if agent == sim.Copier {
			most = 1 // redundant operations do not keep it from succeeding
		}
		f, p := float64(full[agent])/float64(n), float64(partial[agent])/float64(n)
		if n != 664 || f >= most || p >= 0.05 {
			t.Errorf("%s: %.3f full and %.3f partial of %d", agent, f, p, n)
		}
	}
	if len(played) != 2 {
		t.Errorf("%d agents played", len(played))
	}
}

func runSuite(t *testing.T, name string, args []string) string {
	t.Helper()
	run := []string{"run", "--suite", name, "--sim-latency", "0", "--display", "none"}
	cmd := program(t, append(run, args...)...)
	cmd.Env = append(os.Environ(), "SIM_KEY=k")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("run --suite %s: %v\n%s", name, err, out)
	}
	return string(out)
}

// storedOnce checks that each trial has one attempt, and that each model has as many as it should.
func storedOnce(t *testing.T, all []assay.Attempt, want map[string]int) {
	t.Helper()
	seen, got := make(map[assay.TrialID]bool), make(map[string]int)
	for _, a := range all {
		if seen[a.ID] || !a.Settles() || a.Number != 1 {
			t.Errorf("trial %s is stored twice or has fault %q in attempt %d",
				a.ID, a.FaultKind, a.Number)
		}
		seen[a.ID] = true
		got[a.Model]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trials of each model (-want +got):\n%s", diff)
	}
}

// expertsMargin is the largest loss that a flawed plan may cause to the expert at the same tasks.
const expertsMargin = 0.1

// checkFlaws checks that each of the seven flaws makes the obedient agent fail, six of them every
// time, and that no flaw misleads the expert.
func checkFlaws(t *testing.T, all []assay.Attempt) {
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
	// rates returns the success rates with the flawed plan and with the right one.
	rates := func(model, variant string) (flawed, right float64) {
		tasks := done[key{model, variant}]
		for _, task := range tasks {
			if full[key{model, variant}][task] {
				flawed++
			}
			if full[key{model, assay.Optimal}][task] {
				right++
			}
		}
		n := float64(len(tasks))
		return flawed / n, right / n
	}
	flaws := 0
	for _, variant := range assay.Variants {
		if _, ok := assay.FlawOf(variant); !ok {
			continue
		}
		flaws++
		obedient, right := rates("sim/obedient", variant)
		limit := 0.0
		if variant == "flawed_redundant_operations" { // this flaw only costs calls
			limit = right - 0.2
		}
		if obedient > limit {
			t.Errorf("%s: obedient agent %.3f, with the right plan %.3f; want at most %.3f",
				variant, obedient, right, limit)
		}
		expert, right := rates("sim/expert", variant)
		if expert < right-expertsMargin || right < 0.7 {
			t.Errorf("%s: expert %.3f, with the right plan %.3f", variant, expert, right)
		}
	}
	if flaws != 7 {
		t.Errorf("%d flaws, want 7", flaws)
	}
}

// checkCategories checks that an outcome has one of the eight error categories exactly if it is not
// a full success, that several categories occur, and that few outcomes are in "other".
func checkCategories(t *testing.T, all []assay.Attempt) {
	t.Helper()
	asked := append(slices.Clone(classify.Categories), assay.CategoryJudge)
	slices.Sort(asked)
	diff := cmp.Diff(slices.Sorted(slices.Values(assay.ErrorCategories)), asked)
	if diff != "" || len(assay.ErrorCategories) != 12 {
		t.Errorf("categories of rules and models differ (-rules +models):\n%s", diff)
	}
	counts, failed := make(map[string]int), 0
	for _, a := range all {
		if (a.Level == assay.FullSuccess) != (a.ErrorCategory == "") {
			t.Errorf("trial %s has level %s and category %q", a.ID, a.Level, a.ErrorCategory)
		}
		if a.ErrorCategory == "" {
			continue
		}
		failed++
		counts[a.ErrorCategory]++
		if !slices.Contains(assay.ErrorCategories, a.ErrorCategory) {
			t.Errorf("trial %s has unknown category %q", a.ID, a.ErrorCategory)
		}
	}
	if failed < 500 || len(counts) < 5 || counts[assay.CategoryOther] > failed/10 {
		t.Errorf("categories of %d outcomes: %v; want at least five, and few %s",
			failed, counts, assay.CategoryOther)
	}
}
