package main

import (
	"path/filepath"
	"testing"
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
