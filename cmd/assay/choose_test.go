package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/session"
)

// TestWrongChoiceIsUsageError checks that run and plan explain a wrong choice of the experiment in
// the same way and create no files.
func TestWrongChoiceIsUsageError(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	experiment := file(t, dir, "e.yaml", "models: [sim/listed]\n")
	before := tree(t, dir)
	for _, tc := range []struct {
		name string
		args string
		want string
	}{
		{
			"misspelt suite", "--suite flaweds --model sim/listed",
			"unknown suite \"flaweds\"\nhint: did you mean flawed?",
		},
		{
			"unknown suite", "--suite x --model sim/listed",
			"unknown suite \"x\"\nhint: known are all, flawed, models, prompts, reliability, scale",
		},
		{
			"file and suite", experiment + " --suite flawed",
			"both a file and --suite name an experiment\nhint: `assay library suites flawed` prints",
		},
		{
			"suite without models", "--suite flawed",
			"a suite needs --model\nhint: --model sim/optimal",
		},
		{
			"suite with a model twice", "--suite flawed --model sim/mute --model sim/mute",
			"experiment flawed: model sim/mute is listed twice\nhint: ",
		},
		{
			"file with a model twice", experiment + " --model sim/mute --model sim/mute",
			"experiment e: model sim/mute is listed twice\nhint: ",
		},
		{"empty model", experiment + " --model=", "\"\" is not a valid model name"},
		{"misspelt model", experiment + " --model sim/lusted", "hint: did you mean sim/listed?"},
		{"negative limit", experiment + " --limit -1", "--limit is -1, want 0 or more"},
		{"limit in words", experiment + " --limit many", "--limit is \"many\", want a whole number\nhint: "},
		{
			"missing providers", experiment + " --providers " + filepath.Join(dir, "none.yaml"),
			"none.yaml: file not found\nhint: ",
		},
	} {
		for _, verb := range []string{"run", "plan"} {
			t.Run(tc.name+"/"+verb, func(t *testing.T) {
				args := []string{verb, "--store", filepath.Join(dir, "assay.db")}
				r := call(t, nil, append(args, strings.Fields(tc.args)...)...)
				if r.code != exitUsage || !strings.Contains(r.err, tc.want) || r.out != "" {
					t.Errorf("exit code %d, want %d with %q\n%s%s",
						r.code, exitUsage, tc.want, r.err, r.out)
				}
			})
		}
	}
	if tree(t, dir) != before {
		t.Error("a refused command has written files")
	}
}

// TestFlagsReplaceModelsAndProviders checks that --model and --providers replace a file's entries.
func TestFlagsReplaceModelsAndProviders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	experiment := file(t, dir, "e.yaml",
		"models: [sim/listed]\nproviders: none.yaml\ntasks_per_type: 1\nvariants: [cot]\n")
	providers := file(t, dir, "p.yaml", `
providers:
  gw:
    base_url: http://127.0.0.1:9/v1
    keys: [GW_KEY]
    models: {mine: {}}
`)
	out := planOf(t, nil, experiment, "--store", filepath.Join(dir, "assay.db"),
		"--model", "mine", "--model", "sim/mute", "--providers", providers)
	var models []string
	for _, m := range out.Models {
		models = append(models, m.Model)
	}
	if diff := cmp.Diff([]string{"mine", "sim/mute"}, models); diff != "" || out.Planned != 10 {
		t.Errorf("%d trials planned, want 10; models (-want +got):\n%s", out.Planned, diff)
	}
}

// TestLimitRunsFirstTrialsOnce checks that --limit runs the first trials of each model, balanced
// over the cells, and that runs with larger limits add the others without repeating any.
func TestLimitRunsFirstTrialsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "l.db")
	experiment := file(t, dir, "l.yaml", "models: [sim/mute, sim/listed]\n"+
		"variants: [baseline, optimal]\nreliabilities: [0.9, 0.7]\ntasks_per_type: 3\n")
	const cells, all = 2 * 2 * 5, 2 * 2 * 5 * 3
	e, err := plan.Load(experiment)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	earlier := 0
	for _, limit := range []int{27, 27, 45, 0} {
		n := limit
		if limit == 0 {
			n = all
		}
		args := []string{experiment, "--store", path, "--limit", fmt.Sprint(limit)}
		out := planOf(t, nil, args...)
		if out.Planned != 2*n || out.Done != 2*earlier || out.Pending != 2*(n-earlier) {
			t.Errorf("plan with --limit %d: %d planned, %d done, %d pending",
				limit, out.Planned, out.Done, out.Pending)
		}
		args = append([]string{"run", "--sim-latency", "0", "--display", "json"}, args...)
		event := lastEvent(t, must(t, nil, args...).out)
		if event["done"] != float64(2*n) || event["settled"] != float64(2*(n-earlier)) ||
			event["pending"] != 0.0 {
			t.Errorf("run with --limit %d: %v", limit, event)
		}
		stored := attempts(t, path)
		storedOnce(t, stored, map[string]int{"sim/mute": n, "sim/listed": n})
		checkFirstTrials(t, j.Plan, stored, n)
		for cell, count := range perCell(stored) {
			if least := n / cells; count < least || count > least+1 {
				t.Errorf("--limit %d: cell %+v has %d trials, want %d or one more",
					limit, cell, count, least)
			}
		}
		earlier = n
		// The status covers the whole experiment in spite of the limit.
		var status []session.Status
		decode(t, must(t, nil, "status", "--store", path, "--json").out, &status)
		if len(status) != 1 || status[0].Planned != 2*all || status[0].Done != 2*n ||
			status[0].Pending != 2*(all-n) {
			t.Errorf("status after --limit %d: %+v", limit, status)
		}
	}
}

// checkFirstTrials checks that the attempts belong to the first n trials of each model.
func checkFirstTrials(t *testing.T, p *plan.Plan, stored []assay.Attempt, n int) {
	t.Helper()
	want, got := make(map[assay.TrialID]bool), make(map[assay.TrialID]bool)
	for _, model := range []string{"sim/mute", "sim/listed"} {
		k := 0
		for trial := range p.Trials(model) {
			if k++; k > n {
				break
			}
			want[trial.ID] = true
		}
	}
	for _, a := range stored {
		got[a.ID] = true
	}
	if !maps.Equal(want, got) {
		t.Errorf("the %d stored trials of a model are not its first ones", n)
	}
}

func perCell(all []assay.Attempt) map[assay.Cell]int {
	counts := make(map[assay.Cell]int)
	for _, a := range all {
		counts[a.Cell]++
	}
	return counts
}

// TestQuickstartTakesFlags checks that the flags work without a file, too.
func TestQuickstartTakesFlags(t *testing.T) {
	t.Parallel()
	out := planOf(t, nil, "--store", filepath.Join(t.TempDir(), "assay.db"),
		"--model", "sim/mute", "--limit", "9")
	if out.Experiment != "quickstart" || out.Planned != 9 || len(out.Models) != 1 {
		t.Errorf("%+v", out)
	}
}

// TestSuitesAreFiles checks that each suite is listed with a sentence, and that its printed file
// plans the same trials when a line with models is added.
func TestSuitesAreFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	list := strings.Split(must(t, nil, "library", "suites").out, "\n")
	for i, name := range plan.Suites {
		listed, sentence, _ := strings.Cut(list[i], " ")
		sentence = strings.TrimSpace(sentence)
		if listed != name || len(sentence) < 20 || !strings.HasSuffix(sentence, ".") {
			t.Errorf("line %d is %q, want suite %s with a sentence", i, list[i], name)
		}
		text := must(t, nil, "library", "suites", name).out
		mine := file(t, dir, name+".yaml", text+"models: [sim/mute, qwen2.5-3b-instruct]\n")
		which := chosen{suite: name, models: []string{"sim/mute", "qwen2.5-3b-instruct"}}
		suite, err := which.experiment(nil)
		if err != nil {
			t.Fatal(err)
		}
		file, err := new(chosen).experiment([]string{mine})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(specOf(t, suite), specOf(t, file)); diff != "" {
			t.Errorf("suite %s and its file (-suite +file):\n%s", name, diff)
		}
		if want, got := trialIDs(t, suite), trialIDs(t, file); !slices.Equal(want, got) ||
			len(got) == 0 {
			t.Errorf("suite %s has %d trials, its file has %d others", name, len(want), len(got))
		}
	}
	r := call(t, nil, "library", "suites", "reliabilty")
	const hint = "unknown suite \"reliabilty\"\nhint: did you mean reliability?"
	if r.code != exitUsage || !strings.Contains(r.err, hint) || r.out != "" {
		t.Errorf("unknown suite: exit code %d\n%s", r.code, r.err)
	}
}

// specOf returns the text of an experiment as a store keeps it.
func specOf(t *testing.T, e *plan.Experiment) string {
	t.Helper()
	b, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func trialIDs(t *testing.T, e *plan.Experiment) (ids []assay.TrialID) {
	t.Helper()
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for trial := range j.Trials() {
		ids = append(ids, trial.ID)
	}
	return ids
}
