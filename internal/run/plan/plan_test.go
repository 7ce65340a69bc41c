package plan_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/gate"
	"github.com/assay-eval/assay/internal/run/plan"
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

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"unknown field", "models: [sim/listed]\nvarients: [cot]\n", "2:1: unknown field \"varients\"\n  2 | varients: [cot]\n    | ^\nhint: did you mean variants?"},
		{"unknown nested field", "models: [sim/listed]\nlimits: {turn: 3}\n", "2:10: unknown field \"turn\"\n  2 | limits: {turn: 3}\n    |          ^\nhint: did you mean turns?"},
		{"percentage", "models: [a]\nreliabilities: [0.9, 80]\n", "2:22: reliability 80 is not between 0 and 1\n  2 | reliabilities: [0.9, 80]\n    |                      ^\nhint: write 0.8 for 80 %"},
		{"wrong type", "models: [a]\nrepeats: often\n", "2:10: wrong type: found text, want a whole number"},
		{"fraction", "models: [a]\nlimits:\n  turns: 1.5\n", "3:10: wrong type: found 1.5, want a whole number"},
		{"no model", "name: x\n", "names no model"},
		{"twice", "models: [a, b, a]\n", "1:16: model a is listed twice"},
		{"variant", "models: [a]\nvariants: [optimum]\n", "2:12: unknown variant \"optimum\"\n  2 | variants: [optimum]\n    |            ^\nhint: did you mean optimal?"},
		{"variant of a group", "models: [a]\nvariants: [plain, structurel]\n", "2:19: unknown variant \"structurel\"\n  2 | variants: [plain, structurel]\n    |                   ^\nhint: did you mean structural?"},
		{"flaw", "models: [a]\nvariants: flawed_semantics_drift\n", "2:11: unknown variant \"flawed_semantics_drift\"\n  2 | variants: flawed_semantics_drift\n    |           ^\nhint: did you mean flawed_semantic_drift?"},
		{"severity", "models: [a]\nvariants: [flawed]\nseverities: [sever]\n", "3:14: unknown severity \"sever\"\n  3 | severities: [sever]\n    |              ^\nhint: did you mean severe?"},
		{"severity of nothing", "models: [a]\nseverities: [light]\n", "2:13: severities belong to flawed variants, and none is named\n  2 | severities: [light]\n    |             ^\nhint: name one, such as variants: [optimal, flawed], or remove the line"},
		{"mixture", "models: [a]\ndifficulties: [hard_bias]\n", "hint: did you mean hard_biased?"},
		{"world", "models: [a]\nworld: assay1\n", "2:8: unknown world \"assay1\"\n  2 | world: assay1\n    |        ^\nhint: did you mean assay-1?"},
		{"protocol", "models: [a]\nprotocol: tag\n", "2:11: unknown protocol \"tag\"\n  2 | protocol: tag\n    |           ^\nhint: did you mean tags?"},
		{"several calls", "models: [a]\nseveral_calls: reject\n", "2:16: unknown treatment of several calls \"reject\""},
		{"failures of pilot", "models: [a]\nworld: pilot\nfailures: {burst: 0.2}\n", "3:1: failures neither last nor cluster in the world pilot\n  3 | failures: {burst: 0.2}\n    | ^\nhint: remove them, or write world: assay-1"},
		{"certain burst", "models: [a]\nfailures: {burst: 1}\n", "2:19: failures.burst is 1, want at least 0 and below 1"},
		{"percentage of failures", "models: [a]\nfailures: {persistence: 30}\n", "2:25: failures.persistence is 30, want at least 0 and below 1\n  2 | failures: {persistence: 30}\n    |                         ^\nhint: write 0.3 for 30 %"},
		{"unknown failure", "models: [a]\nfailures: {bursts: 0.1}\n", "hint: did you mean burst?"},
		{"kind of loop", "models: [a]\nloops:\n  repeat: off\n  serch: {after: 3}\n", "4:3: unknown kind of loop \"serch\"\n  4 |   serch: {after: 3}\n    |   ^\nhint: did you mean search?"},
		{"only kind of loop", "models: [a]\nloops: {pingpong: off}\n", "2:9: unknown kind of loop \"pingpong\"\n  2 | loops: {pingpong: off}\n    |         ^\nhint: did you mean ping_pong?"},
		{"short loop", "models: [a]\nloops: {error: {after: 1}}\n", "2:24: loops.error.after is 1, want at least 2\n  2 | loops: {error: {after: 1}}\n    |                        ^\nhint: write error: off for no rule"},
		{"consequence", "models: [a]\nloops: {error: {then: halt}}\n", "2:23: unknown consequence of a loop \"halt\"\n  2 | loops: {error: {then: halt}}\n    |                       ^\nhint: known are record, stop"},
		{"off inside", "models: [a]\nloops: {error: {then: off}}\n", "2:23: unknown consequence of a loop \"off\""},
		{"word for a loop", "models: [a]\nloops: {error: never}\n", "2:16: wrong type: found text, want a mapping"},
		{"field of a loop", "models: [a]\nloops: {error: {aftr: 3}}\n", "2:17: unknown field \"aftr\"\n  2 | loops: {error: {aftr: 3}}\n    |                 ^\nhint: did you mean after?"},
		{"fraction of a loop", "models: [a]\nloops: {error: {after: 2.5}}\n", "2:24: wrong type: found 2.5, want a whole number"},
		{"no part", "models: [a]\nparts: []\n", "2:8: names no part"},
		{"part without a name", "models: [a]\nparts:\n  - repeats: 2\n    variants: [cot]\n", "3:5: this part has no name"},
		{"name of a part", "models: [a]\nparts: [{name: a b}]\n", "2:16: \"a b\" is not a name"},
		{"part twice", "models: [a]\nparts:\n  - {name: x}\n  - {name: x}\n", "4:12: part x is there twice"},
		{"field of a part", "models: [a]\nparts: [{name: x, varaints: [cot]}]\n", "2:19: unknown field \"varaints\"\n  2 | parts: [{name: x, varaints: [cot]}]\n    |                   ^\nhint: did you mean variants?"},
		{"seed of a part", "models: [a]\nparts: [{name: x, seed: 3}]\n", "2:19: unknown field \"seed\""},
		{"variant of a part", "models: [a]\nparts:\n  - name: x\n    variants: [cot, optimum]\n", "4:21: unknown variant \"optimum\"\n  4 |     variants: [cot, optimum]\n    |                     ^\nhint: did you mean optimal?"},
		{"severity of a plain part", "models: [a]\nvariants: [flawed]\nparts:\n  - {name: x, variants: [cot], severities: [light]}\n", "4:44: severities belong to flawed variants"},
		{"severity of nothing in parts", "models: [a]\nseverities: light\nparts:\n  - {name: x, variants: [cot]}\n", "2:13: severities belong to flawed variants"},
		{"tasks of a part", "models: [a]\nparts: [{name: x, tasks_per_type: none}]\n", "2:35: \"none\" is not a number of tasks"},
		{"repeats of a part", "models: [a]\nparts: [{name: x, repeats: 0}]\n", "2:28: parts[0].repeats is 0, want 1 to 10000"},
		{"reliability of a part", "models: [a]\nparts: [{name: x}, {name: y, reliabilities: [0.9, 80]}]\n", "2:51: reliability 80 is not between 0 and 1\n  2 | parts: [{name: x}, {name: y, reliabilities: [0.9, 80]}]\n    |                                                   ^\nhint: write 0.8 for 80 %"},
		{"no reliability of a part", "models: [a]\nparts: [{name: x, reliabilities: []}]\n", "2:34: names no reliability"},
		{"no model of a part", "models: [a]\nparts: [{name: x, models: []}]\n", "2:27: names no model"},
		{"pattern", "models: [a]\nparts: [{name: x, models: ['[a']}]\n", "2:28: \"[a\" is not a pattern of names"},
		{"model of a part", "models: [qwen2.5-7b-instruct]\nparts:\n  - {name: x, models: [qwen2.5-7b]}\n  - {name: y}\n", "3:24: the experiment has no model qwen2.5-7b\n  3 |   - {name: x, models: [qwen2.5-7b]}\n    |                        ^\nhint: did you mean qwen2.5-7b-instruct?"},
		{"model of no part", "models: [a, b]\nparts: [{name: x, models: [A]}]\n", "1:13: no part of the experiment is for model b"},
		{"duration", "models: [a]\nlimits: {request: 150}\n", "2:19: \"150\" is not a duration: write a number with its unit, such as 150s or 10m\n  2 | limits: {request: 150}\n    |                   ^"},
		{"tasks", "models: [a]\ntasks_per_type: none\n", "2:17: \"none\" is not a number of tasks"},
		{"turns", "models: [a]\nlimits: {turns: 0}\n", "limits.turns is 0, want 1 to 200"},
		{"tokens of an episode", "models: [a]\nlimits: {tokens: 0}\n", "2:18: limits.tokens is 0, want a number above 0\n  2 | limits: {tokens: 0}\n    |                  ^\nhint: leave it out for no limit"},
		{"money of an episode", "models: [a]\nlimits: {usd: .inf}\n", "2:15: limits.usd is +Inf"},
		{"no number", "models: [a]\nbudget: {usd: .nan}\n", "2:15: budget.usd is NaN"},
		{"budget of a model", "models: [a]\nbudget:\n  per_model: {tokens: -5}\n", "3:23: budget.per_model.tokens is -5, want a number above 0"},
		{"budget of a cell", "models: [a]\nbudget:\n  per_cell: {usd: 0}\n", "3:19: budget.per_cell.usd is 0"},
		{"fraction of a token", "models: [a]\nbudget:\n  tokens: 1.5\n", "3:11: wrong type: found 1.5, want a whole number"},
		{"unknown budget", "models: [a]\nbudget: {per_modell: {}}\n", "2:10: unknown field \"per_modell\"\n  2 | budget: {per_modell: {}}\n    |          ^\nhint: did you mean per_model?"},
		{"too few outcomes", "models: [a]\nstop: {hopeless: {after: 4}}\n", "2:26: stop.hopeless.after is 4, want at least 5"},
		{"percentage of a rule", "models: [a]\nstop:\n  malformed: {above: 80}\n", "3:22: stop.malformed.above is 80, not between 0 and 1\n  3 |   malformed: {above: 80}\n    |                      ^\nhint: write 0.8 for 80 %"},
		{"rate of zero", "models: [a]\nstop: {hopeless: {below: 0}}\n", "2:26: stop.hopeless.below is 0, not between 0 and 1"},
		{"share of another rule", "models: [a]\nstop: {hopeless: {above: 0.1}}\n", "2:26: stop.hopeless has no above\n  2 | stop: {hopeless: {above: 0.1}}\n    |                          ^\nhint: write below"},
		{"scope of a rule", "models: [a]\nstop: {malformed: {per: modell}}\n", "2:25: unknown scope of a stop rule \"modell\"\n  2 | stop: {malformed: {per: modell}}\n    |                         ^\nhint: did you mean model?"},
		{"unknown rule", "models: [a]\nstop: {hopelss: {}}\n", "2:8: unknown field \"hopelss\"\n  2 | stop: {hopelss: {}}\n    |        ^\nhint: did you mean hopeless?"},
		{"syntax", "models: [a\n", "1:"},
		{"repeated field", "models: [a]\nmodels: [b]\n", "2:1: mapping key \"models\" already defined"},
		{"empty", "", "is empty"},
		{"scalar", "hello\n", "has to be a mapping"},
		{"documents", "models: [a]\n---\nmodels: [b]\n", "2 YAML documents"},
		{"name", "models: [a]\nname: a b\n", "2:7: \"a b\" is not a name"},
	} {
		_, err := plan.Load(write(t, "e.yaml", tc.text))
		if err == nil {
			t.Errorf("%s: no error", tc.name)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "e.yaml") {
			t.Errorf("%s: error\n%s\nwant it to contain\n%s", tc.name, err, tc.want)
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
		Name: "first-try", Seed: 2025, World: "assay-1", Library: "builtin", Models: []string{"sim/listed"},
		Factors: plan.Factors{
			Variants: []string{"baseline", "cot", "optimal"}, Difficulties: plan.Names{"easy"}, TaskTypes: assay.TaskTypes,
			Reliabilities: []float64{0.8}, TasksPerType: 20, Repeats: 1,
		},
		Protocol: "native", Tools: "discover", SeveralCalls: "execute",
		Limits: plan.Limits{Turns: 10, Request: plan.DefaultRequest, Trial: plan.DefaultTrial},
	}
	if diff := cmp.Diff(want, e, cmpopts.IgnoreUnexported(plan.Experiment{})); diff != "" {
		t.Errorf("experiment (-want +got):\n%s", diff)
	}
}

// fullText states all that a file can leave out.
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
limits: {trial: 90s, tokens: 50000, usd: 0.5}
budget: {usd: 50, tokens: 20000000, per_model: {usd: 10, tokens: 5000000}, per_cell: {tokens: 200000}}
stop:
  hopeless: {after: 30, below: 0.1}
  malformed:
`

// TestExperimentRoundTripsAsJSON reads back what the store keeps, and plans it.
func TestExperimentRoundTripsAsJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{fullText, "models: [a]\n"} {
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
		want, got := slices.Collect(expand(t, e, 25).Trials("a")), slices.Collect(expand(t, &back, 25).Trials("a"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("trials after a round trip (-want +got):\n%s", diff)
		}
	}
}

// TestErrorsWithoutAFile: an experiment from the store has no file to point
// into, and its library can have shrunk.
func TestErrorsWithoutAFile(t *testing.T) {
	t.Parallel()
	e := plan.Experiment{Name: "stored", Library: "l", Factors: plan.Factors{
		TasksPerType: 40, Difficulties: plan.Names{"easy"}, TaskTypes: plan.Names{"basic_task"},
	}}
	_, err := e.Expand(t.Context(), refs(3), nil)
	if want := "experiment stored: library l has 3 tasks of type basic_task"; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want it to begin with %q", err, want)
	}
	if got, want := e.ModelError("a", "is not served", "").Error(), "experiment stored: is not served"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

// TestUnstatedIsNotStored: what an older program does not know stands in the
// store only where the file has it.
func TestUnstatedIsNotStored(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(load(t, "models: [a]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokens", "usd", "budget", "stop", "severities", "parts", "failures", "loops"} {
		if strings.Contains(string(b), `"`+name+`"`) {
			t.Errorf("%s stands in %s", name, b)
		}
	}
}

func TestSpendingIsRead(t *testing.T) {
	t.Parallel()
	e := load(t, fullText)
	type spending struct {
		Tokens int
		USD    float64
		Budget gate.Budgets
		Stop   gate.StopRules
	}
	want := spending{
		50000, 0.5,
		gate.Budgets{Budget: gate.Budget{USD: 50, Tokens: 20_000_000}, PerModel: gate.Budget{USD: 10, Tokens: 5_000_000}, PerCell: gate.Budget{Tokens: 200_000}},
		gate.StopRules{
			Hopeless:  &gate.StopRule{After: 30, Below: 0.1, Per: gate.PerCell},
			Malformed: &gate.StopRule{After: 20, Above: 0.8, Per: gate.PerModel},
		},
	}
	if diff := cmp.Diff(want, spending{e.Limits.Tokens, e.Limits.USD, e.Budget, e.Stop}); diff != "" {
		t.Errorf("spending (-want +got):\n%s", diff)
	}
}

// TestOnlyLimitsAreIdentity: what bounds an episode decides its outcome; what
// bounds a run does not.
func TestOnlyLimitsAreIdentity(t *testing.T) {
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
	} {
		if got := first(text); (got.ID == plain.ID) != same {
			t.Errorf("%q: trial %s, without it %s, want the same %v", text, got.ID, plain.ID, same)
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
		t.Errorf("quickstart has %d models × %d variants × %d reliabilities, want at least 3 × 3 × 2", len(e.Models), len(e.Variants), len(e.Reliabilities))
	}
}

// TestIdentityIsContent is invariant 2: the order of a file and its other
// models do not change a trial.
func TestIdentityIsContent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		models := rapid.Permutation([]string{"a", "b", "c"}).Draw(t, "models")
		models = models[:rapid.IntRange(1, 3).Draw(t, "n")]
		variants := rapid.Permutation([]string{"baseline", "cot", "optimal"}).Draw(t, "variants")
		rates := rapid.Permutation([]string{"0.9", "0.80", "7e-1"}).Draw(t, "reliabilities")
		lines := rapid.Permutation([]string{
			"models: [" + strings.Join(models, ", ") + "]", "variants: [" + strings.Join(variants, ", ") + "]",
			"reliabilities: [" + strings.Join(rates, ", ") + "]", "tasks_per_type: 3", "repeats: 2",
		}).Draw(t, "lines")
		path := filepath.Join(dir, "e.yaml")
		if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		got := ids(t, path, models[0])
		want := reference(t, dir, models[0])
		if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b assay.TrialID) bool { return a < b })); diff != "" {
			t.Fatalf("trials changed:\n%s", diff)
		}
	})
}

func reference(t *rapid.T, dir, model string) []assay.TrialID {
	path := filepath.Join(dir, "r.yaml")
	text := "models: [" + model + "]\nvariants: [baseline, cot, optimal]\nreliabilities: [0.9, 0.8, 0.7]\ntasks_per_type: 3\nrepeats: 2\n"
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
			t.Fatalf("trial %s twice", trial.ID)
		}
		seen[trial.ID] = true
		out = append(out, trial.ID)
	}
	if len(out) != p.Planned(model) {
		t.Fatalf("%d trials, planned %d", len(out), p.Planned(model))
	}
	return out
}

// TestCellsAreBalancedAndPaired looks at every prefix of a model's trials: no
// cell is more than one trial ahead, and all cells of a type have the same
// tasks and seeds.
func TestCellsAreBalancedAndPaired(t *testing.T) {
	t.Parallel()
	e, err := plan.Load(write(t, "e.yaml", "models: [a, b]\nreliabilities: [0.9, 0.5]\ntasks_per_type: 7\nrepeats: 2\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := e.Expand(t.Context(), refs(30), nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := make(map[assay.Cell]int)
	seeds := make(map[string]map[string]uint64) // cell without type → task/repeat → seed
	for _, model := range e.Models {
		for trial := range p.Trials(model) {
			counts[trial.Cell]++
			key := fmt.Sprint(trial.Model, trial.Variant, trial.Reliability)
			if seeds[key] == nil {
				seeds[key] = make(map[string]uint64)
			}
			seeds[key][fmt.Sprint(trial.Task, trial.Repeat)] = trial.Seed
			low, high := 1<<30, 0
			for cell, n := range counts {
				if cell.Model == model {
					low, high = min(low, n), max(high, n)
				}
			}
			if len(counts)%30 == 0 && high-low > 1 {
				t.Fatalf("cells between %d and %d trials", low, high)
			}
		}
	}
	var first map[string]uint64
	for key, s := range seeds {
		if first == nil {
			first = s
		}
		if diff := cmp.Diff(first, s); diff != "" {
			t.Errorf("%s meets other tasks or luck:\n%s", key, diff)
		}
	}
}

// TestOrderOfARound: every round goes through all cells. Types take turns, those
// with the most expected work first, and each begins one place further in the
// list of its cells, which has the least reliable first.
func TestOrderOfARound(t *testing.T) {
	t.Parallel()
	e := load(t, "models: [a]\nvariants: [cot, baseline]\ndifficulties: [hard, easy]\nreliabilities: [0.9, 0.5]\ntasks_per_type: 3\nrepeats: 2\n")
	var got, want []string
	p := expand(t, e, 3)
	for trial := range p.Trials("a") {
		got = append(got, fmt.Sprint(trial.TaskType, trial.Reliability, trial.Difficulty, trial.Variant))
	}
	list := []string{
		"0.5hardcot", "0.5hardbaseline", "0.5easycot", "0.5easybaseline",
		"0.9hardcot", "0.9hardbaseline", "0.9easycot", "0.9easybaseline",
	}
	for i := range list {
		for turn, taskType := range []string{"multi_stage_pipeline", "data_pipeline", "api_integration", "basic_task", "simple_task"} {
			want = append(want, taskType+list[(i+turn)%len(list)])
		}
	}
	if diff := cmp.Diff(slices.Repeat(want, 6), got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestOrderOfUnlikeTypes: a type that has fewer cells left is passed over once
// they have had their turn.
func TestOrderOfUnlikeTypes(t *testing.T) {
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
	want := []string{"data_pipeline cot", "simple_task optimal", "simple_task baseline", "simple_task cot", "simple_task baseline"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// TestUnknownTypeIsInTheMiddle plans a stored experiment of a program that
// knows more types.
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

func TestCellsCountTheirTrials(t *testing.T) {
	t.Parallel()
	e := load(t, "models: [a, b]\nreliabilities: [0.9, 0.5]\ntasks_per_type: all\nrepeats: 3\n")
	p, err := e.Expand(t.Context(), func(ctx context.Context, taskType, difficulty string) ([]assay.TaskRef, error) {
		return refs(len(taskType))(ctx, taskType, difficulty) // a different number of each type
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := make(map[assay.Cell]int)
	for trial := range p.Trials("b") {
		want[trial.Cell]++
	}
	got := make(map[assay.Cell]int)
	for cell, n := range p.Cells("b") {
		got[cell] += n
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 30 {
		t.Errorf("%d cells (-trials +cells):\n%s", len(got), diff)
	}
	for cell := range p.Cells("a") {
		if cell.Model != "a" || cell.TaskType != "multi_stage_pipeline" {
			t.Errorf("first cell %+v", cell)
		}
		break
	}
}

func TestTooFewTasks(t *testing.T) {
	t.Parallel()
	e, err := plan.Load(write(t, "e.yaml", "models: [a]\ntasks_per_type: 40\n"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = e.Expand(t.Context(), refs(39), nil)
	if err == nil || !strings.Contains(err.Error(), "e.yaml:2:17: library builtin has 39 tasks of type simple_task") {
		t.Errorf("error %v", err)
	}
}

const providersText = `providers:
  gateway:
    base_url: ${GATEWAY_URL}
    keys: [KEY_0, KEY_1]
    models:
      m: {limits: {concurrency: 5, rpm: 600, tpm: 200000}}
  azure-east:
    protocol: azure
    base_url: https://x.example.com
    api_version: 2025-04-01-preview
    keys: [AZ]
    models:
      m:
        deployments: [m-1, m-2]
        serves: [M-0324]
        price: {input: 0.27, output: 1.10}
`

func env(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestProvidersLanes(t *testing.T) {
	t.Parallel()
	p, err := plan.LoadProviders(write(t, "p.yaml", providersText), env(map[string]string{"GATEWAY_URL": "http://gw/v1"}))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, l := range p.Lanes("m") {
		names = append(names, l.Name())
	}
	want := []string{"azure-east/AZ/m-1", "azure-east/AZ/m-2", "gateway/KEY_0/m", "gateway/KEY_1/m"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("lanes (-want +got):\n%s", diff)
	}
	if l := p.Lanes("m")[2]; l.Endpoint.BaseURL != "http://gw/v1" || l.Serve.Limits.RPM != 600 {
		t.Errorf("lane %+v", l)
	}
	if lanes := p.Lanes("other"); lanes != nil {
		t.Errorf("lanes of an unknown model: %v", lanes)
	}
}

func TestProvidersErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, old, new, want string }{
		{"variable", "${GATEWAY_URL}", "${GATEWAY_URI}", "3:15: environment variable GATEWAY_URI is not set"},
		{"field", "deployments", "deployment", "14:9: unknown field \"deployment\""},
		{"protocol", "protocol: azure", "protocol: azur", "8:15: unknown protocol \"azur\""},
		{"pasted key", "[AZ]", "[sk-abc123]", "11:12: is not the name of an environment variable"},
		{"address", "https://x.example.com", "x.example.com", "9:15: is not an address"},
		{"version", "    api_version: 2025-04-01-preview\n", "", "provider azure-east needs an api_version"},
		{"negative", "rpm: 600", "rpm: -1", "6:41: limits.rpm is negative"},
		{"negative day", "rpm: 600", "rpd: -1", "6:41: limits.rpd is negative\n  6 |       m: {limits: {concurrency: 5, rpd: -1, tpm: 200000}}\n    |                                         ^\nhint: leave it out, and the lane learns it"},
		{"negative input", "rpm: 600", "itpm: -1", "limits.itpm is negative"},
		{"negative output", "rpm: 600", "otpm: -1", "limits.otpm is negative"},
		{"negative width", "concurrency: 5", "concurrency: -5", "limits.concurrency is negative"},
		{"negative tokens", "tpm: 200000", "tpm: -1", "limits.tpm is negative"},
		{"negative price", "output: 1.10", "output: -1", "price.output is negative"},
	} {
		text := strings.Replace(providersText, tc.old, tc.new, 1)
		_, err := plan.LoadProviders(write(t, "p.yaml", text), env(map[string]string{"GATEWAY_URL": "http://gw/v1"}))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error\n%v\nwant it to contain %q", tc.name, err, tc.want)
		}
	}
}

// FuzzLoad: whatever stands in a file gives an experiment or an *Error.
func FuzzLoad(f *testing.F) {
	f.Add(string(plan.QuickstartFile))
	f.Add("models: [a]\nlimits: {turns: 1.5}\n")
	f.Add("models: {a: b}\n- x\n")
	f.Add("a: &a [*a]\n")
	f.Add(fullText)
	f.Add("models: [a]\nloops: {repeat: {after: 2.5}, 'x[': off, \"y'z\": }\nparts: [{name: x, models: ['[']}, ]\n")
	f.Add(providersText)
	f.Fuzz(func(t *testing.T, text string) {
		path := write(t, "e.yaml", text)
		defer time.AfterFunc(20*time.Second, func() { panic("no end with " + strconv.Quote(text)) }).Stop()
		if _, err := plan.Load(path); err != nil {
			if _, ok := err.(*plan.Error); !ok {
				t.Errorf("Load() error is a %T: %v", err, err)
			}
		}
		if _, err := plan.LoadProviders(path, env(nil)); err != nil {
			if _, ok := err.(*plan.Error); !ok {
				t.Errorf("LoadProviders() error is a %T: %v", err, err)
			}
		}
	})
}

// TestSomeAreThoseOfTrials, at their places.
func TestSomeAreThoseOfTrials(t *testing.T) {
	t.Parallel()
	p := expand(t, load(t, "models: [a]\nreliabilities: [0.9, 0.5]\ntasks_per_type: 3\nrepeats: 2\n"), 3)
	all := slices.Collect(p.Trials("a"))
	third := slices.Collect(p.Some("a", func(place int) bool { return place%3 == 1 }))
	if len(third) != len(all)/3 {
		t.Fatalf("%d of %d", len(third), len(all))
	}
	for i, trial := range third {
		if trial != all[3*i+1] {
			t.Errorf("the trial at place %d is another", 3*i+1)
		}
	}
}
