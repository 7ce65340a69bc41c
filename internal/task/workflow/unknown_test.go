//go:build !race

package workflow_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// TestUnknownToolsKeepTheirNames checks that tools that a library does not have, whether tasks
// require them or other tools depend on them, are steps like others and can be part of any flaw.
func TestUnknownToolsKeepTheirNames(t *testing.T) {
	t.Parallel()
	object := []assay.Parameter{{Name: "data", Type: "object", Required: true}}
	result := []assay.Return{{Name: "data", Type: "object"}}
	var tools []assay.Tool
	for _, name := range []string{"read", "clean", "write", "send", "store", "check", "sort", "join"} {
		tools = append(tools, assay.Tool{
			Name: name, Description: name + " the records", Parameters: object, Returns: result,
		})
	}
	tools[0].Dependencies = []string{"ghost"}
	catalog := assay.NewCatalog(tools)
	task := &assay.Task{
		ID: "t", Required: []string{"read", "phantom", "clean", "write"},
		Inputs: json.RawMessage(`{"data": {}}`),
	}

	plan := workflow.For(catalog, "assay-1", task)
	want := []string{"ghost", "read", "phantom", "clean", "write"}
	if got := stepTools(plan.Steps); !slices.Equal(got, want) {
		t.Fatalf("the plan has the steps %q, want %q", got, want)
	}
	hit := false
	for _, flaw := range assay.Flaws {
		for _, severity := range assay.Severities {
			for seed := range uint64(20) {
				flawed, ok := workflow.Flawed(catalog, plan, task, flaw, severity, seed)
				if ok && (slices.Contains(stepTools(flawed.Steps), "") ||
					slices.EqualFunc(flawed.Steps, plan.Steps, sameStep)) {
					t.Errorf("%s, %s: steps %q", flaw, severity, stepTools(flawed.Steps))
				}
				hit = hit || ok && flaw == assay.ToolMisuse &&
					!slices.Contains(stepTools(flawed.Steps), "ghost")
			}
		}
	}
	if !hit {
		t.Error("no unknown tool was ever replaced")
	}
}

func sameStep(a, b workflow.Step) bool {
	return a.Tool == b.Tool && string(a.Arguments) == string(b.Arguments)
}
