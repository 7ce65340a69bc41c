package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// perType is the number of tasks of each type in the built-in library.
const perType = 126

func suite(t *testing.T, name string, models ...string) *plan.Plan {
	t.Helper()
	e, err := plan.Suite(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetModels(models); err != nil {
		t.Fatal(err)
	}
	return expand(t, e, perType)
}

// TestSuitesHaveTheirCounts checks the numbers of trials against the study that
// the suites repeat.
func TestSuitesHaveTheirCounts(t *testing.T) {
	t.Parallel()
	const (
		other, qwen         = "deepseek-v3", "Qwen2.5-7B-Instruct"
		prefixed, simulated = "Qwen/qwen2.5-72b-instruct", "sim/listed"
	)
	for name, want := range map[string]map[string]int{
		"models":      {other: 100, qwen: 100},
		"scale":       {other: 200, qwen: 200},
		"flawed":      {other: 800, qwen: 800},   // likewise
		"reliability": {other: 500, qwen: 500},   // 100 of them are shared with models
		"prompts":     {other: 300, qwen: 300},   // likewise
		"faults":      {other: 800, qwen: 800},   // also with reliable tools
		"profile":     {other: 2100, qwen: 2100}, // 500 under plain conditions
		"all":         {other: 1400, qwen: 1600, prefixed: 1600, simulated: 1600},
	} {
		p := suite(t, name, other, qwen, prefixed, simulated)
		for model, n := range want {
			cells := 0
			for _, trials := range p.Cells(model) {
				cells += trials / 20 // repeats count as cells
				if trials != 20 && (name != "profile" || trials != 100) {
					t.Errorf("%s: a cell of %d trials", name, trials)
				}
			}
			if p.Planned(model) != n || cells != n/20 {
				t.Errorf("suite %s has %d trials in %d cells for %s, want %d in %d", name,
					p.Planned(model), cells, model, n, n/20)
			}
		}
	}
}

// TestAllIsEverySuite checks that the suite all has exactly the trials of the
// other suites, which are its parts.
func TestAllIsEverySuite(t *testing.T) {
	t.Parallel()
	const model = "qwen2.5-3b-instruct"
	want, got := make(map[assay.TrialID]bool), make(map[assay.TrialID]bool)
	shared := 0
	for _, name := range plan.Suites[:5] {
		for trial := range suite(t, name, model).Trials(model) {
			if want[trial.ID] {
				shared++
			}
			want[trial.ID] = true
		}
	}
	all := suite(t, "all", model)
	for trial := range all.Trials(model) {
		got[trial.ID] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trials (-suites +all):\n%s", diff)
	}
	if shared != 300 {
		t.Errorf("flawed, reliability and prompts share %d trials with others, want 100 each", shared)
	}
	for i, part := range all.Parts() {
		alone := suite(t, plan.Suites[i], model)
		n := 0
		for cell := range all.Cells(model) {
			if part.Has(cell) {
				n++
			}
		}
		if part.Name != plan.Suites[i] || 20*n != alone.Planned(model) {
			t.Errorf("part %s of all has %d cells, suite %s %d trials", part.Name, n,
				plan.Suites[i], alone.Planned(model))
		}
	}
	if parts := suite(t, "all", "other").Parts(); len(parts) != 5 || parts[1].Models != nil {
		t.Errorf("parts without a model of the family: %+v", parts)
	}
}

func TestFlawedSuiteHasGroups(t *testing.T) {
	t.Parallel()
	p := suite(t, "flawed", "m")
	want := map[string][]string{
		"structural":  {"optimal", "flawed_sequence_disorder", "flawed_tool_misuse", "flawed_parameter_error"},
		"operational": {"optimal", "flawed_missing_step", "flawed_redundant_operations"},
		"logical":     {"optimal", "flawed_logical_inconsistency", "flawed_semantic_drift"},
	}
	got := make(map[string][]string)
	for cell := range p.Cells("m") {
		for _, part := range p.Parts() {
			if part.Has(cell) && !slices.Contains(got[part.Name], cell.Variant) {
				got[part.Name] = append(got[part.Name], cell.Variant)
			}
		}
		if _, flawed := assay.FlawOf(cell.Variant); flawed && cell.Severity != "severe" {
			t.Errorf("cell %+v", cell)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

func TestUnknownSuite(t *testing.T) {
	t.Parallel()
	_, err := plan.Suite("reliabilty")
	want := "unknown suite \"reliabilty\"\nhint: did you mean reliability?"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if b := plan.SuiteFile("../quickstart"); b != nil {
		t.Errorf("SuiteFile() of an unknown suite returns %s", b)
	}
}

// TestSuiteFilesAreExperiments checks that a suite's file with models added is
// an experiment with the same trials.
func TestSuiteFilesAreExperiments(t *testing.T) {
	t.Parallel()
	for _, name := range plan.Suites {
		text := string(plan.SuiteFile(name))
		if !strings.HasPrefix(text, "# ") || strings.Contains(text, "\nmodels:") {
			t.Errorf("suite %s has no comment, or names models", name)
		}
		_, err := plan.Load(write(t, name+".yaml", text))
		if err == nil || !strings.Contains(err.Error(), "no models are listed") {
			t.Errorf("suite %s as a file without models: %v", name, err)
		}
		want := slices.Collect(suite(t, name, "m").Trials("m"))
		if diff := cmp.Diff(want,
			slices.Collect(expand(t, load(t, "models: [m]\n"+text),
				perType).Trials("m"))); diff != "" {
			t.Errorf("suite %s as a file (-suite +file):\n%s", name, diff)
		}
	}
}

func TestSetModels(t *testing.T) {
	t.Parallel()
	e := load(t, "name: mine\nmodels: [a]\nparts: [{name: x, models: [a, 'b*']}]\n")
	for _, tc := range []struct {
		models []string
		want   string
	}{
		{
			nil,
			"experiment mine: no models are listed\n" +
				"hint: built-in models have names that start with sim/",
		},
		{[]string{"b", "a", "b"}, "experiment mine: model b is listed twice"},
		{[]string{"b", ""}, "experiment mine: \"\" is not a valid model name"},
		{[]string{" b"}, "experiment mine: \" b\" is not a valid model name"},
		{[]string{"a", "c"}, "experiment mine: no part of the experiment includes model c"},
	} {
		if err := e.SetModels(tc.models); err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("SetModels(%q) = %v, want %q", tc.models, err, tc.want)
		}
	}
	if diff := cmp.Diff([]string{"a"}, e.Models); diff != "" {
		t.Errorf("models after errors:\n%s", diff)
	}
	models := []string{"b2", "a"}
	if err := e.SetModels(models); err != nil {
		t.Fatal(err)
	}
	models[0] = "changed"
	p := expand(t, e, 20)
	if !slices.Equal(p.Parts()[0].Models, []string{"b2", "a"}) || p.Planned("b2") != 300 {
		t.Errorf("parts %+v, %d trials", p.Parts(), p.Planned("b2"))
	}
}
