package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
)

// checkOpinions checks that a store has the wanted number of opinions, at most one per outcome,
// and that no full success has one.
func checkOpinions(t *testing.T, path string, want int) {
	t.Helper()
	category, seen := make(map[assay.TrialID]string), make(map[assay.TrialID]bool)
	for _, a := range attempts(t, path) {
		category[a.ID] = a.ErrorCategory
	}
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for o, err := range db.Classifications(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		rule := category[o.Trial]
		if rule == "" || o.RuleCategory != rule {
			t.Errorf("opinion %+v on an outcome of category %q", o, rule)
		}
		if seen[o.Trial] || !slices.Contains(classify.Categories, o.Category) || o.Reason == "" {
			t.Errorf("opinion %+v is a second one, of an unknown category, or without a reason", o)
		}
		seen[o.Trial] = true
	}
	if len(seen) != want {
		t.Errorf("%d opinions are stored, want %d", len(seen), want)
	}
}

// TestInterruptedClassifyKeepsAnswers interrupts classify. The next command asks only about the
// remaining outcomes, and costs what it is billed. The story classify.txtar shows the rest.
func TestInterruptedClassifyKeepsAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "failures.db")
	mustProgram(t, "run", file(t, dir, "failures.yaml", "models: [sim/obedient, sim/searcher]\n"+
		"variants: [optimal, flawed_missing_step]\ntasks_per_type: 4\n"), "--store", path,
		"--sim-latency", "0", "--display", "none")
	n := 0
	for _, a := range attempts(t, path) {
		if a.Level != assay.FullSuccess {
			n++
		}
	}
	classifyAt := func(server rehearsal, width int, signals chan os.Signal) (r result, sum audit.Opinions) {
		providers := file(t, dir, "judge.yaml", fmt.Sprintf("providers:\n  p:\n    base_url: %s/v1\n"+
			"    keys: [KEY]\n    models: {judge: {deployments: [sim/judge], serves: [sim/judge], "+
			"limits: {concurrency: %d}, price: {input: 1, output: 2}}}\n", server.url, width))
		var out, errs bytes.Buffer
		code := run([]string{
			"store", "classify", "--model", "judge", "--store", path, "--json", "--providers", providers,
		}, &process{
			in: strings.NewReader(""), out: &out, err: &errs, name: "assay", signals: signals,
			env: func(string) (string, bool) { return "k", true },
		})
		decode(t, out.String(), &sum)
		return result{code, out.String(), errs.String()}, sum
	}
	slow := serve(t, "--latency", "50ms", "--latency-sigma", "0")
	signals := make(chan os.Signal, 1)
	go func() {
		waitFor(t, func() bool { return slow.stats(t).Requests >= 6 })
		signals <- syscall.SIGINT
	}()
	r, first := classifyAt(slow, 2, signals)
	if r.code != exitInterrupted || !strings.Contains(r.err, "assay: interrupted\nhint: ") ||
		first.Answered < 4 || first.Answered > n-4 || first.Faulted != 0 {
		t.Fatalf("exit code %d, %+v of %d\n%s", r.code, first, n, r.err)
	}
	checkOpinions(t, path, first.Answered)
	server := serve(t, "--tariff", "input=1,output=2")
	r, rest := classifyAt(server, 32, nil)
	if r.code != 0 || rest.Before != first.Answered || rest.Answered != n-first.Answered {
		t.Errorf("second command: %+v, after %+v of %d outcomes\n%s", rest, first, n, r.err)
	}
	checkOpinions(t, path, n)
	agree(t, "classify", rest.CostUSD, server.stats(t).Bills["sim/judge"].MicroUSD)
	if rest.CostUSD == 0 {
		t.Error("the server charged nothing")
	}
}
