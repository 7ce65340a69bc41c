//go:build !race

package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/store"
)

// quickRun runs an experiment of built-in models and returns its store.
func quickRun(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "q.db")
	must(t, nil, "run", file(t, dir, "quick.yaml", text), "--store", path,
		"--sim-latency", "0", "--display", "none")
	return path
}

func writable(t testing.TB, path string) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// exported returns the attempts of an export to standard output.
func exported(t testing.TB, path string, args ...string) []assay.Attempt {
	t.Helper()
	var all []assay.Attempt
	r := must(t, nil, append([]string{"export", "--store", path}, args...)...)
	for a, err := range export.Read(strings.NewReader(r.out)) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

// logsIn describes each log of Inspect in a directory by its experiment, status, trials and
// conditions, sorted by experiment.
func logsIn(t testing.TB, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.eval"))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		z, err := zip.OpenReader(name)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		f, err := z.Open("header.json")
		if err != nil {
			t.Fatal(err)
		}
		var h struct {
			Status string
			Eval   struct {
				Task     string
				Metadata struct{ Filter json.RawMessage }
			}
			Results struct {
				Total     int `json:"total_samples"`
				Completed int `json:"completed_samples"`
			}
		}
		if err := json.NewDecoder(f).Decode(&h); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s %s %d of %d", h.Eval.Task, h.Status, h.Results.Completed,
			h.Results.Total)
		filter := string(h.Eval.Metadata.Filter)
		if strings.HasPrefix(filter, "{") && strings.Contains(filter, "where") {
			text += " by " + filter
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// TestExports checks that --where chooses the attempts of an export. The story export-manifests.txtar
// is about its files.
func TestExports(t *testing.T) {
	t.Parallel()
	path := smallRun(t)
	n := 0
	for _, a := range attempts(t, path) {
		if a.Model == "sim/expert" && a.Level != assay.FullSuccess {
			n++
		}
	}
	some := exported(t, path, "--where", "model=sim/expert", "--where", "level!=full_success")
	if len(some) != n || n == 0 {
		t.Errorf("%d attempts match the conditions, want %d", len(some), n)
	}
}

// TestExportOfSharedTrials checks that the export of an experiment has the attempts that its report
// counts, even if another experiment made them, and that Inspect's logs are marked as complete only
// if they are.
func TestExportOfSharedTrials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	run := func(name, rest string, args ...string) {
		e := file(t, dir, name+".yaml", "models: [sim/expert]\ntasks_per_type: 2\n"+rest)
		args = append([]string{
			"run", e, "--store", path, "--sim-latency", "0", "--display", "none",
		}, args...)
		must(t, nil, args...)
	}
	run("a", "variants: [optimal, cot]\n")
	run("b", "variants: [optimal]\n") // a has settled all its trials
	run("c", "variants: [cot, baseline]\n", "--limit", "14")
	counts := make(map[string]int)
	for _, name := range []string{"a", "b", "c"} {
		for _, a := range exported(t, path, "--experiment", name) {
			counts[name]++
			counts[name+" by "+a.Experiment]++
		}
	}
	for name, want := range map[string]int{
		"a": 20, "a by a": 20, "b": 10, "b by a": 10, "c by a": 10, "c by b": 0,
	} {
		if counts[name] != want {
			t.Errorf("%s: %d attempts, want %d; all counts: %v", name, counts[name], want, counts)
		}
	}
	done := counts["c"]
	if done <= 10 || done >= 20 {
		t.Fatalf("c has %d outcomes, want some of its own and some trials pending", done)
	}
	r := must(t, nil, "export", "--store", path, "--experiment", "b", "--format", "v3")
	if !strings.Contains(r.err, "10 trials of snapshot") {
		t.Errorf("the V3 export prints %s", r.err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{
			"a success 20 of 20", "b success 10 of 10",
			fmt.Sprintf("c cancelled %d of 20", done),
		}},
		{[]string{"--experiment", "b"}, []string{"b success 10 of 10"}},
		{
			[]string{"--experiment", "c", "--where", "variant=cot"},
			[]string{`c success 10 of 10 by {"experiment":"c","where":["variant=cot"]}`},
		},
	} {
		logs := filepath.Join(t.TempDir(), "logs")
		must(t, nil, append([]string{"export", "--store", path, "--format", "inspect", "-o", logs},
			c.args...)...)
		if got := logsIn(t, logs); !slices.Equal(got, c.want) {
			t.Errorf("%q: logs %q, want %q", c.args, got, c.want)
		}
		r := must(t, nil, "export", "--check", logs)
		if strings.Count(r.out, "whole, ") != len(c.want) {
			t.Errorf("--check prints %s", r.out)
		}
	}
}

// TestExportWithoutPlan exports an experiment whose plan changed, and then one that cannot be
// planned again. The second export has all attempts made for the experiment.
func TestExportWithoutPlan(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	run := func(text string) {
		must(t, nil, "run", file(t, dir, "e.yaml", text), "--store", path,
			"--sim-latency", "0", "--display", "none")
	}
	run("models: [sim/expert]\ntasks_per_type: 1\nvariants: [optimal]\n")
	run("models: [sim/expert]\ntasks_per_type: 1\nvariants: [cot]\n")
	r := must(t, nil, "export", "--store", path, "--experiment", "e")
	const leftOut = "5 attempts made for e are left out, because it no longer plans their trials"
	if n := strings.Count(r.out, "\n"); n != 5 || !strings.Contains(r.err, leftOut) {
		t.Errorf("%d attempts with warnings %s", n, r.err)
	}
	logs := filepath.Join(dir, "logs")
	// Without --experiment, all attempts are exported.
	must(t, nil, "export", "--store", path, "--format", "inspect", "-o", logs)
	if got, want := logsIn(t, logs), []string{"e success 10 of 10"}; !slices.Equal(got, want) {
		t.Errorf("logs %q, want %q", got, want)
	}
	db := writable(t, path)
	e := store.Experiment{Name: "e", Spec: []byte(`{"library": "gone.db"}`)}
	if err := errors.Join(db.BeginRun(t.Context(), e, store.Run{ID: "later"}),
		db.Close()); err != nil {
		t.Fatal(err)
	}
	r = must(t, nil, "export", "--store", path, "--experiment", "e")
	n := strings.Count(r.out, "\n")
	if n != 10 || !strings.Contains(r.err, "cannot plan experiment e again") {
		t.Errorf("%d attempts with warnings %s", n, r.err)
	}
	// It has no figures.
	records := filepath.Join(dir, "records")
	r = must(t, nil, "export", "--store", path, "--format", "eee", "-o", records)
	if !strings.Contains(r.err, "experiment e is left out: it cannot be planned again") {
		t.Errorf("the export prints %s", r.err)
	}
	if r := call(t, nil, "export", "--store", path, "--format", "eee", "-o", records, "--experiment", "e"); r.code != exitError ||
		!strings.Contains(r.err, "experiment e: it cannot be planned again") {
		t.Errorf("exit code %d: %s", r.code, r.err)
	}
}

// TestMixedExportHintWorks runs the command that the error suggests.
func TestMixedExportHintWorks(t *testing.T) {
	t.Parallel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell to parse the hint")
	}
	path := quickRun(t, `models: [sim/obedient]
tasks_per_type: 1
variants: [baseline, flawed_missing_step]
severities: [light, severe]
reliabilities: [0.8, 0.80001, 0.800012]
sampling: {temperature: 0.7, top_p: 1}
`)
	r := call(t, nil, "export", "--store", path, "--format", "v3")
	hint := regexp.MustCompile(`for example with( --where .*)\n`).FindStringSubmatch(r.err)
	if r.code != exitError || hint == nil {
		t.Fatalf("exit code %d, %s", r.code, r.err)
	}
	words, err := exec.CommandContext(t.Context(), sh, "-c", "printf '%s\\n'"+hint[1]).Output()
	if err != nil {
		t.Fatal(err)
	}
	conditions := strings.Split(strings.TrimSpace(string(words)), "\n")
	args := append([]string{"export", "--store", path, "--format", "v3"}, conditions...)
	errs := must(t, nil, args...).err
	if !regexp.MustCompile(`^[1-9]\d* trials of snapshot`).MatchString(errs) {
		t.Errorf("%q prints %s", args, errs)
	}
	chosen := exported(t, path, conditions...)
	if !strings.HasPrefix(errs, fmt.Sprint(len(chosen))+" trials") {
		t.Errorf("%d attempts match %q, but the export prints %s", len(chosen), conditions, errs)
	}
	plain := func(a assay.Attempt) bool { return a.Severity == "" }
	if !slices.ContainsFunc(chosen, plain) {
		t.Errorf("%q selects no attempt without a severity", conditions)
	}
}

// TestPublishedFigures checks that records for Every Eval Ever have the figures of the report.
func TestPublishedFigures(t *testing.T) {
	t.Parallel()
	path, dir := smallRun(t), t.TempDir()
	var figures struct {
		Rows []struct {
			Model    string
			Planned  int
			Full     int                         `json:"full_success"`
			Rate     float64                     `json:"full_success_rate"`
			Interval struct{ Low, High float64 } `json:"full_success_95"`
		}
	}
	if err := json.Unmarshal([]byte(must(t, nil, "report", "--store", path, "--json").out), &figures); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "export", "--store", path, "--format", "eee", "-o", dir)
	names, err := filepath.Glob(filepath.Join(dir, "data", "*", "*", "*", "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("records %q, %v", names, err)
	}
	published := make(map[string]bool)
	for _, name := range names {
		var record struct {
			Model   struct{ Name string } `json:"model_info"`
			Results []struct {
				Metric struct {
					ID string `json:"metric_id"`
				} `json:"metric_config"`
				Score struct {
					Score       float64
					Details     struct{ Count, Planned string }
					Uncertainty struct {
						Interval struct{ Lower, Upper float64 } `json:"confidence_interval"`
					}
				} `json:"score_details"`
			} `json:"evaluation_results"`
		}
		if err := json.Unmarshal([]byte(textIn(t, name)), &record); err != nil {
			t.Fatal(err)
		}
		for _, r := range record.Results {
			if s := r.Score; r.Metric.ID == "assay.full_success" {
				published[fmt.Sprint(record.Model.Name, s.Details.Planned, s.Details.Count, s.Score, s.Uncertainty.Interval)] = true
			}
		}
	}
	for _, r := range figures.Rows {
		if row := fmt.Sprint(r.Model, fmt.Sprint(r.Planned), fmt.Sprint(r.Full), r.Rate, r.Interval); !published[row] {
			t.Errorf("%s is in no record: %v", row, published)
		}
	}
}
