package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

const levelsText = `models:
  - gpt-5
  - gpt-5@high
  - claude-sonnet-4@20250514
  - {name: gpt-5, effort: low, temperature: 0.5, max_tokens: 99, seed: -3}
  - {name: m, label: tools, tool_choice: required}
  - name: claude
    label: deep
    thinking: 0
    extra: {top_k: 40, deep: {b: [1, 2.5, null], a: true}, speed: slow}
    headers: {Anthropic-Beta: context-1m}
sampling: {temperature: 0.25, top_p: 0.5, extra: {speed: fast, user: me}}
`

func TestLevels(t *testing.T) {
	t.Parallel()
	e := load(t, levelsText)
	const low = "gpt-5@low+temperature=0.5+max_tokens=99+seed=-3"
	names := []string{"gpt-5", "gpt-5@high", "claude-sonnet-4@20250514", low, "m@tools", "claude@deep"}
	if diff := cmp.Diff(names, e.Models); diff != "" {
		t.Fatalf("models (-want +got):\n%s", diff)
	}
	all := assay.Sampling{
		Temperature: new(0.25), TopP: new(0.5), Extra: `{"speed":"fast","user":"me"}`,
	}
	high, lower, tools, deep := all, all, all, all
	high.Effort = "high"
	lower.Effort, lower.Temperature, lower.MaxTokens = "low", new(0.5), new(99)
	lower.Seed, tools.ToolChoice = new(int64(-3)), "required"
	deep.Thinking, deep.Headers = new(0), `{"Anthropic-Beta":"context-1m"}`
	deep.Extra = `{"deep":{"a":true,"b":[1,2.5,null]},"speed":"slow","top_k":40,"user":"me"}`
	bases := []string{"gpt-5", "gpt-5", "claude-sonnet-4@20250514", "gpt-5", "m", "claude"}
	for i, want := range []assay.Sampling{all, high, all, lower, tools, deep} {
		if got := e.Base(names[i]); got != bases[i] {
			t.Errorf("%s is %s in the providers file, want %s", names[i], got, bases[i])
		}
		if diff := cmp.Diff(want, e.Setting(names[i]).Sampling); diff != "" {
			t.Errorf("%s (-want +got):\n%s", names[i], diff)
		}
	}
}

// TestLevelsAreOtherTrials checks that everything that a level sets is part of its trials, and
// that a model without settings keeps the trials that it had.
func TestLevelsAreOtherTrials(t *testing.T) {
	t.Parallel()
	e := load(t, levelsText)
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var stored plan.Experiment
	if err := json.Unmarshal(b, &stored); err != nil {
		t.Fatal(err)
	}
	ids := make(map[assay.TrialID]bool)
	for _, model := range e.Models {
		trials := slices.Collect(expand(t, e, 25).Trials(model))
		if diff := cmp.Diff(trials, slices.Collect(expand(t, &stored, 25).Trials(model))); diff != "" {
			t.Errorf("trials after a round trip (-want +got):\n%s", diff)
		}
		for _, trial := range trials {
			if trial.Model != model || ids[trial.ID] || trial.CheckID() != nil {
				t.Fatalf("trial %+v of model %s", trial, model)
			}
			ids[trial.ID] = true
		}
	}

	const plain = "models: [a]\nsampling: {temperature: 0.5}\n"
	old, now := load(t, plain), load(t, strings.Replace(plain, "a]", "b@low, a]", 1))
	want := slices.Collect(expand(t, old, 25).Trials("a"))
	if diff := cmp.Diff(want, slices.Collect(expand(t, now, 25).Trials("a"))); diff != "" {
		t.Errorf("trials of a beside a level (-want +got):\n%s", diff)
	}
}

func TestModelsOfTheCommandLineHaveLevels(t *testing.T) {
	t.Parallel()
	e := load(t, levelsText)
	deep := e.SamplingOf("claude@deep")
	if err := e.SetModels([]string{"gpt-5@minimal", "claude@deep", "other@v2"}); err != nil {
		t.Fatal(err)
	}
	if s := e.SamplingOf("gpt-5@minimal"); s.Effort != "minimal" || *s.Temperature != 0.25 {
		t.Errorf("gpt-5@minimal has %+v", s)
	}
	if diff := cmp.Diff(deep, e.SamplingOf("claude@deep")); diff != "" {
		t.Errorf("claude@deep (-want +got):\n%s", diff)
	}
	bases := []string{e.Base("gpt-5@minimal"), e.Base("claude@deep"), e.Base("other@v2")}
	if diff := cmp.Diff([]string{"gpt-5", "claude", "other@v2"}, bases); diff != "" {
		t.Errorf("names in the providers file (-want +got):\n%s", diff)
	}
	if _, ok := e.Levels["gpt-5@high"]; ok {
		t.Error("a level that is not run is kept")
	}
}

func TestWrongLevels(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, want string }{
		{
			"{name: m, effort: hihg}",
			"1:28: unknown effort \"hihg\"\n  1 | models: [{name: m, effort: hihg}]\n" +
				"    |                            ^\nhint: did you mean high?",
		},
		{"{name: m, efort: high}", "1:20: unknown field \"efort\"\n"},
		{"{name: m, efort: high}", "hint: did you mean effort?"},
		{"{name: m, tool_choice: must}", "unknown tool choice \"must\""},
		{"{name: m, thinking: -1}", "1:30: thinking is -1 tokens, want at least 0"},
		{"{name: m, thinking: 1.5}", "want a whole number"},
		{"{name: m, temperature: 3}", "temperature 3 is not between 0 and 2"},
		{"{effort: high}", "this model has no name"},
		{"{name: m, label: x}", "1:27: a label needs settings that it names"},
		{"{name: m, label: 'x y', effort: low}", "1:27: \"x y\" is not a valid label"},
		{"{name: m, extra: {a: 1}}", "these settings need a label"},
		{"{name: m}, m", "1:21: model m is listed twice"},
		{"m@high, {name: m, effort: high}", "1:18: two models are named m@high"},
		{
			"{name: m, label: x, extra: {messages: []}}",
			"1:38: extra cannot set messages, which assay sets itself",
		},
		{
			"{name: m, label: x, extra: {reasoning_effort: low}}",
			"hint: write effort: beside extra",
		},
		{
			"{name: m, label: x, headers: {Authorization: Bearer x}}",
			"1:40: the header Authorization cannot be set here",
		},
		{"{name: m, label: x, headers: {X-A: '${HOME}'}}", "refers to an environment variable"},
		{"{name: m, label: x, headers: {X A: b}}", "\"X A\" is not the name of a header"},
		{"{name: m, label: x, headers: {X-A: \"b\\n\"}}", "a character that headers cannot have"},
	} {
		_, err := plan.Load(write(t, "e.yaml", "models: ["+tc.text+"]\n"))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error\n%v\nwant it to contain\n%s", tc.text, err, tc.want)
		}
	}
}

// TestRevisionsAreOtherTrials checks that a revision is part of the identity of trials, however it
// is given, and that parts take a model whatever its revision is.
func TestRevisionsAreOtherTrials(t *testing.T) {
	t.Parallel()
	const text = "models: [m, m@low]\nparts: [{name: a, models: [m]}, {name: b}]\n"
	ids := make(map[assay.TrialID]bool)
	for _, revision := range []string{"", "v1", "v2"} {
		e := load(t, text)
		want := []string{"m", "m@low"}
		if revision != "" {
			if err := e.SetRevision(revision); err != nil {
				t.Fatal(err)
			}
			want = []string{"m@" + revision, "m@low+" + revision}
		}
		if diff := cmp.Diff(want, e.Models); diff != "" {
			t.Fatalf("models (-want +got):\n%s", diff)
		}
		p := expand(t, e, 25)
		for i, model := range e.Models {
			s := e.Setting(model).Sampling
			if e.Base(model) != "m" || s.Revision != revision || (s.Effort == "low") != (i == 1) {
				t.Errorf("%s is %s with %+v", model, e.Base(model), s)
			}
			for trial := range p.Trials(model) {
				if ids[trial.ID] || trial.CheckID() != nil {
					t.Fatalf("trial %+v", trial)
				}
				ids[trial.ID] = true
			}
		}
		if a := p.Parts()[0]; len(a.Models) != 1 || a.Models[0] != e.Models[0] {
			t.Errorf("part a has %q", a.Models)
		}
	}
}

// TestRevisionsKeepModelsApart checks that a revision does not give a model the name of another
// one, and that the experiment is as before if it would.
func TestRevisionsKeepModelsApart(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"[m, {name: m, revision: v1}]":                         "m@v1",
		"[{name: m, revision: v1}, m]":                         "m@v1",
		"[m, {name: m, label: v1, effort: low, revision: v0}]": "m@v1",
		"[m@low, {name: m, effort: low, revision: v1}]":        "m@low+v1",
	} {
		e := load(t, "models: "+text+"\n")
		before := slices.Clone(e.Models)
		err := e.SetRevision("v1")
		if want := "with revision v1, two models are named " + name + "\nhint: "; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: models %q, error %v, want %q", text, e.Models, err, want)
		}
		if !slices.Equal(e.Models, before) {
			t.Errorf("%s: models %q after an error, want %q", text, e.Models, before)
		}
		if err := e.SetRevision("v2"); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestRevisionInFile(t *testing.T) {
	t.Parallel()
	e := load(t, "models:\n  - {name: m, revision: v1}\n"+
		"  - {name: m, effort: high, revision: 3f2a9c}\n"+
		"  - {name: m, label: after, revision: \"prompt 2: be brief\"}\n")
	want := []string{"m@v1", "m@high+3f2a9c", "m@after"}
	if diff := cmp.Diff(want, e.Models); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	if err := e.SetRevision("v9"); err != nil || !slices.Equal(e.Models, want) {
		t.Errorf("a revision of the command line makes %q, %v", e.Models, err)
	}
	if got := e.Setting("m@after").Sampling.Revision; got != "prompt 2: be brief" {
		t.Errorf("the revision is %q", got)
	}
}
