package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

var models = []string{"a", "Big-7b", "org/big-7b"}

// patterns maps model patterns of parts to the models that they match.
var patterns = map[string][]string{
	"a": {"a"}, "b*": {"Big-7b"}, "BIG-?B": {"Big-7b"}, "org/*": {"org/big-7b"},
	"*/*": {"org/big-7b"},
	"*":   {"a", "Big-7b"}, "[ab]*": {"a", "Big-7b"}, "x*": nil,
}

// drawFactors draws some factors and leaves out others.
func drawFactors(t *rapid.T, file map[string]any) {
	some := func(field string, levels ...any) {
		if rapid.Bool().Draw(t, field+" stated") {
			file[field] = rapid.SliceOfNDistinct(rapid.SampledFrom(levels), 1, 3,
				rapid.ID[any]).Draw(t, field)
		}
	}
	some("variants", "baseline", "cot", "optimal", "operational", "flawed_tool_misuse",
		"flawed_missing_step")
	some("difficulties", "easy", "hard", "medium_biased")
	some("task_types", "simple_task", "basic_task", "data_pipeline")
	some("reliabilities", 1, 0.8, 0.5)
	one := func(field string, values ...any) {
		if rapid.Bool().Draw(t, field+" stated") {
			file[field] = rapid.SampledFrom(values).Draw(t, field)
		}
	}
	one("tasks_per_type", 1, 2, 5, "all")
	one("repeats", 1, 2, 4)
	if strings.Contains(fmt.Sprint(file["variants"]), "f") { // baseline contains no f
		some("severities", "light", "medium", "severe")
	}
}

// drawExperiment draws an experiment with parts, and returns the models that
// each part includes.
func drawExperiment(t *rapid.T, dir string) (e *plan.Experiment, takes [][]string) {
	file := map[string]any{"name": "drawn", "models": models, "tasks_per_type": 3}
	drawFactors(t, file)
	delete(file, "severities") // perhaps no part has a flawed variant
	var parts []map[string]any
	for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
		part := map[string]any{"name": fmt.Sprint("part", i)}
		drawFactors(t, part)
		parts = append(parts, part)
		takes = append(takes, models)
		// The first part includes all models, so every model has a trial.
		if i > 0 && rapid.Bool().Draw(t, "restricted") {
			chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(patterns))),
				1, 2, rapid.ID[string]).Draw(t, "models")
			part["models"] = chosen
			takes[i] = slices.DeleteFunc(slices.Clone(models), func(m string) bool {
				return !slices.ContainsFunc(chosen,
					func(c string) bool { return slices.Contains(patterns[c], m) })
			})
		}
	}
	file["parts"] = parts
	b, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "drawn.yaml")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err = plan.Load(path); err != nil {
		t.Fatal(err)
	}
	return e, takes
}

func mustExpand(t interface {
	Fatal(...any)
	Helper()
}, e *plan.Experiment, refs plan.Refs, applies plan.Applies,
) *plan.Plan {
	t.Helper()
	p, err := e.Expand(context.Background(), refs, applies)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPartsAreAUnion checks that an experiment has exactly the trials that its
// parts would have as separate experiments, each once. A part has the cells
// that it would have if every flaw applied.
func TestPartsAreAUnion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		e, takes := drawExperiment(t, dir)
		p := mustExpand(t, e, refs(6), sometimes)
		for _, model := range models {
			trials := make(map[assay.TrialID]bool)
			cells := make(map[assay.Cell][]string) // parts
			for i, part := range e.Parts {
				if !slices.Contains(takes[i], model) {
					continue
				}
				alone := *e
				alone.Parts, alone.Factors = nil, part.Factors
				for trial := range mustExpand(t, &alone, refs(6), sometimes).Trials(model) {
					trials[trial.ID] = true
				}
				for cell := range mustExpand(t, &alone, refs(6), nil).Cells(model) {
					cells[cell] = append(cells[cell], part.Name)
				}
			}
			compareTrials(t, p, model, trials)
			for cell, want := range cells {
				var got []string
				for _, part := range p.Parts() {
					if part.Has(cell) {
						got = append(got, part.Name)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("parts with cell %+v (-want +got):\n%s", cell, diff)
				}
			}
		}
		for i, part := range p.Parts() {
			if part.Name != e.Parts[i].Name || !slices.Equal(part.Models, takes[i]) {
				t.Fatalf("part %d is %s with models %v, want models %v", i, part.Name, part.Models,
					takes[i])
			}
		}
	})
}

// compareTrials compares a model's trials, and the counts that the plan
// reports, with the expected ones.
func compareTrials(t *rapid.T, p *plan.Plan, model string, want map[assay.TrialID]bool) {
	got := make(map[assay.TrialID]bool)
	counts := make(map[assay.Cell]int)
	for trial := range p.Trials(model) {
		if got[trial.ID] {
			t.Fatalf("trial %+v appears twice", trial)
		}
		got[trial.ID] = true
		counts[trial.Cell]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("trials of %s (-parts +experiment):\n%s", model, diff)
	}
	if p.Planned(model) != len(got) {
		t.Fatalf("%d planned, %d trials", p.Planned(model), len(got))
	}
	if diff := cmp.Diff(counts, maps.Collect(p.Cells(model)), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("cells of %s (-trials +cells):\n%s", model, diff)
	}
}

// TestLimitKeepsFirstTrials checks that a limited plan has the first trials of
// the whole plan, and that its cells and types are balanced.
func TestLimitKeepsFirstTrials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		e, _ := drawExperiment(t, dir)
		whole := mustExpand(t, e, refs(6), sometimes)
		model := rapid.SampledFrom(models).Draw(t, "model")
		n := rapid.IntRange(0, whole.Planned(model)+3).Draw(t, "n")
		limited := whole.Limit(n)
		all := slices.Collect(whole.Trials(model))
		got := slices.Collect(limited.Trials(model))
		if diff := cmp.Diff(all[:min(n, len(all))], got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("limited to %d (-first +limited):\n%s", n, diff)
		}
		want := make(map[assay.TrialID]bool)
		for _, trial := range got {
			want[trial.ID] = true
		}
		compareTrials(t, limited, model, want)
		checkTurns(t, maps.Collect(whole.Cells(model)), maps.Collect(limited.Cells(model)))
		checkTypes(t, maps.Collect(whole.Cells(model)), maps.Collect(limited.Cells(model)))
		less := limited.Limit(n / 2)
		if less.Planned(model) != min(n/2, len(all)) ||
			less.Limit(n).Planned(model) != less.Planned(model) {
			t.Fatalf("%d trials, limited to %d and %d", less.Planned(model), n, n/2)
		}
		odd := func(place int) bool { return place%2 == 1 }
		for i, trial := range slices.Collect(limited.Some(model, odd)) {
			if trial != all[2*i+1] {
				t.Fatalf("Some() yields a different trial at place %d", 2*i+1)
			}
		}
	})
}

// checkTurns fails if one cell is more than one trial ahead of another that has
// trials left.
func checkTurns(t *rapid.T, planned, got map[assay.Cell]int) {
	for a := range planned {
		for b := range planned {
			if got[a] > got[b]+1 && got[b] < planned[b] {
				t.Fatalf("%d of %d trials of %+v, and %d of %d of %+v", got[a], planned[a], a,
					got[b], planned[b], b)
			}
		}
	}
}

// checkTypes fails if a task type is more than one trial ahead of another whose
// cells have the same numbers of trials. Other types can differ by more,
// because cells take turns.
func checkTypes(t *rapid.T, planned, got map[assay.Cell]int) {
	cells := make(map[string][]int)
	trials := make(map[string]int)
	for cell, n := range planned {
		cells[cell.TaskType] = append(cells[cell.TaskType], n)
		trials[cell.TaskType] += got[cell]
	}
	for _, sizes := range cells {
		slices.Sort(sizes)
	}
	for a := range cells {
		for b := range cells {
			if slices.Equal(cells[a], cells[b]) && trials[a] > trials[b]+1 {
				t.Fatalf("%d trials of %s and %d of %s", trials[a], a, trials[b], b)
			}
		}
	}
}

// TestTypesTakeTurns checks that every suite is balanced over types and cells
// after any number of trials, which repeats follow.
func TestTypesTakeTurns(t *testing.T) {
	t.Parallel()
	const model = "sim/listed"
	for _, name := range plan.Suites {
		p := suite(t, name, model)
		types, cells := make(map[string]int), make(map[assay.Cell]int)
		for cell := range p.Cells(model) {
			types[cell.TaskType], cells[cell] = 0, 0
		}
		n := 0
		for trial := range p.Trials(model) {
			n++
			types[trial.TaskType]++
			if trial.Repeat == 1 {
				cells[trial.Cell]++
			}
			if s := spread(types); s > 1 {
				t.Fatalf("%s: types differ by %d after %d trials: %v", name, s, n, types)
			}
			if s := spread(cells); s > 1 {
				t.Fatalf("%s: cells differ by %d after %d trials", name, s, n)
			}
		}
	}
}

func spread[K comparable](counts map[K]int) int {
	n := slices.Collect(maps.Values(counts))
	return slices.Max(n) - slices.Min(n)
}

// TestFewTrialsAreSpread checks that the first trials of the suite flawed cover
// all types and all variants.
func TestFewTrialsAreSpread(t *testing.T) {
	t.Parallel()
	types, variants := make(map[string]int), make(map[string]int)
	for cell, n := range suite(t, "flawed", "m").Limit(20).Cells("m") {
		types[cell.TaskType] += n
		variants[cell.Variant] += n
	}
	if len(types) != 5 || spread(types) != 0 || len(variants) != 8 {
		t.Errorf("20 trials cover types %v and variants %v", types, variants)
	}
}

// TestCellsArePaired checks that all cells of a type get the same tasks in the same order and with
// the same luck, whatever else differs.
func TestCellsArePaired(t *testing.T) {
	t.Parallel()
	p := expand(t, load(t, "models: [a, b]\nvariants: [cot, baseline]\nreliabilities: [0.9, 0.5]\n"+
		"difficulties: [all, hard_biased]\ntasks_per_type: 7\nrepeats: 2\n"), 30)
	got := make(map[assay.Cell][]string)
	first := make(map[string][]string) // by type
	for _, model := range []string{"a", "b"} {
		for trial := range p.Trials(model) {
			got[trial.Cell] = append(got[trial.Cell], fmt.Sprint(trial.Task, trial.Repeat, trial.Seed))
			first[trial.TaskType] = got[trial.Cell]
		}
	}
	if len(got) != 2*2*2*6*5 {
		t.Fatalf("%d cells", len(got))
	}
	for cell, tasks := range got {
		if diff := cmp.Diff(first[cell.TaskType], tasks); diff != "" {
			t.Errorf("%+v has other tasks or seeds:\n%s", cell, diff)
		}
	}
}

func TestPartListsVaryingFactors(t *testing.T) {
	t.Parallel()
	p := expand(t, load(t, `models: [a]
name: whole
variants: [optimal]
task_types: data_pipeline
parts:
  - {name: nothing}
  - {name: everything, variants: [cot, logical], severities: [light, severe], difficulties: all, reliabilities: [1, 0.5], task_types: all}
  - {name: flaws, variants: flawed}
`), 20)
	want := []plan.Part{
		{Name: "nothing", Models: []string{"a"}},
		{
			Name: "everything", Models: []string{"a"},
			Varies: []string{"variant", "severity", "difficulty", "reliability", "task_type"},
		},
		{Name: "flaws", Models: []string{"a"}, Varies: []string{"variant"}},
	}
	if diff := cmp.Diff(want, p.Parts(), cmpopts.IgnoreUnexported(plan.Part{})); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	whole := expand(t, load(t, "models: [a, b]\nname: whole\n"), 20).Parts()
	want = []plan.Part{{
		Name: "whole", Models: []string{"a", "b"}, Varies: []string{"variant", "task_type"},
	}}
	if diff := cmp.Diff(want, whole, cmpopts.IgnoreUnexported(plan.Part{})); diff != "" {
		t.Errorf("an experiment without parts (-want +got):\n%s", diff)
	}
}

// TestPartWithoutModelsNeedsNoTasks checks that the library may lack the tasks of a part that
// includes no model.
func TestPartWithoutModelsNeedsNoTasks(t *testing.T) {
	t.Parallel()
	medium := func(ctx context.Context, taskType, difficulty string) ([]assay.TaskRef, error) {
		if difficulty != "medium" {
			return nil, nil
		}
		return refs(20)(ctx, taskType, difficulty)
	}
	const parts = "parts:\n  - {name: for-all}\n" +
		"  - {name: for-some, models: ['b*'], difficulties: hard}\n"
	p := mustExpand(t, load(t, "models: [a]\n"+parts), medium, nil)
	if p.Planned("a") != 300 || p.Parts()[1].Models != nil {
		t.Errorf("%d trials, parts %+v", p.Planned("a"), p.Parts())
	}
	_, err := load(t, "models: [a, b]\n"+parts).Expand(t.Context(), medium, nil)
	if err == nil ||
		!strings.Contains(err.Error(), "has no tasks of type simple_task and difficulty hard") {
		t.Errorf("error %v", err)
	}
	_, err = load(t,
		"models: [a]\nparts:\n  - name: x\n    tasks_per_type: 21\n").Expand(t.Context(), medium, nil)
	if err == nil ||
		!strings.Contains(err.Error(),
			"e.yaml:4:21: library builtin has 20 tasks of type simple_task and difficulty medium, "+
				"fewer than 21") {
		t.Errorf("error %v", err)
	}
}
