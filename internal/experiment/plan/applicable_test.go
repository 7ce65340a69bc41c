package plan_test

import (
	"context"
	"errors"
	"hash/fnv"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// sometimes applies a flaw to two tasks in three at each severity, except that
// flawed_missing_step never applies to simple tasks.
func sometimes(
	_ context.Context, task assay.TaskRef, _, variant, severity string,
) (bool, error) {
	if variant == "flawed_missing_step" && strings.HasPrefix(string(task.ID), "simple_task") {
		return false, nil
	}
	h := fnv.New32a()
	h.Write([]byte(string(task.ID) + variant + severity))
	return h.Sum32()%3 > 0, nil
}

// TestSeverities checks that a flawed variant has a cell for each severity, and
// other variants have no severity.
func TestSeverities(t *testing.T) {
	t.Parallel()
	for severities, want := range map[string][]string{
		"": {" optimal", "severe flawed_missing_step"},
		"severities: all": {
			" optimal", "light flawed_missing_step",
			"medium flawed_missing_step", "severe flawed_missing_step",
		},
		"severities: [severe,light]": {
			" optimal", "severe flawed_missing_step",
			"light flawed_missing_step",
		},
	} {
		p := expand(t,
			load(t,
				"models: [a]\ntask_types: basic_task\n"+
					"variants: [optimal, flawed_missing_step]\n"+severities), 20)
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

// TestAuthorities checks that the authorities of plans are combined with the variants that show one and
// do not name theirs, and that cells of a task have the same luck.
func TestAuthorities(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string][]string{
		"variants: [baseline, optimal]\nplan_authority: all": {
			"baseline", "optimal", "optimal:follow", "optimal:may_be_wrong",
		},
		"variants: [optimal, 'flawed_missing_step:follow']\nplan_authority: may_be_wrong": {
			"optimal:may_be_wrong", "flawed_missing_step:follow",
		},
		"variants: [cot, 'optimal:follow']": {"cot", "optimal:follow"},
	} {
		p := expand(t, load(t, "models: [a]\ntask_types: basic_task\n"+lines), 20)
		var got []string
		for cell := range p.Cells("a") {
			got = append(got, cell.Variant)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: variants (-want +got):\n%s", lines, diff)
		}
		seeds := make(map[assay.TaskID]map[uint64]bool)
		for trial := range p.Trials("a") {
			if seeds[trial.Task] == nil {
				seeds[trial.Task] = make(map[uint64]bool)
			}
			seeds[trial.Task][trial.Seed] = true
			if len(seeds[trial.Task]) > 1 {
				t.Errorf("%q: task %s has several seeds", lines, trial.Task)
			}
		}
	}
}

// TestNotApplicable checks that tasks to which a flaw does not apply are
// counted and left out of its cells, but not of others.
func TestNotApplicable(t *testing.T) {
	t.Parallel()
	e := load(t,
		"models: [a, b]\ntask_types: [basic_task, simple_task]\ndifficulties: [easy, hard]\n"+
			"variants: [optimal, operational]\nseverities: [light, severe]\ntasks_per_type: 12\n")
	type question struct {
		task                          assay.TaskID
		difficulty, variant, severity string
	}
	var asked []question
	p := mustExpand(t, e, refs(30),
		func(
			ctx context.Context, task assay.TaskRef, difficulty, variant, severity string,
		) (bool, error) {
			asked = append(asked, question{task.ID, difficulty, variant, severity})
			return sometimes(ctx, task, difficulty, variant, severity)
		})
	tasks := make(map[assay.Cell][]assay.TaskID)
	for trial := range p.Trials("b") {
		tasks[trial.Cell] = append(tasks[trial.Cell], trial.Task)
	}
	left := make(map[plan.NotApplicable]int)
	key := func(variant, severity, taskType string) plan.NotApplicable {
		return plan.NotApplicable{Variant: variant, Severity: severity, TaskType: taskType}
	}
	for _, taskType := range e.TaskTypes {
		for _, variant := range e.Variants[1:] {
			for _, difficulty := range e.Difficulties {
				paired := tasks[assay.Cell{
					Model: "b", Variant: "optimal", Difficulty: difficulty,
					TaskType: taskType, Reliability: 0.8,
				}]
				if len(paired) != 12 {
					t.Fatalf("%d tasks of %s", len(paired), taskType)
				}
				for _, severity := range e.Severities {
					want := slices.DeleteFunc(slices.Clone(paired), func(id assay.TaskID) bool {
						ref := assay.TaskRef{ID: id}
						ok, _ := sometimes(t.Context(), ref, difficulty, variant, severity)
						return !ok
					})
					left[key(variant, severity, taskType)] += 12 - len(want)
					cell := assay.Cell{
						Model: "b", Variant: variant, Severity: severity,
						Difficulty: difficulty, TaskType: taskType, Reliability: 0.8,
					}
					if diff := cmp.Diff(want, tasks[cell], cmpopts.EquateEmpty()); diff != "" {
						t.Errorf("tasks of %+v:\n%s", cell, diff)
					}
				}
			}
		}
	}
	for cell := range p.Cells("b") {
		if cell.Variant == "flawed_missing_step" && cell.TaskType == "simple_task" {
			t.Errorf("cell without tasks: %+v", cell)
		}
	}
	var want []plan.NotApplicable
	for _, variant := range e.Variants[1:] {
		for _, severity := range e.Severities {
			for _, taskType := range []string{"simple_task", "basic_task"} {
				n := key(variant, severity, taskType)
				n.Tasks, n.Of = left[n], 24
				want = append(want, n)
			}
		}
	}
	if diff := cmp.Diff(want, p.NotApplicable()); diff != "" {
		t.Errorf("left out (-want +got):\n%s", diff)
	}
	if len(asked) != 2*2*12*2*2 {
		t.Errorf("asked %d times, want once for each type, difficulty, task, flawed variant and "+
			"severity", len(asked))
	}
	for i := 0; i+3 < len(asked); i += 4 {
		for _, b := range asked[i+1 : i+4] {
			if a := asked[i]; a.task != b.task || a.difficulty != b.difficulty || a == b {
				t.Fatalf("asked of %v and then of %v, want all flaws of a task in a row", a, b)
			}
		}
	}
}

func TestAppliesIsOnlyCalledForFlawedVariants(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	never := func(context.Context, assay.TaskRef, string, string, string) (bool, error) {
		return false, broken
	}
	p := mustExpand(t, load(t, "models: [a]\n"), refs(20), never)
	if p.Planned("a") != 300 || p.NotApplicable() != nil {
		t.Errorf("%d trials, left out %v", p.Planned("a"), p.NotApplicable())
	}
	if _, err := load(t, "models: [a]\nvariants: [flawed]\n").Expand(t.Context(), refs(20),
		never); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of applies", err)
	}
}
