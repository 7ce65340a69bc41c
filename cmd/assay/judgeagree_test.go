//go:build !race

package main

import (
	"encoding/csv"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// judgedStore has outcomes at a task with a rubric, judged by a simulated model that errs in a share, and
// returns what is true of each trial.
func judgedStore(t *testing.T, errs string) (path string, truth map[assay.TrialID]bool) {
	t.Helper()
	dir := t.TempDir()
	tasks := "name: notes\ntools: tools.yaml\njudge: {model: \"sim/judge:errs=" + errs + "\"}\ntasks:\n"
	for i := range 40 {
		tasks += fmt.Sprintf("  - id: note-%d\n    type: note\n    prompt: Look up order %d.\n    inputs: {order_id: %d}\n"+
			"    judge: {rubric: 'The last words say \"completed\".'}\n"+
			"    plan: [{tool: get_order, arguments: {order_id: %d}}]\n", i, i, i, i)
	}
	file(t, dir, "tasks.yaml", tasks)
	file(t, dir, "tools.yaml", "file: tools.star\ntools:\n  - name: get_order\n    description: Look up an order.\n"+
		"    parameters:\n      order_id: {type: integer}\n")
	file(t, dir, "tools.star", "def get_order(state, order_id):\n    return {\"order\": order_id}\n")
	experiment := file(t, dir, "e.yaml", "name: notes\nlibrary: tasks.yaml\nmodels: [sim/brittle, sim/optimal]\n"+
		"variants: [optimal]\nreliabilities: [0.6]\ntask_types: [note]\ntasks_per_type: 40\n")
	path = filepath.Join(dir, "r.db")
	must(t, nil, "run", experiment, "--store", path, "--display", "none", "--sim-latency", "0")
	truth = make(map[assay.TrialID]bool)
	for _, a := range attempts(t, path) {
		truth[a.ID] = a.Cause != assay.NotRetried // who does not repeat a failed call gives up
	}
	return path, truth
}

// TestJudgeAgree draws trials, labels them with the truth, and compares a judge that errs with these labels.
func TestJudgeAgree(t *testing.T) {
	t.Parallel()
	store, truth := judgedStore(t, "0.2")
	warning := "never compared with people"
	if out := must(t, nil, "report", "--store", store, "--details").out; !strings.Contains(out, warning) {
		t.Errorf("the report does not warn of a judge that was %s:\n%s", warning, out)
	}
	labels := filepath.Join(t.TempDir(), "labels.csv")
	must(t, nil, "judge", "draw", "40", "--store", store, "--output", labels)
	rows, err := csv.NewReader(strings.NewReader(read(t, labels))).ReadAll()
	if err != nil || len(rows) != 41 {
		t.Fatalf("%d lines of labels: %v", len(rows), err)
	}
	filled := "trial,label,who\n"
	right := 0
	verdicts := make(map[assay.TrialID]bool)
	for _, a := range attempts(t, store) {
		verdicts[a.ID] = a.Verdict == assay.Pass
	}
	for _, row := range rows[1:] {
		id := assay.TrialID(row[0])
		filled += row[0] + "," + map[bool]string{true: "pass", false: "FAIL"}[truth[id]] + ",ada\n"
		if truth[id] == verdicts[id] {
			right++
		}
	}
	file(t, filepath.Dir(labels), "labels.csv", filled)

	var all []struct {
		Judge    string
		Judged   int
		Labelled int
		Pass     int `json:"pass_pass"`
		Fail     int `json:"fail_fail"`
		Raw      struct{ Value float64 }
		Rate     struct{ Value float64 } `json:"judge_rate"`
		Right    struct {
			Value    float64
			Interval struct{ Low, High float64 }
		} `json:"corrected_rate"`
		ByTask []struct{ Labelled, Agreed int } `json:"by_task"`
		Models []struct{ Model string }         `json:"by_model"`
	}
	decode(t, must(t, nil, "judge", "agree", labels, "--store", store, "--json", "--dry-run").out, &all)
	people := 0
	for _, pass := range truth {
		if pass {
			people++
		}
	}
	a := all[0]
	rate := float64(people) / float64(len(truth))
	if a.Judged != 80 || a.Labelled != 40 || a.Pass+a.Fail != right || len(a.Models) != 2 {
		t.Errorf("%d of 40 labels agree; got %+v", right, a)
	}
	if a.Right.Interval.Low > rate || a.Right.Interval.High < rate || a.Right.Value == a.Rate.Value {
		t.Errorf("people pass %.3f; corrected from %.3f: %+v", rate, a.Rate.Value, a.Right)
	}
	labelled, agreed := 0, 0
	for _, task := range a.ByTask {
		labelled, agreed = labelled+task.Labelled, agreed+task.Agreed
	}
	if labelled != 40 || agreed != right {
		t.Errorf("by task, %d of %d agree", agreed, labelled)
	}

	// A comparison that is kept ends the warning, and may be repeated.
	for range 2 {
		out := must(t, nil, "judge", "agree", labels, "--store", store).out
		if !strings.Contains(out, "corrected: people's rate") || !strings.Contains(out, "Cohen's kappa") {
			t.Errorf("the figures are missing:\n%s", out)
		}
	}
	if out := must(t, nil, "report", "--store", store, "--details").out; strings.Contains(out, warning) {
		t.Errorf("the report still warns:\n%s", out)
	}

	for text, want := range map[string]string{
		"a,b\n":                               ":1: the first line does not name",
		"trial,label\n" + rows[1][0] + ",x\n": `:2: "x" is no label`,
		"trial,label\n" + rows[1][0] + ",1\n" + rows[1][0] + ",0\n": "has another label in line 2",
	} {
		wantError(t, exitUsage, want, "judge", "agree", file(t, t.TempDir(), "l.csv", text), "--store", store)
	}
	wantError(t, exitUsage, "the file exists", "judge", "draw", "5", "--store", store, "--output", labels)
	wantError(t, exitUsage, "no number of trials", "judge", "draw", "2.5", "--store", store)
	few := "trial,label\n" + rows[1][0] + ",pass\n"
	other, _ := judgedStore(t, "0.1")
	few = strings.Replace(few, rows[1][0], string(attempts(t, other)[0].ID), 1)
	must(t, nil, "judge", "agree", file(t, t.TempDir(), "few.csv", few), "--store", other)
	if out := must(t, nil, "report", "--store", other, "--details").out; !strings.Contains(out, warning) {
		t.Error("one label ends the warning")
	}
	cite := must(t, nil, "cite", "--store", store).out
	if !strings.Contains(cite, "80 of them also by the model sim/judge:errs=0.2 by a rubric (80 by it alone), which agreed with people on") {
		t.Errorf("the citation does not name the judge:\n%s", cite)
	}
	wantError(t, exitError, "no model has judged", "judge", "draw", "5", "--store", smallRun(t))
}
