package library_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// pilotFile returns the path of a file of the original benchmark. It skips the test if the file is
// not available.
func pilotFile(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "..", "..", "shared", "data", "pilot", name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the original's %s is not available", name)
	}
	return path
}

// The tools have the original's names, order, errors and dependencies, but their own parameters,
// results, effects and descriptions.
func TestToolsMatchTheOriginal(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(pilotFile(t, "tool_registry.json"))
	if err != nil {
		t.Fatal(err)
	}
	var registry map[string]struct {
		assay.Tool
		Place struct {
			Order int `json:"execution_order"`
		} `json:"dependency_metadata"`
		Metadata struct{ Category, Operation string }
	}
	if err := json.Unmarshal(b, &registry); err != nil {
		t.Fatal(err)
	}
	tools := library.Tools()
	if got, want := len(tools), len(registry); got != want {
		t.Fatalf("got %d tools, want %d", got, want)
	}
	originals := make(map[string]bool)
	for _, tool := range registry {
		for _, d := range descriptions(tool.Tool) {
			originals[normal(d)] = true
		}
	}

	for i, got := range tools {
		r := registry[got.Name]
		want := r.Tool
		want.Category, want.Operation = r.Metadata.Category, r.Metadata.Operation
		if r.Place.Order != i {
			t.Errorf("%s is number %d, want %d", got.Name, i, r.Place.Order)
		}
		if diff := cmp.Diff(mute(want), mute(got)); diff != "" {
			t.Errorf("%s (-original +ours):\n%s", got.Name, diff)
		}
		for _, d := range descriptions(got) {
			for _, s := range strings.Split(d, ". ") {
				if originals[normal(s)] {
					t.Errorf("%s repeats a sentence of the original: %q", got.Name, s)
				}
			}
		}
	}
}

func normal(s string) string { return strings.ToLower(strings.Trim(s, " .")) }

func descriptions(t assay.Tool) []string {
	all := []string{t.Description}
	for _, p := range t.Parameters {
		all = append(all, p.Description)
	}
	for _, r := range t.Returns {
		all = append(all, r.Description)
	}
	for _, e := range t.Errors {
		all = append(all, e.Description)
	}
	return all
}

// mute keeps only the parts of a tool that are the original's.
func mute(t assay.Tool) assay.Tool {
	t.Description, t.Parameters, t.Returns, t.Effect = "", nil, nil, ""
	for i := range t.Errors {
		t.Errors[i].Description = ""
	}
	return t
}

func TestToolDescriptionsAreSentencesWithDistinctVerbs(t *testing.T) {
	t.Parallel()
	seen := make(map[string]string)
	for _, tool := range library.Tools() {
		for _, d := range descriptions(tool) {
			if len(d) < 10 || !strings.HasSuffix(d, ".") {
				t.Errorf("%s: description %q is not a sentence", tool.Name, d)
			}
		}
		verb, _, _ := strings.Cut(tool.Description, " ")
		if other := seen[verb]; other != "" {
			t.Errorf("%s and %s both start with %q", other, tool.Name, verb)
		}
		seen[verb] = tool.Name
	}
}

func TestToolsReturnsFreshCopies(t *testing.T) {
	t.Parallel()
	for _, tool := range library.Tools() {
		clear(tool.Errors)
		clear(tool.Dependencies)
		clear(tool.Returns)
		tool.Parameters[len(tool.Parameters)-1].Default.(map[string]any)["x"] = 1
	}
	for _, tool := range library.Tools() {
		if slices.Contains(descriptions(tool), "") {
			t.Fatalf("%s: a caller removed the descriptions", tool.Name)
		}
		options := tool.Parameters[len(tool.Parameters)-1].Default
		if n := len(options.(map[string]any)); n != 0 {
			t.Fatalf("%s: a caller changed a default", tool.Name)
		}
	}
}

func TestToolsPassTheChecksOfAnImport(t *testing.T) {
	t.Parallel()
	for _, p := range library.CheckTools(library.Tools()) {
		t.Error(p)
	}
}
