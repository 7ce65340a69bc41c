//go:build !race

package fresh_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/fresh"
)

func tasksOf(t *testing.T, g *fresh.Grammar, n int) []assay.Task {
	t.Helper()
	tasks, err := g.Tasks(n)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Collect(tasks)
}

// TestSameSeedSameLibrary checks that a seed determines the library, and that another seed shares
// no tool and no description with it.
func TestSameSeedSameLibrary(t *testing.T) {
	t.Parallel()
	a, b, c := fresh.New("1"), fresh.New("1"), fresh.New("2")
	if diff := cmp.Diff(a.Tools(), b.Tools()); diff != "" {
		t.Error(diff)
	}
	ours := tasksOf(t, a, 4)
	if diff := cmp.Diff(ours, tasksOf(t, b, 4)); diff != "" {
		t.Error(diff)
	}
	seen := make(map[string]bool)
	for _, tool := range a.Tools() {
		seen[tool.Description] = true
	}
	for _, task := range ours {
		seen[task.Description] = true
	}
	for _, tool := range c.Tools() {
		if tool.Operation != "open" && seen[tool.Description] {
			t.Errorf("two seeds have a tool %q", tool.Description)
		}
	}
	for _, task := range tasksOf(t, c, 4) {
		if seen[task.Description] {
			t.Errorf("two seeds have a task %q", task.Description)
		}
	}
}

// TestMoreTasksExtendLibrary checks that a larger library begins with the tasks of a smaller one.
func TestMoreTasksExtendLibrary(t *testing.T) {
	t.Parallel()
	few, many := tasksOf(t, fresh.New("5"), 3), tasksOf(t, fresh.New("5"), 12)
	of := make(map[string]assay.Task)
	for _, task := range many {
		of[string(task.ID)+task.Difficulty] = task
	}
	for _, task := range few {
		if diff := cmp.Diff(task, of[string(task.ID)+task.Difficulty]); diff != "" {
			t.Error(diff)
		}
	}
}

// TestInputsFitParameters checks that each task states a value of the right type for every
// parameter of every tool.
func TestInputsFitParameters(t *testing.T) {
	t.Parallel()
	g := fresh.New("3")
	for _, task := range tasksOf(t, g, 2) {
		var inputs map[string]any
		if err := json.Unmarshal(task.Inputs, &inputs); err != nil {
			t.Fatal(err)
		}
		for _, tool := range g.Tools() {
			for _, p := range tool.Parameters {
				types := map[string]string{
					"string": "string", "number": "float64", "object": "map[string]interface {}",
				}
				if got := fmt.Sprintf("%T", inputs[p.Name]); got != types[p.Type] {
					t.Errorf("%s of %s is a %s, not a %s", p.Name, task.ID, got, p.Type)
				}
			}
		}
	}
}

func TestTasksRefusesNumbers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, fresh.MaxTasks + 1} {
		if _, err := fresh.New("1").Tasks(n); err == nil {
			t.Errorf("%d tasks of a type are no error", n)
		}
	}
}

// TestPinnedLibrary holds the libraries of a version. If words or rules change, raise
// [fresh.Version], because a seed and a version name a library.
func TestPinnedLibrary(t *testing.T) {
	t.Parallel()
	g := fresh.New("1")
	b, err := json.Marshal([]any{g.Tools(), tasksOf(t, g, 9)})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("version %s: %x", fresh.Version, sha256.Sum256(b))
	const want = "version 2: cb18759df2983885bb9c853dd1ed051508b96a7838d6a35ac0f8fc36498416bd"
	if got != want {
		t.Errorf("seed 1 gives %s, not %s", got, want)
	}
}

// TestLargestLibrary checks that the grammar never runs out of paths and other records.
func TestLargestLibrary(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: makes 24,975 descriptions")
	}
	if n := len(tasksOf(t, fresh.New("6"), fresh.MaxTasks)); n != 5*5*fresh.MaxTasks {
		t.Errorf("%d descriptions", n)
	}
}

// TestSubstitutesDoTheSame checks that the tasks and all tools of a library stay as they are, in order, that
// each new tool makes the same of the same as the one that it stands for, with the same numbers, needs and
// kind of effect, and that a probability decides how many there are.
func TestSubstitutesDoTheSame(t *testing.T) {
	t.Parallel()
	plain := fresh.New("4")
	operations := 0
	for _, tool := range plain.Tools() {
		if tool.Operation != "open" {
			operations++
		}
	}
	for _, p := range []float64{0, .5, 1} {
		g := fresh.New("4").WithSubstitutes(p)
		if diff := cmp.Diff(tasksOf(t, plain, 2), tasksOf(t, g, 2)); diff != "" {
			t.Fatal(diff)
		}
		catalog, r := assay.NewCatalog(g.Tools()), newReader(t, g.Tools())
		var old []assay.Tool
		n, reworded := 0, 0
		for _, tool := range g.Tools() {
			of, ok := catalog.Tool(tool.StandsFor)
			if tool.StandsFor == "" {
				old = append(old, tool)
				continue
			}
			n++
			if tool.Description != of.Description {
				reworded++
			}
			if !ok || of.StandsFor != "" || !slices.Equal(catalog.Substitutes(of.Name), []string{tool.Name}) ||
				catalog.Work(tool.Name) != of.Name || catalog.Work(of.Name) != of.Name ||
				r.takes[tool.Name] != r.takes[of.Name] || r.makes[tool.Name] != r.makes[of.Name] ||
				!maps.Equal(r.numbers[tool.Name], r.numbers[of.Name]) ||
				!slices.Equal(tool.Dependencies, of.Dependencies) || (tool.Effect == "") != (of.Effect == "") {
				t.Errorf("%+v\nstands for\n%+v", tool, of)
			}
			for _, other := range g.Tools() {
				if slices.Contains(other.Dependencies, of.Name) || slices.Contains(other.Dependencies, tool.Name) {
					t.Errorf("%s needs one of two tools: %s", other.Name, tool.Name)
				}
			}
		}
		if diff := cmp.Diff(plain.Tools(), old); diff != "" {
			t.Error(diff)
		}
		if share := float64(n) / float64(operations); math.Abs(share-p) > .2 || p == 1 && n != operations || n/2 > reworded {
			t.Errorf("%d of %d tools have another one, want %v; %d have words of their own", n, operations, p, reworded)
		}
	}
}
