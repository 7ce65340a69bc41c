package main

import (
	"cmp"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/store"
)

// TestPilotFigures runs agents of known skill over the original's 630 tasks and compares their
// rates with the exact probabilities. Everything has to be right for this: world, episode, scoring,
// seeds, engine, store and export.
func TestPilotFigures(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: thousands of trials")
	}
	dir := t.TempDir()
	pilotLibrary(t, dir)
	experiment := file(t, dir, "figures.yaml", `
library: pilot.db
world: pilot
models: [sim/listed, sim/optimal]
variants: [optimal]
reliabilities: [0.9, 0.6]
tasks_per_type: all
repeats: 2
limits: {turns: 10}
`)
	db := filepath.Join(dir, "figures.db")
	mustProgram(t, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")

	type cell struct {
		model       string
		reliability float64
		taskType    string
	}
	full, n := make(map[cell]float64), make(map[cell]float64)
	for _, a := range attempts(t, db) {
		c := cell{a.Model, a.Reliability, a.TaskType}
		if a.Level == assay.FullSuccess {
			full[c]++
		}
		n[c]++
	}
	for model, rates := range map[string]map[float64]float64{
		"sim/listed":  {.9: .830, .6: .590},
		"sim/optimal": {.9: .971, .6: .715},
	} {
		for reliability, exact := range rates {
			mean, variance := 0.0, 0.0
			for _, taskType := range assay.TaskTypes {
				c := cell{model, reliability, taskType}
				rate := full[c] / n[c]
				mean += rate / 5
				variance += rate * (1 - rate) / n[c] / 25
			}
			half := stat.Z99 * math.Sqrt(variance)
			t.Logf("%s at %v: %.4f ± %.4f, exact %.3f", model, reliability, mean, half, exact)
			if !(math.Abs(mean-exact) <= half) {
				t.Errorf("%s at %v: %.4f ± %.4f excludes the exact %.3f",
					model, reliability, mean, half, exact)
			}
		}
	}
}

// An outcome is the part of a trial that must not depend on how it was run.
type outcome struct {
	ID       assay.TrialID
	Outcome  assay.Outcome
	Messages []assay.Message
	Calls    []assay.CallRecord
	Ended    assay.Ended
}

// outcomes returns the settled trials with their complete conversations.
func outcomes(t *testing.T, path string) []outcome {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []outcome
	for a, err := range db.Attempts(t.Context(), store.Filter{OnlySettled: true}) {
		if err != nil {
			t.Fatal(err)
		}
		tr, err := db.Transcript(t.Context(), a.ID, a.Number)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, outcome{a.ID, a.Outcome, tr.Messages, tr.Calls, tr.Ended})
	}
	slices.SortFunc(all, func(a, b outcome) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// outcomesEqual checks that two runs gave the same outcomes. It computes a diff only if they
// differ, because a diff of conversations takes seconds under the race detector.
func outcomesEqual(t *testing.T, want, got []outcome) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Errorf("outcomes differ between the runs (-want +got):\n%.4000s", gocmp.Diff(want, got))
	}
}

// TestHTTPGivesTheSameOutcomes runs one experiment in process and over real HTTP, one request at a
// time and 64 at once. The outcome and the conversation of every trial are equal byte for byte.
func TestHTTPGivesTheSameOutcomes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: hundreds of trials")
	}
	for _, tools := range []string{assay.Discover, assay.Listed} {
		t.Run(tools, func(t *testing.T) {
			t.Parallel()
			sameOverHTTP(t, `
name: same
models: [sim/listed, sim/optimal, sim/obedient, sim/searcher, sim/mute]
reliabilities: [0.7]
tasks_per_type: 1
tools: `+tools+"\n")
		})
	}
}

func sameOverHTTP(t *testing.T, experiment string) {
	dir := t.TempDir()
	inProcess := filepath.Join(dir, "process.db")
	mustProgram(t, "run", file(t, dir, "process.yaml", experiment), "--store", inProcess,
		"--sim-latency", "0", "--display", "none")
	want := outcomes(t, inProcess)
	if len(want) != 5*3*5 {
		t.Fatalf("%d trials done in process", len(want))
	}

	url := serveProgram(t)
	for name, limits := range map[string]string{
		"one": "{concurrency: 1}", "many": "{concurrency: 64}",
	} {
		file(t, dir, name+"-providers.yaml", providersFile(url, limits))
		path := file(t, dir, name+".yaml", experiment+"providers: "+name+"-providers.yaml\n")
		db := filepath.Join(dir, name+".db")
		must(t, map[string]string{"SIM_KEY": "k"}, "run", path, "--store", db, "--display", "none")
		t.Run(name, func(t *testing.T) { outcomesEqual(t, want, outcomes(t, db)) })
	}
}
