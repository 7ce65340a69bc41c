package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
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
	"github.com/assay-eval/assay/internal/run/plan"
)

var models = []string{"a", "Big-7b", "org/big-7b"}

// patterns are what a part can say of models, with those of models that it is
// for.
var patterns = map[string][]string{
	"a": {"a"}, "b*": {"Big-7b"}, "BIG-?B": {"Big-7b"}, "org/*": {"org/big-7b"}, "*/*": {"org/big-7b"},
	"*": {"a", "Big-7b"}, "[ab]*": {"a", "Big-7b"}, "x*": nil,
}

// drawFactors draws what a file says of factors, some of which it leaves out.
func drawFactors(t *rapid.T, file map[string]any) {
	some := func(field string, levels ...any) {
		if rapid.Bool().Draw(t, field+" stated") {
			file[field] = rapid.SliceOfNDistinct(rapid.SampledFrom(levels), 1, 3, rapid.ID[any]).Draw(t, field)
		}
	}
	some("variants", "baseline", "cot", "optimal", "operational", "flawed_tool_misuse", "flawed_missing_step")
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
	if strings.Contains(fmt.Sprint(file["variants"]), "f") { // baseline has none
		some("severities", "light", "medium", "severe")
	}
}

// drawExperiment draws an experiment with parts, and says for which models each
// of them is.
func drawExperiment(t *rapid.T, dir string) (e *plan.Experiment, takes [][]string) {
	file := map[string]any{"name": "drawn", "models": models, "tasks_per_type": 3}
	drawFactors(t, file)
	delete(file, "severities") // the parts can have no use for them
	var parts []map[string]any
	for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
		part := map[string]any{"name": fmt.Sprint("part", i)}
		drawFactors(t, part)
		parts = append(parts, part)
		takes = append(takes, models)
		if i > 0 && rapid.Bool().Draw(t, "restricted") { // the first is for all, or a model might have none
			chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(patterns))), 1, 2, rapid.ID[string]).Draw(t, "models")
			part["models"] = chosen
			takes[i] = slices.DeleteFunc(slices.Clone(models), func(m string) bool {
				return !slices.ContainsFunc(chosen, func(c string) bool { return slices.Contains(patterns[c], m) })
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

// sometimes is a flaw that applies to two tasks in three, and one that applies
// to no simple task.
func sometimes(_ context.Context, task assay.TaskRef, _, variant string) (bool, error) {
	if variant == "flawed_missing_step" && strings.HasPrefix(string(task.ID), "simple_task") {
		return false, nil
	}
	h := fnv.New32a()
	h.Write([]byte(string(task.ID) + variant))
	return h.Sum32()%3 > 0, nil
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

// TestPartsAreAUnion: an experiment has the trials that its parts have as
// experiments of their own, each once, and a part has the cells that it would
// have if every flaw applied.
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
					t.Fatalf("parts that have %+v:\n%s", cell, diff)
				}
			}
		}
		for i, part := range p.Parts() {
			if part.Name != e.Parts[i].Name || !slices.Equal(part.Models, takes[i]) {
				t.Fatalf("part %d is %s for %v, want it for %v", i, part.Name, part.Models, takes[i])
			}
		}
	})
}

// compareTrials compares a model's trials, and what the plan says of them, with
// those that it should have.
func compareTrials(t *rapid.T, p *plan.Plan, model string, want map[assay.TrialID]bool) {
	got := make(map[assay.TrialID]bool)
	counts := make(map[assay.Cell]int)
	for trial := range p.Trials(model) {
		if got[trial.ID] {
			t.Fatalf("trial %+v twice", trial)
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

// TestLimit: a limit gives the first trials, in which cells have taken turns.
func TestLimit(t *testing.T) {
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
		if less := limited.Limit(n / 2); less.Planned(model) != min(n/2, len(all)) || less.Limit(n).Planned(model) != less.Planned(model) {
			t.Fatalf("%d trials, limited to %d and %d", less.Planned(model), n, n/2)
		}
		odd := func(place int) bool { return place%2 == 1 }
		for i, trial := range slices.Collect(limited.Some(model, odd)) {
			if trial != all[2*i+1] {
				t.Fatalf("another trial at place %d", 2*i+1)
			}
		}
	})
}

// checkTurns: of two cells, one is more than one trial ahead only where the
// other has all of its own.
func checkTurns(t *rapid.T, planned, got map[assay.Cell]int) {
	for a := range planned {
		for b := range planned {
			if got[a] > got[b]+1 && got[b] < planned[b] {
				t.Fatalf("%d of %d trials of %+v, and %d of %d of %+v", got[a], planned[a], a, got[b], planned[b], b)
			}
		}
	}
}

// checkTypes: of two types whose cells have the same numbers of trials, none is
// more than one trial ahead. Of others a type can be, as cells take turns.
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

// TestTypesTakeTurns: every suite is balanced over types and cells, after
// however many trials.
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
			cells[trial.Cell]++
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

// TestFewTrialsAreSpread: the first trials of the suite flawed are of all types
// and all variants.
func TestFewTrialsAreSpread(t *testing.T) {
	t.Parallel()
	types, variants := make(map[string]int), make(map[string]int)
	for cell, n := range suite(t, "flawed", "m").Limit(20).Cells("m") {
		types[cell.TaskType] += n
		variants[cell.Variant] += n
	}
	if len(types) != 5 || spread(types) != 0 || len(variants) != 7 {
		t.Errorf("20 trials are %v of %v", types, variants)
	}
}

// TestTurnsOfUnlikeCells: cells of as many trials stay abreast, though one has
// more tasks and the other more repeats.
func TestTurnsOfUnlikeCells(t *testing.T) {
	t.Parallel()
	p := expand(t, load(t, `models: [a]
task_types: data_pipeline
parts:
  - {name: wide, variants: [cot], tasks_per_type: 6}
  - {name: deep, variants: [optimal], tasks_per_type: 2, repeats: 3}
`), 6)
	var got []string
	for trial := range p.Trials("a") {
		got = append(got, trial.Variant)
	}
	if diff := cmp.Diff(slices.Repeat([]string{"cot", "optimal"}, 6), got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestOverlap is a cell of which one part wants more tasks and another more
// repeats.
func TestOverlap(t *testing.T) {
	t.Parallel()
	p := expand(t, load(t, `models: [a]
task_types: data_pipeline
variants: [cot]
parts:
  - {name: wide, tasks_per_type: 4}
  - {name: deep, tasks_per_type: 2, repeats: 3}
  - {name: between, tasks_per_type: 3, repeats: 2}
  - {name: within, tasks_per_type: 1, repeats: 2}
`), 6)
	var got [4]int
	for trial := range p.Trials("a") {
		got[trial.Repeat]++
	}
	if want := [4]int{0, 4, 3, 2}; got != want || p.Planned("a") != 9 {
		t.Errorf("tasks by repeat %v of %d trials, want %v", got, p.Planned("a"), want)
	}
}

// TestSeverities: a flawed variant is a cell for each severity, and no other
// variant has one.
func TestSeverities(t *testing.T) {
	t.Parallel()
	for severities, want := range map[string][]string{
		"":                           {" optimal", "severe flawed_missing_step"},
		"severities: all":            {" optimal", "light flawed_missing_step", "medium flawed_missing_step", "severe flawed_missing_step"},
		"severities: [severe,light]": {" optimal", "severe flawed_missing_step", "light flawed_missing_step"},
	} {
		p := expand(t, load(t, "models: [a]\ntask_types: basic_task\nvariants: [optimal, flawed_missing_step]\n"+severities), 20)
		var got []string
		for cell, n := range p.Cells("a") {
			got = append(got, cell.Severity+" "+cell.Variant)
			if n != 20 {
				t.Errorf("%d trials of %+v", n, cell)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: cells (-want +got):\n%s", severities, diff)
		}
	}
}

// TestNotApplicable: tasks to which a flaw does not apply are left out of its
// cells and of no other, and counted.
func TestNotApplicable(t *testing.T) {
	t.Parallel()
	e := load(t, "models: [a, b]\ntask_types: [basic_task, simple_task]\ndifficulties: [easy, hard]\nvariants: [optimal, operational]\nseverities: [light, severe]\ntasks_per_type: 12\n")
	type question struct {
		task                assay.TaskID
		difficulty, variant string
	}
	var asked []question
	p := mustExpand(t, e, refs(30), func(ctx context.Context, task assay.TaskRef, difficulty, variant string) (bool, error) {
		asked = append(asked, question{task.ID, difficulty, variant})
		return sometimes(ctx, task, difficulty, variant)
	})
	tasks := make(map[assay.Cell][]assay.TaskID)
	for trial := range p.Trials("b") {
		tasks[trial.Cell] = append(tasks[trial.Cell], trial.Task)
	}
	left := make(map[plan.NotApplicable]int)
	for _, taskType := range e.TaskTypes {
		for _, variant := range e.Variants[1:] {
			for _, difficulty := range e.Difficulties {
				paired := tasks[assay.Cell{Model: "b", Variant: "optimal", Difficulty: difficulty, TaskType: taskType, Reliability: 0.8}]
				if len(paired) != 12 {
					t.Fatalf("%d tasks of %s", len(paired), taskType)
				}
				want := slices.DeleteFunc(slices.Clone(paired), func(id assay.TaskID) bool {
					ok, _ := sometimes(t.Context(), assay.TaskRef{ID: id}, difficulty, variant)
					return !ok
				})
				left[plan.NotApplicable{Variant: variant, TaskType: taskType}] += 12 - len(want)
				for _, severity := range e.Severities {
					cell := assay.Cell{Model: "b", Variant: variant, Severity: severity, Difficulty: difficulty, TaskType: taskType, Reliability: 0.8}
					if diff := cmp.Diff(want, tasks[cell], cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("tasks of %+v:\n%s", cell, diff)
					}
				}
			}
		}
	}
	for cell := range p.Cells("b") {
		if cell.Variant == "flawed_missing_step" && cell.TaskType == "simple_task" {
			t.Errorf("there is a cell of no task, %+v", cell)
		}
	}
	var want []plan.NotApplicable
	for _, variant := range e.Variants[1:] {
		for _, taskType := range []string{"simple_task", "basic_task"} {
			n := plan.NotApplicable{Variant: variant, TaskType: taskType}
			want = append(want, plan.NotApplicable{Variant: variant, TaskType: taskType, Tasks: left[n], Of: 24})
		}
	}
	if diff := cmp.Diff(want, p.NotApplicable()); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if len(asked) != 2*2*12*2 {
		t.Errorf("asked %d times, want once for each type, difficulty, task and flawed variant", len(asked))
	}
	for i := 0; i+1 < len(asked); i += 2 {
		if a, b := asked[i], asked[i+1]; a.task != b.task || a.difficulty != b.difficulty || a.variant == b.variant {
			t.Fatalf("asked of %v and then of %v, want both variants of a task in a row", a, b)
		}
	}
}

func TestNotApplicableIsNothingWithoutAFlaw(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	never := func(context.Context, assay.TaskRef, string, string) (bool, error) { return false, broken }
	if p := mustExpand(t, load(t, "models: [a]\n"), refs(20), never); p.Planned("a") != 300 || p.NotApplicable() != nil {
		t.Errorf("%d trials, left out %v", p.Planned("a"), p.NotApplicable())
	}
	if _, err := load(t, "models: [a]\nvariants: [flawed]\n").Expand(t.Context(), refs(20), never); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of applies", err)
	}
}

// TestDifficultiesArePaired: all wordings meet the same tasks of a type in the
// same order, and with the same luck.
func TestDifficultiesArePaired(t *testing.T) {
	t.Parallel()
	p := expand(t, load(t, "models: [a]\nvariants: [cot]\ndifficulties: [all, hard_biased]\ntasks_per_type: 7\n"), 30)
	got := make(map[string]map[string][]string) // by difficulty and type
	for trial := range p.Trials("a") {
		if got[trial.Difficulty] == nil {
			got[trial.Difficulty] = make(map[string][]string)
		}
		tasks := got[trial.Difficulty]
		tasks[trial.TaskType] = append(tasks[trial.TaskType], fmt.Sprint(trial.Task, trial.Seed))
	}
	if len(got) != 6 {
		t.Fatalf("%d difficulties", len(got))
	}
	for difficulty, tasks := range got {
		if diff := cmp.Diff(got["easy"], tasks); diff != "" {
			t.Errorf("%s meets other tasks or luck than easy:\n%s", difficulty, diff)
		}
	}
}

func TestWhatVaries(t *testing.T) {
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
		{Name: "everything", Models: []string{"a"}, Varies: []string{"variant", "severity", "difficulty", "reliability", "task_type"}},
		{Name: "flaws", Models: []string{"a"}, Varies: []string{"variant"}},
	}
	if diff := cmp.Diff(want, p.Parts(), cmpopts.IgnoreUnexported(plan.Part{})); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	whole := expand(t, load(t, "models: [a, b]\nname: whole\n"), 20).Parts()
	if diff := cmp.Diff([]plan.Part{{Name: "whole", Models: []string{"a", "b"}, Varies: []string{"variant", "task_type"}}}, whole, cmpopts.IgnoreUnexported(plan.Part{})); diff != "" {
		t.Errorf("an experiment without parts (-want +got):\n%s", diff)
	}
}

// TestAnEmptyPartNeedsNoTask: what no model is asked, the library need not
// have.
func TestAnEmptyPartNeedsNoTask(t *testing.T) {
	t.Parallel()
	easy := func(ctx context.Context, taskType, difficulty string) ([]assay.TaskRef, error) {
		if difficulty != "easy" {
			return nil, nil
		}
		return refs(20)(ctx, taskType, difficulty)
	}
	const parts = "parts:\n  - {name: for-all}\n  - {name: for-some, models: ['b*'], difficulties: hard}\n"
	if p := mustExpand(t, load(t, "models: [a]\n"+parts), easy, nil); p.Planned("a") != 300 || p.Parts()[1].Models != nil {
		t.Errorf("%d trials, parts %+v", p.Planned("a"), p.Parts())
	}
	_, err := load(t, "models: [a, b]\n"+parts).Expand(t.Context(), easy, nil)
	if err == nil || !strings.Contains(err.Error(), "has no task of type simple_task and difficulty hard") {
		t.Errorf("error %v", err)
	}
	_, err = load(t, "models: [a]\nparts:\n  - name: x\n    tasks_per_type: 21\n").Expand(t.Context(), easy, nil)
	if err == nil || !strings.Contains(err.Error(), "e.yaml:4:21: library builtin has 20 tasks of type simple_task and difficulty easy, fewer than 21") {
		t.Errorf("error %v", err)
	}
}
