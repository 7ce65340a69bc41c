package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/reading"
	"github.com/assay-eval/assay/internal/store"
)

// replayed are the experiments that the replay covers. Together they have more than 1,000 trials.
var replayed = []string{`
name: independent
models: [sim/expert, sim/optimal, sim/obedient, sim/listed, sim/batcher, sim/mute]
variants: [all]
reliabilities: [0.8]
tasks_per_type: 3
`, `
name: lasting
models: [sim/expert, sim/alphabet, sim/sprayer, sim/copier, sim/inputs, sim/guesser, sim/claimer]
variants: [all]
difficulties: [very_hard]
reliabilities: [0.6]
failures: {persistence: 0.5, burst: 0.2}
tasks_per_type: 1
`}

// TestReplay has an independent script, written from docs/worlds.md alone, replay more than 1,000
// trials: luck, chance, mistakes, codes, results and verdicts have to be those of the store.
func TestReplay(t *testing.T) {
	t.Parallel()
	python := os.Getenv("ASSAY_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.CommandContext(t.Context(), python, "-c",
		"import sqlite3").CombinedOutput(); err != nil {
		t.Skipf("%s cannot run (%v); ASSAY_PYTHON names another Python: %s", python, err, out)
	}
	dir := t.TempDir()
	path, tasks := filepath.Join(dir, "assay.db"), filepath.Join(dir, "tasks.db")
	mustProgram(t, "library", "generate", "-o", tasks)
	for i, text := range replayed {
		experiment := file(t, dir, fmt.Sprintf("%d.yaml", i), text)
		mustProgram(t, "run", experiment, "--store", path, "--quiet", "--sim-latency", "0s",
			"--log-dir", "none")
	}

	trials := file(t, dir, "trials.jsonl", shown(t, path))
	script := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "replay.py"),
		tasks, trials, "2025")
	out, err := script.CombinedOutput()
	if err != nil {
		t.Fatalf("the replay differs: %v\n%.4000s", err, out)
	}
	t.Logf("%s", out)
}

// shown returns what the script reads of `assay show --json` for each trial of a store.
func shown(t *testing.T, path string) string {
	t.Helper()
	trials := attempts(t, path)
	if len(trials) < 1000 {
		t.Fatalf("%d trials; the replay is about at least 1,000", len(trials))
	}
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var out bytes.Buffer
	for _, a := range trials {
		trial, err := reading.FindTrial(t.Context(), db, string(a.ID), 0)
		if err != nil {
			t.Fatal(err)
		}
		attempt, err := export.JSON(trial.Attempt)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&out).Encode(map[string]any{
			"attempt": json.RawMessage(attempt), "transcript": trial.Transcript,
		}); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}
