package workflow_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

// pilotData reads the 2025 original's tools and its 630 tasks.
func pilotData(t testing.TB) (*assay.Catalog, []assay.Task) {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "data", "pilot")
	read := func(name string, into any) {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Skipf("cannot read the original's data: %v", err)
		}
		if err := json.Unmarshal(b, into); err != nil {
			t.Fatal(err)
		}
	}
	var registry map[string]struct {
		assay.Tool
		Metadata struct{ Category string }
		Order    struct {
			N int `json:"execution_order"`
		} `json:"dependency_metadata"`
	}
	read("tool_registry.json", &registry)
	tools := make([]assay.Tool, len(registry))
	for _, tool := range registry {
		tool.Category = tool.Metadata.Category
		tools[tool.Order.N] = tool.Tool
	}
	var library struct {
		Tasks []struct {
			assay.Task
			ID   assay.TaskID `json:"instance_id"`
			Type string       `json:"task_type"`
		}
	}
	read("task_library_630.json", &library)
	if len(library.Tasks) != 630 {
		t.Fatalf("the original has %d tasks, want 630", len(library.Tasks))
	}
	var tasks []assay.Task
	for _, task := range library.Tasks {
		task.Task.ID, task.Task.Type = task.ID, task.Type
		tasks = append(tasks, task.Task)
	}
	return assay.NewCatalog(tools), tasks
}

// chain returns a catalog in which b needs a and c needs b. d and e need no tools.
func chain() *assay.Catalog {
	return assay.NewCatalog([]assay.Tool{
		{Name: "a"},
		{Name: "b", Dependencies: []string{"a"}},
		{Name: "c", Dependencies: []string{"b"}},
		{Name: "d"},
		{Name: "e"},
	})
}

// anyCatalog draws a catalog of one or more tools that depend on earlier ones. Their names are
// letters.
func anyCatalog(t *rapid.T, most int) *assay.Catalog {
	tools := make([]assay.Tool, rapid.IntRange(1, most).Draw(t, "tools"))
	for i := range tools {
		tools[i].Name = string(rune('a' + i))
		for j := range i {
			if rapid.IntRange(0, 2).Draw(t, "needs") == 0 {
				tools[i].Dependencies = append(tools[i].Dependencies, tools[j].Name)
			}
		}
	}
	return assay.NewCatalog(rapid.Permutation(tools).Draw(t, "order"))
}

// anyRequired draws a task's required tools without repeats.
func anyRequired(t *rapid.T, catalog *assay.Catalog, most int) []string {
	names := rapid.Permutation(catalog.Names()).Draw(t, "names")
	return names[:rapid.IntRange(1, min(most, len(names))).Draw(t, "required")]
}
