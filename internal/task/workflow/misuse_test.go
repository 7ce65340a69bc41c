//go:build !race

package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// TestWrongToolsAreSimilar checks that a wrong tool is one of the most similar tools and not always
// the same, and that drift always goes to the most similar one.
func TestWrongToolsAreSimilar(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "post_letter", Category: "post", Description: "Sends a letter abroad."},
		{Name: "file_read", Category: "file", Description: "Reads records out of storage."},
		{Name: "file_scan", Category: "file", Description: "Looks through records in storage."},
		{Name: "post_fetch", Category: "post", Description: "Reads records out of boxes."},
		{Name: "file_pack", Category: "file", Description: "Makes archives smaller."},
		{Name: "post_stamp", Category: "post", Description: "Sticks paper on a letter."},
	})
	chosen := make(map[string]int)
	for seed := range uint64(60) {
		task := &assay.Task{ID: "t", Required: []string{"file_read"}}
		plan := workflow.For(catalog, world.Assay1Name, task)
		plan, ok := workflow.Flawed(catalog, plan, task, assay.ToolMisuse, assay.Severe, seed)
		if !ok {
			t.Fatal("no tool can be misused")
		}
		chosen[plan.Steps[0].Tool]++
	}
	if len(chosen) != 3 || chosen["post_letter"]+chosen["post_stamp"] > 0 {
		t.Errorf("chosen instead of file_read: %v", chosen)
	}
	task := &assay.Task{ID: "t", Required: []string{"file_read", "file_pack", "post_fetch"}}
	plan := workflow.For(catalog, world.Assay1Name, task)
	plan, _ = workflow.Flawed(catalog, plan, task, assay.SemanticDrift, assay.Severe, 1)
	want := []string{"file_read", "file_scan", "post_letter"}
	if got := stepTools(plan.Steps); !slices.Equal(got, want) {
		t.Errorf("drift leads along %v, want %v", got, want)
	}
}

// TestSecondToolsAreNoWrongTools checks that no flaw replaces a tool by one that does the same.
func TestSecondToolsAreNoWrongTools(t *testing.T) {
	t.Parallel()
	catalog := doubled(assay.NewCatalog([]assay.Tool{
		{Name: "read", Description: "Reads records."},
		{Name: "pack", Description: "Packs records."},
		{Name: "send", Description: "Sends records."},
		{Name: "sort", Description: "Sorts records."},
		{Name: "note", Description: "Notes down."},
		{Name: "list", Description: "Lists names."},
	}), "read", "pack", "send")
	task := &assay.Task{ID: "t", Required: []string{"read", "pack", "send"}}
	for _, flaw := range []assay.Flaw{assay.ToolMisuse, assay.SemanticDrift} {
		for seed := range uint64(40) {
			plan, ok := workflow.Flawed(catalog, workflow.For(catalog, world.Assay1Name, task), task, flaw, assay.Severe, seed)
			if !ok {
				t.Fatal("the flaw does not apply")
			}
			for i, s := range plan.Steps {
				if s.Tool != task.Required[i] && slices.Contains(task.Required, catalog.Work(s.Tool)) {
					t.Fatalf("%s: step %d is %s", flaw, i+1, s.Tool)
				}
			}
		}
	}
}

// TestMisuseKeepsLaterResults checks that references to the second run of a tool stay when the
// first run is replaced.
func TestMisuseKeepsLaterResults(t *testing.T) {
	t.Parallel()
	var tools []assay.Tool
	for _, tool := range append(slices.Clone(chain().All()), assay.Tool{Name: "f"}) {
		tool.Parameters = []assay.Parameter{{Name: "data", Type: "object", Required: true}}
		tool.Returns = []assay.Return{{Name: "data", Type: "object"}}
		tools = append(tools, tool)
	}
	catalog := assay.NewCatalog(tools)
	task := &assay.Task{Required: []string{"b", "a", "e"}} // the plan is a, b, a, e
	plan := workflow.For(catalog, world.Assay1Name, task)
	replaced := 0
	for seed := range uint64(20) {
		got, _ := workflow.Flawed(catalog, plan, task, assay.ToolMisuse, assay.Medium, seed)
		if got.Steps[0].Tool != "a" {
			replaced++
		}
		for i, s := range got.Steps[1:] {
			if want := fmt.Sprintf(`{"data":{"ref":%q}}`, got.Steps[i].Tool); string(s.Arguments) != want {
				t.Errorf("in %v, step %d has arguments %s, want %s",
					stepTools(got.Steps), i+2, s.Arguments, want)
			}
		}
	}
	if replaced == 0 {
		t.Error("no seed replaces the first step")
	}
}

// TestMisfitsAreRefused checks that the world refuses all variants of wrong arguments.
func TestMisfitsAreRefused(t *testing.T) {
	t.Parallel()
	var params []assay.Parameter
	for _, typ := range []string{"string", "number", "integer", "boolean", "array", "file"} {
		params = append(params, assay.Parameter{Name: typ, Type: typ, Required: true})
	}
	params = append(params, assay.Parameter{Name: "settings", Type: "object", Required: true})
	// Without its middle letter, options becomes optons, all becomes al, and inputs.settings
	// becomes inputs.ettings.
	options := []assay.Parameter{
		{Name: "options", Type: "object"}, {Name: "optons", Type: "object"},
	}
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "all", Parameters: params},
		{Name: "sink", Parameters: options},
		{Name: "bare"},
		{Name: "al"},
	})
	task := &assay.Task{
		Required: []string{"al", "all", "sink", "bare"},
		Inputs:   json.RawMessage(`{"settings": {}, "ettings": 1}`),
	}
	plan := workflow.For(catalog, world.Assay1Name, task)
	ways := make(map[string]bool)
	for seed := range uint64(500) {
		got, ok := workflow.Flawed(catalog, plan, task, assay.ParameterError, assay.Severe, seed)
		if !ok {
			t.Fatal("no argument can be wrong")
		}
		w := world.Begin(context.Background(), catalog, perfect(), task)
		for i, s := range got.Steps {
			rec, err := w.Call(i, s.Tool, string(s.Arguments))
			if err != nil {
				t.Fatal(err)
			}
			if wrong := !reflect.DeepEqual(s, plan.Steps[i]); wrong {
				ways[s.Tool+string(s.Arguments)] = true
				if rec.Code != assay1.InvalidInput {
					t.Errorf("%s %s: %q, want %s",
						s.Tool, s.Arguments, rec.Code, assay1.InvalidInput)
				}
			}
		}
	}
	// Each of seven arguments can be left out or misspelt, six can have another type, and one can
	// have a broken reference. Each tool without arguments has one variant.
	if want := 7 + 7 + 6 + 1 + 3; len(ways) != want {
		t.Errorf("got %d variants of wrong arguments, want %d", len(ways), want)
	}
}
