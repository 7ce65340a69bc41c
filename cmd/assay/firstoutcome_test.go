//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// Retries of all failures, which succeed, change no figure of a verdict or a comparison, however its
// sides are named. A side that has only retries is refused.
func TestRetriesOfFailuresChangeNoVerdict(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, other := filepath.Join(dir, "r.db"), filepath.Join(dir, "other.db")
	experiment := file(t, dir, "r.yaml", "name: r\nmodels: [sim/obedient, sim/expert]\n"+
		"variants: [optimal, flawed_missing_step]\ntasks_per_type: 2\n")
	for _, s := range []string{path, other} {
		must(t, nil, "run", experiment, "--store", s, "--sim-latency", "0", "--quiet")
	}
	run := "run:" + string(attempts(t, path)[0].Run)
	file := filepath.Join(dir, "r.jsonl")
	export := func(s string) {
		must(t, nil, "export", "--store", s, "--where", "model=sim/expert", "--output", file)
	}
	export(path)

	var commands [][]string
	for _, side := range []string{"r", run, "model:sim/obedient", "variant:optimal"} {
		commands = append(commands,
			[]string{"gate", side, "--at-least", "70%", "--always", "*"},
			[]string{"gate", side, "--at-least", "70%", "--where", "model=sim/obedient"},
			[]string{"gate", side, "--baseline", other, "--side", "model:sim/expert"})
	}
	commands = append(commands,
		[]string{"gate", "sim/obedient", "--baseline", file},
		[]string{"gate", "sim/obedient", "--baseline", "sim/expert"},
		[]string{"gate", "optimal", "--baseline", "flawed_missing_step"},
		[]string{"gate", "sim/obedient", "--baseline", "sim/expert", "--plan"},
		[]string{"compare", "sim/expert", "sim/obedient"},
		[]string{"compare", "optimal", "flawed_missing_step"},
		[]string{"compare", "r", "sim/expert"},
		[]string{"compare", run, "sim/expert"},
		[]string{"compare", "--hosts", "sim/expert", "sim/obedient"})
	figures := func() (all []string) {
		for _, c := range commands {
			r := call(t, nil, append(c, "--store", path, "--json")...)
			if r.out == "" {
				t.Fatalf("%v: %s", c, r.err)
			}
			all = append(all, withoutRetries(t, r.out))
		}
		return all
	}
	before := figures()
	for _, s := range []string{path, other} {
		repeatFailures(t, s)
	}
	export(path)
	for i, after := range figures() {
		if after != before[i] {
			t.Errorf("%v\nbefore the retries: %s\nafter: %s", commands[i], before[i], after)
		}
	}

	// The candidate lacks all first outcomes, and the file lacks some.
	late := filepath.Join(dir, "late.jsonl")
	must(t, nil, "export", "--store", path, "--where", "superseded=false", "--output", late)
	for _, c := range [][]string{
		{"gate", "run:retries", "--at-least", "70%"},
		{"gate", "run:retries", "--always", "*"},
		{"gate", "r", "--where", "superseded=false", "--at-least", "70%"},
		{"gate", "run:retries", "--baseline", other, "--side", "r"},
		{"gate", "sim/expert", "--baseline", late},
	} {
		wantError(t, exitError, "lacks the first outcomes of ", append(c, "--store", path)...)
		if r := call(t, nil, append(c, "--store", path, "--allow", "retries,tasks")...); r.out == "" {
			t.Errorf("%v is refused although it is allowed: %s", c, r.err)
		}
	}
	r := must(t, nil, "compare", run, "run:retries", "--store", path,
		"--format", "html", "--transcripts", "1")
	for _, ending := range []string{"-1\"", "-2\""} { // numbers of attempts
		if n := strings.Count(r.out, `id="episode-trial-`); n != 2 || !strings.Contains(r.out, ending) {
			t.Errorf("%d transcripts of a trial that flipped, want both attempts", n)
		}
	}
	r = must(t, nil, "compare", run, "run:retries", "--store", path)
	if text := strings.Join(strings.Fields(r.out), " "); !strings.Contains(text,
		"run:retries lacks the first outcomes of ") || strings.Contains(text, "belong to both sides") {
		t.Errorf("%s", r.out)
	}
}

// repeatFailures adds a run to a store, which works on all failures again and succeeds.
func repeatFailures(t *testing.T, path string) {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	experiments, err := db.Experiments(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = db.BeginRun(t.Context(), experiments[0], store.Run{ID: "retries", StartedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range attempts(t, path) {
		if a.Level == assay.FullSuccess {
			continue
		}
		n++
		tr, err := db.Transcript(t.Context(), a.ID, a.Number)
		if err != nil {
			t.Fatal(err)
		}
		a.Run, a.Round, a.Level, a.Cause, a.ErrorCategory = "retries", 1, assay.FullSuccess, "", ""
		if err := db.Save(t.Context(), &a, &tr); err != nil {
			t.Fatal(err)
		}
	}
	if n == 0 {
		t.Fatal("there is no failure")
	}
}

// withoutRetries returns a JSON document without the fields that say what was worked on again.
func withoutRetries(t *testing.T, text string) string {
	t.Helper()
	var v any
	decode(t, text, &v)
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, name := range []string{
				"replayed", "snapshot", "attempt_a", "attempt_b", "see_attempt", "failed_attempt",
			} {
				delete(v, name)
			}
			for _, part := range v {
				strip(part)
			}
		case []any:
			for _, part := range v {
				strip(part)
			}
		}
	}
	strip(v)
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(v); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
