package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/experiment/job"
)

// TestBudgetEndsARun checks that no request is sent after the budget is spent, that the other
// trials stay pending, and that the next run has a new budget.
func TestBudgetEndsARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "b.db")
	experiment := file(t, dir, "b.yaml", "name: b\nmodels: [sim/listed]\nvariants: [optimal]\n"+
		"tasks_per_type: 20\nbudget: {tokens: 300000}\n")
	done := 0.0
	for run := 1; run <= 10; run++ {
		r := call(t, nil, "run", experiment, "--store", path, "--display", "json", "--sim-latency",
			"1ms")
		event := lastEvent(t, r.out)
		// Requests that are in flight when the budget is spent still count.
		if tokens := event["tokens"].(float64); tokens > 300_000+16*10_000 {
			t.Errorf("run %d took %v tokens of a budget of 300,000", run, tokens)
		}
		if event["done"].(float64) <= done {
			t.Fatalf("run %d did nothing: %v", run, event)
		}
		done = event["done"].(float64)
		if r.code == 0 {
			if run == 1 || done != 100 {
				t.Errorf("complete after %d runs with %v done, want several runs", run, done)
			}
			return
		}
		if r.code != exitIncomplete {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
	}
	t.Error("the experiment is incomplete after ten runs")
}

// TestStopRulesEndAModel checks that a model that never calls a tool is stopped after 20 trials.
// The number of outcomes is reported, its other trials are not pending in this run or the next, and
// other models continue.
func TestStopRulesEndAModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	experiment := file(t, dir, "s.yaml", `
name: s
models: [sim/mute, sim/optimal]
variants: [optimal]
reliabilities: [1]
tasks_per_type: 100
limits: {turns: 10}
stop:
  hopeless: {below: 0.2, per: model}
`)
	for _, want := range []string{
		"stopped early: full success is below 20 % with 95 % confidence", "trials skipped)",
	} {
		r := call(t, nil, "run", experiment, "--store", path, "--display", "none", "--sim-latency",
			"0")
		if r.code != 0 || !strings.Contains(r.out, want) || strings.Contains(r.out, "unfinished") {
			t.Fatalf("exit code %d, want complete with %q\n%s%s", r.code, want, r.out, r.err)
		}
	}
	status := must(t, nil, "status", "--store", path).out
	if !strings.Contains(status, "sim/mute stopped early: full success is below 20 %") ||
		!strings.Contains(status, "trials skipped)") {
		t.Errorf("status does not mention the stop:\n%s", status)
	}
	mute, optimal := 0, 0
	for _, a := range attempts(t, path) {
		if a.Model == "sim/mute" {
			mute++
		} else {
			optimal++
		}
	}
	if mute < 20 || mute > 20+2*job.BuiltinConcurrency+64 || optimal != 500 {
		t.Errorf("%d trials of sim/mute and %d of sim/optimal, want slightly more than 20, and 500",
			mute, optimal)
	}
}

func TestEpisodeLimitsEndEpisodesWithOutcome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "l.db")
	experiment := file(t, dir, "l.yaml", "name: l\nmodels: [sim/listed]\nvariants: [optimal]\n"+
		"tasks_per_type: 4\nlimits: {tokens: 5000}\n")
	must(t, nil, "run", experiment, "--store", path, "--display", "none", "--sim-latency", "0")
	limited := 0
	for _, a := range attempts(t, path) {
		if a.Ended == "token_limit" {
			limited++
			if a.InputTokens+a.OutputTokens < 5000 || a.Level == "" {
				t.Errorf("trial %s ended at %d tokens with level %q",
					a.ID, a.InputTokens+a.OutputTokens, a.Level)
			}
		}
	}
	if limited == 0 {
		t.Error("no episode reached its token limit")
	}
}

// TestDollarsNeedAPrice checks that a budget in dollars is refused if a model has no price,
// because it would never be spent.
func TestDollarsNeedAPrice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file(t, dir, "providers.yaml", providersFile("http://127.0.0.1:9", "{}"))
	experiment := file(t, dir, "m.yaml",
		"models: [sim/listed]\nproviders: providers.yaml\nbudget: {usd: 5}\n")
	r := call(t, map[string]string{"SIM_KEY": "k"}, "run", experiment,
		"--store", filepath.Join(dir, "m.db"))
	if r.code != exitUsage || !strings.Contains(r.err, "m.yaml:3") ||
		!strings.Contains(r.err, "has no price at provider rehearsal") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}
