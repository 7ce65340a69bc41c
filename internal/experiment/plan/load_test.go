package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

// TestLoadErrors checks the errors of broken files. Each of them stands before its error in
// testdata, after an empty line. The flag -update writes the errors.
func TestLoadErrors(t *testing.T) {
	t.Parallel()
	const name = "errors.txt"
	var got strings.Builder
	for section := range strings.SplitSeq(string(golden.Get(t, name)), "\n\n") {
		text, _, found := strings.Cut(section, "=> ")
		if !found {
			continue
		}
		path := write(t, "e.yaml", text)
		_, err := plan.Load(path)
		if err == nil {
			t.Fatalf("Load() accepts\n%s", text)
		}
		said := assay.Words(nil).Of(err)
		fmt.Fprintf(&got, "%s=> %s\n\n", text, strings.ReplaceAll(said, path, "e.yaml"))
	}
	golden.Assert(t, got.String(), name)
}

// TestNothingIsListedTwice holds for every list of conditions.
func TestNothingIsListedTwice(t *testing.T) {
	t.Parallel()
	for field, name := range map[string]string{
		"models": "sim/optimal", "variants": "optimal", "plan_authority": "follow", "severities": "light", "difficulties": "easy",
		"task_types": "basic_task", "reliabilities": "0.5", "phrasings": "plain", "interfaces": "plain",
	} {
		text := fmt.Sprintf("%s: [%s, %[2]s]\n", field, name)
		for other, value := range map[string]string{"models": "sim/optimal", "variants": "flawed"} {
			if other != field {
				text += fmt.Sprintf("%s: [%s]\n", other, value)
			}
		}
		_, err := plan.Load(write(t, "e.yaml", text))
		if err == nil || !strings.Contains(err.Error(), name+" is listed twice") || !strings.Contains(err.Error(), "e.yaml:1:") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLoadDefaults(t *testing.T) {
	t.Parallel()
	e, err := plan.Load(write(t, "first-try.yaml", "models: [sim/listed]\nseed:\nrepeats:\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &plan.Experiment{
		Name: "first-try", Seed: 2025, World: "assay-1", Library: "builtin",
		Models: []string{"sim/listed"},
		Factors: plan.Factors{
			Variants: []string{
				"baseline", "cot",
				"optimal",
			}, Difficulties: plan.Names{"medium"}, TaskTypes: assay.TaskTypes,
			Reliabilities: []float64{0.8}, TasksPerType: 20, Repeats: 1,
		},
		Protocol: "native", Tools: "discover", SeveralCalls: "execute",
		Limits: plan.Limits{
			Turns: 15, Calls: 10, Request: plan.DefaultRequest, Trial: plan.DefaultTrial,
		},
	}
	if diff := cmp.Diff(want, e, cmpopts.IgnoreUnexported(plan.Experiment{})); diff != "" {
		t.Errorf("experiment (-want +got):\n%s", diff)
	}
}

// fullText sets every optional field of an experiment file.
const fullText = `models: [a]
variants: [baseline, logical]
severities: all
parts:
  - {name: one, models: ["?"], severities: [light], repeats: 2}
  - {name: two, variants: [cot], difficulties: all, tasks_per_type: 3}
several_calls: refuse
failures: {persistence: 0.3, burst: 0.2}
loops: {repeat: {after: 4}, search: off, error: {then: stop}}
tasks_per_type: all
sampling: {temperature: 0}
limits: {turns: 30, calls: 20, trial: 90s, tokens: 50000, usd: 0.5}
budget:
  {usd: 50, tokens: 20000000, per_model: {usd: 10, tokens: 5000000}, per_cell: {tokens: 200000}}
stop:
  hopeless: {after: 30, below: 0.1}
  malformed:
`

// TestExperimentRoundTripsAsJSON checks that an experiment read back from the
// store is the same and has the same trials.
func TestExperimentRoundTripsAsJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{fullText, "models: [a]\n", "models: [a, b@low]\n"} {
		e := load(t, text)
		b, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back plan.Experiment
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(e, &back, cmpopts.IgnoreUnexported(plan.Experiment{})); diff != "" {
			t.Errorf("after a round trip (-want +got):\n%s", diff)
		}
		want, got := slices.Collect(expand(t, e, 25).Trials("a")), slices.Collect(expand(t, &back,
			25).Trials("a"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("trials after a round trip (-want +got):\n%s", diff)
		}
	}
}

// TestErrorsWithoutAFile checks the errors of an experiment from the store. It
// has no file to point into, and its library may have lost tasks since.
func TestErrorsWithoutAFile(t *testing.T) {
	t.Parallel()
	e := plan.Experiment{Name: "stored", Library: "l", Factors: plan.Factors{
		TasksPerType: 40, Difficulties: plan.Names{"medium"}, TaskTypes: plan.Names{"basic_task"},
	}}
	_, err := e.Expand(t.Context(), refs(3), nil)
	want := "experiment stored: library l has 3 tasks of type basic_task"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want it to begin with %q", err, want)
	}
	if got, want := e.ModelError("a", "is not served",
		"").Error(), "experiment stored: is not served"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

// TestUnsetFieldsAreNotStored checks that the store has a newer field only if
// the file sets it, so that older programs can read the rest.
func TestUnsetFieldsAreNotStored(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(load(t, "models: [a]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"tokens", "usd", "budget", "stop", "severities", "parts",
		"failures", "loops",
	} {
		if strings.Contains(string(b), `"`+name+`"`) {
			t.Errorf("%s is stored: %s", name, b)
		}
	}
}

func TestSpendingIsRead(t *testing.T) {
	t.Parallel()
	e := load(t, fullText)
	type spending struct {
		Tokens int
		USD    float64
		Budget plan.Budgets
		Stop   plan.StopRules
	}
	want := spending{
		50000, 0.5,
		plan.Budgets{
			Budget: plan.Budget{USD: 50, Tokens: 20_000_000},
			PerModel: plan.Budget{
				USD:    10,
				Tokens: 5_000_000,
			}, PerCell: plan.Budget{Tokens: 200_000},
		},
		plan.StopRules{
			Hopeless:  &plan.StopRule{After: 30, Below: 0.1, Per: plan.PerCell},
			Malformed: &plan.StopRule{After: 20, Above: 0.8, Per: plan.PerModel},
		},
	}
	if diff := cmp.Diff(want,
		spending{e.Limits.Tokens, e.Limits.USD, e.Budget, e.Stop}); diff != "" {
		t.Errorf("spending (-want +got):\n%s", diff)
	}
}

// FuzzLoad checks that every file gives either an experiment or an *Error.
func FuzzLoad(f *testing.F) {
	seeds := []string{
		string(plan.QuickstartFile), fullText, providersText,
		"models: [a]\nlimits: {turns: 1.5}\n", "models: {a: b}\n- x\n", "a: &a [*a]\n",
		"models: [a]\nloops: {repeat: {after: 2.5}, 'x[': off, \"y'z\": }\n" +
			"parts: [{name: x, models: ['[']}, ]\n",
	}
	for _, seed := range yamldoctest.YAML(2000) {
		seeds = append(seeds, seed)
	}
	for _, seed := range append(seeds, yamldoctest.Mutations(500, seeds[:3]...)...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path := write(t, "e.yaml", text)
		for _, read := range []func() error{
			func() error { _, err := plan.Load(path); return err },
			func() error { _, err := plan.LoadProviders(path, env(nil)); return err },
			func() error { _, err := plan.LoadPrices(path); return err },
		} {
			if err := yamldoctest.Check(t, read); err != nil {
				if _, ok := errors.AsType[*plan.Error](err); !ok {
					t.Errorf("error is a %T: %v", err, err)
				}
			}
		}
	})
}

// TestDefaultDifficulty checks that an imported library whose tasks do not say how difficult they are
// needs no difficulties in an experiment's file, and that a library with medium tasks has the default.
func TestDefaultDifficulty(t *testing.T) {
	t.Parallel()
	lone := assay.Task{
		ID: "t1", Type: "simple_task", Description: "Read it.", Required: []string{"file_operations_reader"},
	}
	for given, want := range map[string]string{"easy": "easy", "medium": "medium", "hard": "easy"} {
		task := lone
		task.Difficulty = given
		path := filepath.Join(t.TempDir(), "lib.db")
		err := library.Create(t.Context(), path, library.Meta{Name: "lone"}, library.Tools(),
			slices.Values([]assay.Task{task}))
		if err != nil {
			t.Fatal(err)
		}
		e := load(t, "models: [m]\nlibrary: "+path+"\n")
		if got := e.Difficulties; len(got) != 1 || got[0] != want {
			t.Errorf("a library with a task at %s: the default is %v, want %s", given, got, want)
		}
	}
}
