package own_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// retail returns a library of τ²-bench's retail tasks, with its whole database as the base of own
// tools. TAU2 names a checkout.
func retail(t *testing.T) *library.Library {
	t.Helper()
	checkout := os.Getenv("TAU2")
	if checkout == "" {
		t.Skip("TAU2 names no checkout of tau2-bench, which is not a package")
	}
	data := filepath.Join(checkout, "data/tau2/domains/retail")
	text, err := os.ReadFile(filepath.Join(data, "tasks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var theirs []struct {
		ID       string
		Criteria struct {
			Actions []struct {
				Name      string
				Arguments map[string]any
			}
		} `json:"evaluation_criteria"`
	}
	if err := json.Unmarshal(text, &theirs); err != nil {
		t.Fatal(err)
	}
	tools, err := filepath.Abs("testdata/retail.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tasks := []any{}
	for _, task := range theirs {
		plan := []any{}
		for _, a := range task.Criteria.Actions {
			if a.Name != "calculate" && a.Name != "transfer_to_human_agents" { // change nothing
				plan = append(plan, map[string]any{"tool": a.Name, "arguments": a.Arguments})
			}
		}
		tasks = append(tasks, map[string]any{
			"id": "retail-" + task.ID, "prompt": "Help the user.", "plan": plan, "answer": "Done.",
			"judge": map[string]any{"answer": []string{"done"}, "state": "plan"},
		})
	}
	text, err = json.Marshal(map[string]any{
		"tools": tools, "base": filepath.Join(data, "db.json"), "tasks": tasks,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "retail.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := library.OpenNamed(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestLargeStates plays the reference calls of τ²-bench's retail tasks with own tools on its whole
// database of 1.2 MB, and compares the database in the end with the one that the benchmark's own
// evaluation expects. testdata/retail_states.py prints the digests.
func TestLargeStates(t *testing.T) {
	l := retail(t)
	text, err := os.ReadFile("testdata/retail.json")
	var want map[string]string
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	kit, err := toolkit.Of(l.Catalog())
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	refs, err := l.Refs(t.Context(), "task", "easy")
	if err != nil || len(refs) != len(want) {
		t.Fatalf("%d tasks, %v", len(refs), err)
	}
	for i, ref := range refs {
		if testing.Short() && i%8 > 0 {
			continue
		}
		task, err := l.Task(t.Context(), ref.ID, "easy")
		if err != nil {
			t.Fatal(err)
		}
		trial := &assay.Trial{Cell: assay.Cell{Reliability: 1}}
		w := own.Definition.Begin(t.Context(), l.Catalog(), trial, &task)
		for _, c := range task.Reference.Calls {
			_, err := w.Call(0, c.Tool, string(c.Arguments))
			if fault := (*assay.Fault)(nil); errors.As(err, &fault) {
				t.Fatalf("%s: %v", ref.ID, err)
			}
		}
		state, err := w.(spec.Ender).End()
		if err != nil || len(state) > 10_000 {
			t.Errorf("%s: %d bytes of changes, %v", ref.ID, len(state), err)
		}
		if string(state) != "[]" {
			changed++
		}
		level := func(state string) assay.Level {
			tr := &assay.Transcript{
				Calls: w.Calls(), State: json.RawMessage(state), Ended: assay.Finished,
				Messages: []assay.Message{{Role: assay.Assistant, Content: "Done."}},
			}
			return own.Verdict(l.Catalog(), task, tr, nil).Level
		}
		if level(string(state)) != assay.FullSuccess {
			t.Errorf("%s: the plan's own state is not full success", ref.ID)
		}
		if string(state) != "[]" && level("[]") != assay.Failure {
			t.Errorf("%s: no change is no failure", ref.ID)
		}
		final, err := kit.After(state)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := final.Part(json.RawMessage(`{"orders":0,"products":0,"users":0}`))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(whole)
		if got := hex.EncodeToString(sum[:16]); got != want[string(ref.ID[len("retail-"):])] {
			t.Errorf("%s: the database is not the one that is expected after %s", ref.ID, state)
		}
	}
	if changed < 10 {
		t.Errorf("%d tasks change the database", changed)
	}
}
