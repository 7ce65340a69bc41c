//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/store"
)

// storeOf makes a store with an attempt for each of the first n trials of an experiment, which
// attempt fills in.
func storeOf(
	t testing.TB, text string, n int,
	attempt func(i int, a *assay.Attempt) *assay.Transcript,
) (path string) {
	t.Helper()
	dir := t.TempDir()
	path = filepath.Join(dir, "made.db")
	e, err := plan.Load(file(t, dir, "made.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	spec, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	begin := time.Now().UTC().Add(-time.Hour)
	meta := j.Library.Meta()
	if err := db.BeginRun(t.Context(), store.Experiment{
		Name: e.Name, Spec: spec, Planned: j.Planned(),
		Library: store.Library{Path: e.Library, Name: meta.Name, Digest: meta.Digest},
	}, store.Run{ID: "made", Program: "test", StartedAt: begin}); err != nil {
		t.Fatal(err)
	}
	var savers sync.WaitGroup
	attempts := make(chan func())
	for range 256 { // concurrent saves share a flush
		savers.Go(func() {
			for save := range attempts {
				save()
			}
		})
	}
	i := 0
	for trial := range j.Trials() {
		if i == n {
			break
		}
		a := &assay.Attempt{
			Trial: trial, Run: "made", Experiment: e.Name, Program: "test", Lane: "host/KEY/model",
			ServedModel: trial.Model, Requests: 1,
			Spend:     assay.NewSpend(assay.Usage{InputTokens: 1000, OutputTokens: 50}, 0),
			WorkingMS: 1000, StartedAt: begin,
			FinishedAt: begin.Add(time.Duration(i) * 3 * time.Millisecond),
		}
		tr := attempt(i, a)
		attempts <- func() {
			if err := db.Save(t.Context(), a, tr); err != nil {
				t.Error(err)
			}
		}
		i++
	}
	close(attempts)
	savers.Wait()
	if i < n {
		t.Fatalf("the experiment has %d trials, not %d", i, n)
	}
	return path
}

// filledStore makes a store of n attempts: two in three succeed, every hundredth meets a fault.
func filledStore(t testing.TB, n int) string {
	t.Helper()
	text := fmt.Sprintf("name: filled\nmodels: [sim/optimal, sim/expert]\n"+
		"variants: [baseline, optimal, flawed_missing_step]\nreliabilities: [0.9, 0.7]\n"+
		"tasks_per_type: 20\nrepeats: %d\n", n/1000+1)
	return storeOf(t, text, n, func(i int, a *assay.Attempt) *assay.Transcript {
		if i%100 == 99 {
			a.FaultKind, a.FaultDetail = assay.Timeout, "no reply"
			return nil
		}
		a.Outcome = assay.Outcome{
			Level: assay.FullSuccess, Ended: assay.Finished, Turns: 5, Coverage: 1, Best: .9,
			RequiredTools: []string{"a"}, ExecutedTools: []string{"a"}, ScoreVersion: "test",
		}
		if i%3 == 0 {
			a.Level, a.Ended, a.ErrorCategory = assay.Failure, assay.TurnLimit, "tool_selection"
		}
		return nil
	})
}

// hostileStore makes a store in which everything that comes from outside is an attack.
func hostileStore(t testing.TB) string {
	t.Helper()
	const evil = "<script>window.hacked=true</script><img src=x onerror=window.hacked=true>" +
		"<b class=evil>\"'`</b></pre></article>\x1b[2J\x1b]0;x\x07{{.}}\n\ndata: <script>x</script>\n\n"
	text := "name: hostile\nmodels: [sim/optimal]\nvariants: [optimal]\ntasks_per_type: 1\n"
	return storeOf(t, text, 2, func(i int, a *assay.Attempt) *assay.Transcript {
		a.Lane, a.ServedModel = "host/KEY/"+evil, evil
		tr := &assay.Transcript{
			Messages: []assay.Message{
				{Role: assay.System, Content: evil},
				{Role: assay.User, Content: evil},
				{
					Role: assay.Assistant, Content: evil, Reasoning: evil,
					Calls: []assay.ToolCall{{ID: evil, Name: evil, Arguments: evil}},
				},
				{Role: assay.ToolRole, CallID: evil, Content: evil},
			},
			Calls: []assay.CallRecord{{Turn: 1, Tool: evil, Arguments: evil, Code: evil, Error: evil}},
			Turns: []assay.TurnRecord{{Lane: evil, ServedModel: evil, Requests: 1}},
		}
		if i == 0 {
			a.FaultKind, a.FaultDetail, a.Parked = assay.BadRequest, evil, true
			return tr
		}
		a.Outcome = assay.Outcome{
			Level: assay.Failure, Ended: assay.Finished, Turns: 1, ErrorCategory: evil,
			RequiredTools: []string{evil}, ExecutedTools: []string{evil}, ScoreVersion: "test",
		}
		tr.Ended = assay.Finished
		return tr
	})
}
