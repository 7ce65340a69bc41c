package plan_test

import (
	"context"
	"fmt"
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

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t testing.TB, text string) *plan.Experiment {
	t.Helper()
	e, err := plan.Load(write(t, "e.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// expand plans over a library with n tasks of each type.
func expand(t testing.TB, e *plan.Experiment, n int) *plan.Plan {
	t.Helper()
	p, err := e.Expand(t.Context(), refs(n), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// refs is a library with n tasks of each type.
func refs(n int) plan.Refs {
	return func(_ context.Context, taskType, difficulty string) ([]assay.TaskRef, error) {
		var out []assay.TaskRef
		for i := range n {
			id := assay.TaskID(fmt.Sprintf("%s-%d", taskType, i))
			out = append(out, assay.TaskRef{ID: id, Digest: difficulty})
		}
		return out, nil
	}
}

// TestOnlyLimitsChangeTrialIDs checks that limits of an episode change the
// trial's identity, because they decide its outcome, and that limits of a run
// do not.
func TestOnlyLimitsChangeTrialIDs(t *testing.T) {
	t.Parallel()
	first := func(text string) assay.Trial {
		for trial := range expand(t, load(t, "models: [a]\n"+text), 20).Trials("a") {
			return trial
		}
		return assay.Trial{}
	}
	plain := first("")
	for text, same := range map[string]bool{
		"budget: {usd: 1, tokens: 5, per_model: {usd: 1}}\n": true,
		"stop: {hopeless: {}, malformed: {}}\n":              true,
		"limits: {tokens: 50000}\n":                          false,
		"limits: {usd: 0.5}\n":                               false,
		"limits: {calls: 9}\n":                               false,
		"limits: {turns: 15, calls: 10}\n":                   true,
	} {
		if got := first(text); (got.ID == plain.ID) != same {
			t.Errorf("%q: trial %s, without it %s, want equal: %v", text, got.ID, plain.ID, same)
		}
	}
	if got := first("limits: {tokens: 50000, usd: 0.5}\n"); got.Tokens != 50000 || got.USD != 0.5 {
		t.Errorf("trial has limits of %d tokens and %v dollars", got.Tokens, got.USD)
	}
}

func TestQuickstartIsAFewHundredTrials(t *testing.T) {
	t.Parallel()
	e := plan.Quickstart()
	p, err := e.Expand(t.Context(), refs(50), nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := p.Planned(e.Models[0]) * len(e.Models); n < 300 || n > 900 {
		t.Errorf("quickstart has %d trials, want a few hundred", n)
	}
	if len(e.Models) < 3 || len(e.Variants) < 3 || len(e.Reliabilities) < 2 {
		t.Errorf("%d models × %d variants × %d reliabilities, want at least 3 × 3 × 2",
			len(e.Models), len(e.Variants), len(e.Reliabilities))
	}
}

// TestIdentityIsContent checks invariant 2: neither the order of lines in a
// file nor its other models change a trial.
func TestIdentityIsContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		models := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "models")
		models = models[:rapid.IntRange(1, 3).Draw(t, "n")]
		variants := rapid.Permutation([]string{"baseline", "cot", "optimal"}).Draw(t, "variants")
		rates := rapid.Permutation([]string{"0.9", "0.80", "7e-1"}).Draw(t, "reliabilities")
		lines := rapid.Permutation([]string{
			"models: [" + strings.Join(models, ", ") + "]", "variants: [" + strings.Join(variants,
				", ") + "]",
			"reliabilities: [" + strings.Join(rates, ", ") + "]", "tasks_per_type: 3", "repeats: 2",
		}).Draw(t, "lines")
		path := filepath.Join(dir, "e.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		got := ids(t, path, models[0])
		want := reference(t, dir, models[0])
		if diff := cmp.Diff(want, got,
			cmpopts.SortSlices(func(a, b assay.TrialID) bool { return a < b })); diff != "" {
			t.Fatalf("trials changed:\n%s", diff)
		}
	})
}

func reference(t *rapid.T, dir, model string) []assay.TrialID {
	path := filepath.Join(dir, "r.yaml")
	text := "models: [" + model +
		"]\nvariants: [baseline, cot, optimal]\nreliabilities: [0.9, 0.8, 0.7]\n" +
		"tasks_per_type: 3\nrepeats: 2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return ids(t, path, model)
}

func ids(t *rapid.T, path, model string) []assay.TrialID {
	e, err := plan.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Expand(t.Context(), refs(10), nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []assay.TrialID
	seen := make(map[assay.TrialID]bool)
	for trial := range p.Trials(model) {
		if seen[trial.ID] {
			t.Fatalf("trial %s appears twice", trial.ID)
		}
		seen[trial.ID] = true
		out = append(out, trial.ID)
	}
	if len(out) != p.Planned(model) {
		t.Fatalf("%d trials, planned %d", len(out), p.Planned(model))
	}
	return out
}

// TestOrderOfARound checks that every round visits all cells. Task types take turns, the types with
// the most expected work first. Each type starts one place further in the list of its cells, which
// starts with the least reliable ones.
func TestOrderOfARound(t *testing.T) {
	t.Parallel()
	e := load(t,
		"models: [a]\nvariants: [cot, baseline]\ndifficulties: [hard, easy]\n"+
			"reliabilities: [0.9, 0.5]\ntasks_per_type: 3\nrepeats: 2\n")
	var got, want []string
	p := expand(t, e, 3)
	for trial := range p.Trials("a") {
		got = append(got,
			fmt.Sprint(trial.TaskType, trial.Reliability, trial.Difficulty, trial.Variant))
	}
	list := []string{
		"0.5hardcot", "0.5hardbaseline", "0.5easycot", "0.5easybaseline",
		"0.9hardcot", "0.9hardbaseline", "0.9easycot", "0.9easybaseline",
	}
	for i := range list {
		for turn, taskType := range []string{
			"multi_stage_pipeline", "data_pipeline",
			"api_integration", "basic_task", "simple_task",
		} {
			want = append(want, taskType+list[(i+turn)%len(list)])
		}
	}
	if diff := cmp.Diff(slices.Repeat(want, 6), got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestTypeWithFewerCellsIsSkipped checks that a type is skipped for the rest of
// a round after all its cells had their turn.
func TestTypeWithFewerCellsIsSkipped(t *testing.T) {
	t.Parallel()
	p := expand(t, load(t, `models: [a]
task_types: [simple_task, data_pipeline]
tasks_per_type: 1
parts:
  - {name: both, variants: [cot]}
  - {name: one, variants: [optimal, baseline], task_types: simple_task}
  - {name: more, variants: [baseline], task_types: simple_task, tasks_per_type: 2}
`), 2)
	var got []string
	for trial := range p.Trials("a") {
		got = append(got, trial.TaskType+" "+trial.Variant)
	}
	want := []string{
		"data_pipeline cot", "simple_task optimal", "simple_task baseline",
		"simple_task cot", "simple_task baseline",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestUnknownTypeIsInTheMiddle plans a stored experiment of a newer program
// that knows more task types.
func TestUnknownTypeIsInTheMiddle(t *testing.T) {
	t.Parallel()
	e := load(t, "models: [a]\nvariants: [cot]\ntasks_per_type: 1\n")
	e.TaskTypes = plan.Names{"simple_task", "new_task", "data_pipeline"}
	var got []string
	for trial := range expand(t, e, 1).Trials("a") {
		got = append(got, trial.TaskType)
	}
	if diff := cmp.Diff([]string{"data_pipeline", "new_task", "simple_task"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestTooFewTasks(t *testing.T) {
	t.Parallel()
	e, err := plan.Load(write(t, "e.yaml", "models: [a]\ntasks_per_type: 40\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Expand(t.Context(), refs(39), nil)
	if err == nil ||
		!strings.Contains(err.Error(),
			"e.yaml:2:17: library builtin has 39 tasks of type simple_task") {
		t.Errorf("error %v", err)
	}
}
