package plan_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/budget"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{
			"models: [sim/listed]\nvarients: [cot]\n",
			"2:1: unknown field \"varients\"\nhint: did you mean variants?",
		},
		{
			"models: [sim/listed]\nlimits: {turn: 3}\n",
			"2:10: unknown field \"turn\"\nhint: did you mean turns?",
		},
		{
			"reliabilities: [0.9, 80]\n",
			"2:22: reliability 80 is not between 0 and 1\nhint: write 0.8 for 80 %",
		},
		{"repeats: often\n", "2:10: wrong type: found text, want a whole number"},
		{"limits:\n  turns: 1.5\n", "3:10: wrong type: found 1.5, want a whole number"},
		{"models: [a, b, a]\n", "1:16: model a is listed twice"},
		{"variants: [optimum]\n", "2:12: unknown variant \"optimum\"\nhint: did you mean optimal?"},
		{
			"variants: [plain, structurel]\n",
			"2:19: unknown variant \"structurel\"\nhint: did you mean structural?",
		},
		{
			"variants: flawed_semantics_drift\n",
			`2:11: unknown variant "flawed_semantics_drift"` +
				"\nhint: did you mean flawed_semantic_drift?",
		},
		{
			"variants: [flawed]\nseverities: [sever]\n",
			"3:14: unknown severity \"sever\"\nhint: did you mean severe?",
		},
		{
			"severities: [light]\n",
			"2:13: severities need a flawed variant, and there is none" +
				"\nhint: add one, for example variants: [optimal, flawed], or remove this line",
		},
		{"difficulties: [hard_bias]\n", "hint: did you mean hard_biased?"},
		{"world: assay1\n", "2:8: unknown world \"assay1\"\nhint: did you mean assay-1?"},
		{"protocol: tag\n", "2:11: unknown protocol \"tag\"\nhint: did you mean tags?"},
		{"several_calls: reject\n", `2:16: unknown setting of several_calls "reject"`},
		{
			"world: pilot\nfailures: {burst: 0.2}\n",
			"3:1: failures cannot persist or cluster in the world pilot" +
				"\nhint: remove this field, or write world: assay-1",
		},
		{"failures: {burst: 1}\n", "2:19: failures.burst is 1, want at least 0 and below 1"},
		{
			"failures: {kinds: {befor: 1}}\n",
			"2:20: unknown kind of fault \"befor\"\nhint: did you mean before?",
		},
		{
			"failures: {kinds: {after: 25, before: 75}}\n",
			"2:27: the share of after is 25, want 0 to 1\nhint: write 0.25 for 25 %",
		},
		{
			"failures:\n  kinds: {after: 0.5, stale: 0.2}\n",
			"3:10: the shares of the kinds add up to 0.7 instead of 1" +
				"\nhint: for example kinds: {after: 0.25, before: 0.75}",
		},
		{
			"failures:\n  {burst: 0.1, persistence: 0.1, kinds: {after: 1}}\n",
			"3:41: after, slow, wrong_shape and injected cannot be combined with both persistence " +
				"and burst, because the best possible rate would not be exact",
		},
		{
			"world: pilot\nfailures: {kinds: {after: 1}}\n",
			"3:12: a call that fails never happened in the world pilot, so there are no kinds" +
				"\nhint: remove this field, or write world: assay-1",
		},
		{
			"failures: {persistence: 30}\n",
			"2:25: failures.persistence is 30, want at least 0 and below 1" +
				"\nhint: write 0.3 for 30 %",
		},
		{"failures: {bursts: 0.1}\n", "hint: did you mean burst?"},
		{
			"loops:\n  repeat: off\n  serch: {after: 3}\n",
			"4:3: unknown kind of loop \"serch\"\nhint: did you mean search?",
		},
		{
			"loops: {pingpong: off}\n",
			"2:9: unknown kind of loop \"pingpong\"\nhint: did you mean ping_pong?",
		},
		{
			"loops: {error: {after: 1}}\n",
			"2:24: loops.error.after is 1, want at least 2" +
				"\nhint: write error: off to ignore these loops",
		},
		{
			"loops: {error: {then: halt}}\n",
			"2:23: unknown action for a loop \"halt\"\nhint: known are record, stop",
		},
		{"loops: {error: {then: off}}\n", `2:23: unknown action for a loop "off"`},
		{"loops: {error: never}\n", "2:16: wrong type: found text, want a mapping"},
		{"loops: {error: {aftr: 3}}\n", "2:17: unknown field \"aftr\"\nhint: did you mean after?"},
		{"loops: {error: {after: 2.5}}\n", "2:24: wrong type: found 2.5, want a whole number"},
		{"parts: []\n", "2:8: no parts are listed"},
		{"parts:\n  - repeats: 2\n    variants: [cot]\n", "3:5: this part has no name"},
		{"parts: [{name: a b}]\n", `2:16: "a b" is not a valid name`},
		{"parts:\n  - {name: x}\n  - {name: x}\n", "4:12: two parts are named x"},
		{
			"parts: [{name: x, varaints: [cot]}]\n",
			"2:19: unknown field \"varaints\"\nhint: did you mean variants?",
		},
		{"parts: [{name: x, seed: 3}]\n", `2:19: unknown field "seed"`},
		{
			"parts:\n  - name: x\n    variants: [cot, optimum]\n",
			"4:21: unknown variant \"optimum\"\nhint: did you mean optimal?",
		},
		{
			"variants: [flawed]\nparts:\n  - {name: x, variants: [cot], severities: [light]}\n",
			"4:44: severities need a flawed variant",
		},
		{
			"severities: light\nparts:\n  - {name: x, variants: [cot]}\n",
			"2:13: severities need a flawed variant",
		},
		{"parts: [{name: x, tasks_per_type: none}]\n", `2:35: "none" is not a number of tasks`},
		{"parts: [{name: x, repeats: 0}]\n", "2:28: parts[0].repeats is 0, want 1 to 10000"},
		{
			"parts: [{name: x}, {name: y, reliabilities: [0.9, 80]}]\n",
			"2:51: reliability 80 is not between 0 and 1\nhint: write 0.8 for 80 %",
		},
		{"parts: [{name: x, reliabilities: []}]\n", "2:34: no reliabilities are listed"},
		{"models: [a]\nparts: [{name: x, models: []}]\n", "2:27: no models are listed"},
		{
			"models: [a]\nparts: [{name: x, models: ['[a']}]\n",
			`2:28: "[a" is not a valid pattern of model names`,
		},
		{
			"models: [qwen2.5-7b-instruct]\nparts:\n  - {name: x, models: [qwen2.5-7b]}\n  - {name: y}\n",
			"3:24: model qwen2.5-7b is not in the experiment's list of models" +
				"\nhint: did you mean qwen2.5-7b-instruct?",
		},
		{
			"models: [a, b]\nparts: [{name: x, models: [A]}]\n",
			"1:13: no part of the experiment includes model b",
		},
		{
			"limits: {request: 150}\n",
			`2:19: "150" is not a duration: add a unit, such as 150s or 10m`,
		},
		{"tasks_per_type: none\n", `2:17: "none" is not a number of tasks`},
		{"limits: {turns: 0}\n", "limits.turns is 0, want 2 to 200"},
		{
			"limits: {tokens: 0}\n",
			"2:18: limits.tokens is 0, want a number above 0" +
				"\nhint: remove it if there should be no limit",
		},
		{"limits: {usd: .inf}\n", "2:15: the number is not finite"},
		{"budget: {usd: .nan}\n", "2:15: the number is not finite"},
		{
			"budget:\n  per_model: {tokens: -5}\n",
			"3:23: budget.per_model.tokens is -5, want a number above 0",
		},
		{"budget:\n  per_cell: {usd: 0}\n", "3:19: budget.per_cell.usd is 0"},
		{"budget:\n  tokens: 1.5\n", "3:11: wrong type: found 1.5, want a whole number"},
		{
			"budget: {per_modell: {}}\n",
			"2:10: unknown field \"per_modell\"\nhint: did you mean per_model?",
		},
		{"stop: {hopeless: {after: 4}}\n", "2:26: stop.hopeless.after is 4, want at least 5"},
		{
			"stop:\n  malformed: {above: 80}\n",
			"3:22: stop.malformed.above is 80, not between 0 and 1\nhint: write 0.8 for 80 %",
		},
		{"stop: {hopeless: {below: 0}}\n", "2:26: stop.hopeless.below is 0, not between 0 and 1"},
		{"stop: {hopeless: {above: 0.1}}\n", "2:26: stop.hopeless has no above\nhint: write below"},
		{
			"stop: {malformed: {per: modell}}\n",
			"2:25: unknown scope of a stop rule \"modell\"\nhint: did you mean model?",
		},
		{"stop: {hopelss: {}}\n", "2:8: unknown field \"hopelss\"\nhint: did you mean hopeless?"},
		{"models: [a\n", "1:"},
		{"models: [a]\nmodels: [b]\n", `2:1: field "models" is already set in line 1`},
		{"models: [a]\n---\nmodels: [b]\n", "2:1: the file has several YAML documents"},
		{"name: a b\n", `2:7: "a b" is not a valid name`},
	} {
		if !strings.Contains(tc.text, "models:") {
			tc.text = "models: [a]\n" + tc.text
		}
		refused(t, tc.text, tc.want)
	}
	refused(t, "name: x\n", "no models are listed")
	refused(t, "", "file is empty")
	refused(t, "hello\n", "the file must be a mapping")
}

// excerpt matches the lines of a file that an error shows.
var excerpt = regexp.MustCompile(`\n +\d+ \| [^\n]*\n +\| [^\n]*\^`)

// refused checks that Load refuses a file with an error, which contains a text and an excerpt.
func refused(t *testing.T, text, want string) {
	t.Helper()
	_, err := plan.Load(write(t, "e.yaml", text))
	if err == nil {
		t.Errorf("%q: Load() returned no error", text)
		return
	}
	shown := excerpt.ReplaceAllString(err.Error(), "")
	if !strings.Contains(shown, want) || !strings.Contains(shown, "e.yaml") {
		t.Errorf("%q: Load() error\n%s\nwant it to contain\n%s", text, err, want)
	}
	if placed := regexp.MustCompile(`^\d+:\d+: `); placed.MatchString(want) && shown == err.Error() {
		t.Errorf("%q: the error has no excerpt:\n%s", text, err)
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
			}, Difficulties: plan.Names{"easy"}, TaskTypes: assay.TaskTypes,
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
		TasksPerType: 40, Difficulties: plan.Names{"easy"}, TaskTypes: plan.Names{"basic_task"},
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
		Budget budget.Budgets
		Stop   budget.StopRules
	}
	want := spending{
		50000, 0.5,
		budget.Budgets{
			Budget: budget.Budget{USD: 50, Tokens: 20_000_000},
			PerModel: budget.Budget{
				USD:    10,
				Tokens: 5_000_000,
			}, PerCell: budget.Budget{Tokens: 200_000},
		},
		budget.StopRules{
			Hopeless:  &budget.StopRule{After: 30, Below: 0.1, Per: budget.PerCell},
			Malformed: &budget.StopRule{After: 20, Above: 0.8, Per: budget.PerModel},
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
				if _, ok := err.(*plan.Error); !ok {
					t.Errorf("error is a %T: %v", err, err)
				}
			}
		}
	})
}
