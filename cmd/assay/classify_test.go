package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
	"github.com/assay-eval/assay/internal/run/opinion"
	"github.com/assay-eval/assay/internal/store"
)

// failures runs an experiment with few full successes, and returns its store.
func failures(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "failures.db")
	experiment := file(t, dir, "failures.yaml", `
models: [sim/obedient, sim/searcher]
variants: [optimal, flawed_missing_step, flawed_parameter_error]
tasks_per_type: 4
`)
	mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	return path
}

// failed counts the outcomes that are not full success.
func failed(all []assay.Attempt) (n int) {
	for _, a := range all {
		if a.Settles() && a.Level != assay.FullSuccess {
			n++
		}
	}
	return n
}

// opinions returns the opinions in a store.
func opinions(t *testing.T, path string) []store.Classification {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []store.Classification
	for o, err := range db.Classifications(t.Context(), "", "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// checkOpinions checks that a store has the wanted number of opinions, at most one per outcome,
// and that no full success has one.
func checkOpinions(t *testing.T, path string, want int) {
	t.Helper()
	category, seen := make(map[assay.TrialID]string), make(map[assay.TrialID]bool)
	for _, a := range attempts(t, path) {
		category[a.ID] = a.ErrorCategory
	}
	all := opinions(t, path)
	for _, o := range all {
		rule := category[o.Trial]
		if rule == "" || o.RuleCategory != rule {
			t.Errorf("opinion %+v on an outcome of category %q", o, rule)
		}
		if seen[o.Trial] || !slices.Contains(classify.Categories, o.Category) || o.Reason == "" {
			t.Errorf("opinion %+v is a second one, of an unknown category, or without a reason", o)
		}
		seen[o.Trial] = true
	}
	if len(all) != want {
		t.Errorf("%d opinions are stored, want %d", len(all), want)
	}
}

// asked decodes the output of `assay store classify --json`.
func asked(t *testing.T, r result) opinion.Summary {
	t.Helper()
	var sum opinion.Summary
	decode(t, r.out, &sum)
	return sum
}

// TestClassifyAsksOnceAboutEachFailure classifies in several steps. It also checks that opinions
// change neither exports nor snapshots.
func TestClassifyAsksOnceAboutEachFailure(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	before, snapshot := must(t, nil, "export", "--store", path).out, snapshotOf(t, path)
	all := attempts(t, path)
	n := failed(all)
	if n < 80 || n == len(all) {
		t.Fatalf("%d of %d outcomes are not full success", n, len(all))
	}
	args := []string{
		"store", "classify", "--model", "sim/judge", "--store", path, "--sim-latency", "0",
	}
	for _, step := range []struct {
		args           []string
		before, answer int
	}{
		{[]string{"--limit", "7"}, 0, 7},
		{[]string{"--limit", "3"}, 7, 3},
		{nil, 10, n - 10},
		{nil, n, 0},
	} {
		sum := asked(t, must(t, nil, append(append(args, "--json"), step.args...)...))
		stored := step.before + step.answer
		// With a limit, classify may stop before it has counted all earlier opinions.
		before := sum.Before == step.before || step.args != nil && sum.Before < step.before
		clean := sum.Unreadable+sum.Faulted == 0 && (sum.Tokens == 0) == (step.answer == 0)
		if sum.Answered != step.answer || sum.Opinions != stored || !before || !clean {
			t.Errorf("classify %v: %+v, want %d answers after %d", step.args, sum, step.answer,
				step.before)
		}
		checkOpinions(t, path, stored)
	}
	after := must(t, nil, "export", "--store", path).out
	if after != before || snapshotOf(t, path) != snapshot {
		t.Error("opinions changed the export or the snapshot")
	}
	sum := asked(t, must(t, nil, append(args, "--json")...))
	if total, same := tableOf(sum); total != n || same != sum.Agreed || sum.Kappa == nil ||
		*sum.Kappa >= 1 {
		t.Errorf("the table has %d opinions, and %d of them agree: %+v", total, same, sum)
	}
	text := must(t, nil, args...).out
	for _, want := range []string{
		fmt.Sprintf("sim/judge gave 0 opinions (%d before), 0 replies could not be read, "+
			"0 requests faulted; 0 tokens\n", n),
		fmt.Sprintf("The model agrees with the rules on %d of %d outcomes (Cohen's kappa %.2f).",
			sum.Agreed, n, *sum.Kappa),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	o := opinions(t, path)[0]
	shown := must(t, nil, "show", string(o.Trial), "--store", path).out
	want := fmt.Sprintf("\n  sim/judge says %s, with confidence %.2f: %s\n", o.Category,
		o.Confidence, o.Reason)
	if !strings.Contains(shown, want) {
		t.Errorf("show lacks %q:\n%s", want, shown)
	}
}

// tableOf returns the number of opinions in a table, and how many of them agree with the rules.
func tableOf(sum opinion.Summary) (total, same int) {
	for i, row := range sum.Counts {
		for j, n := range row {
			total += n
			if i == j {
				same += n
			}
		}
	}
	return total, same
}

// TestClassifyCostsWhatItIsBilled prices a model with a list and compares the sum with the bill.
func TestClassifyCostsWhatItIsBilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	server := serve(t, "--tariff", "input=0.5,output=4")
	file(t, dir, "prices.yaml", "my-judge: {input: 0.5, output: 4}\n")
	providers := file(t, dir, "p.yaml", "prices: prices.yaml\nproviders:\n  p:\n    base_url: "+server.url+"/v1\n"+
		"    keys: [SIM_KEY]\n    models: {my-judge: {deployments: [sim/judge], serves: [sim/judge]}}\n")
	r := must(t, map[string]string{"SIM_KEY": "k"}, "store", "classify", "--model", "my-judge",
		"--store", path, "--json", "--limit", "20", "--providers", providers)
	bill := server.stats(t).Bills["sim/judge"]
	if bill.MicroUSD == 0 {
		t.Error("the server charged nothing")
	}
	agree(t, "classify", asked(t, r).CostUSD, bill.MicroUSD)
}

func TestClassifyOneExperiment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	other := file(t, dir, "other.yaml", "models: [sim/mute]\nvariants: [cot]\ntasks_per_type: 1\n")
	must(t, nil, "run", other, "--store", path, "--sim-latency", "0", "--display", "none")
	sum := asked(t, must(t, nil, "store", "classify", "--model", "sim/judge", "--store", path,
		"--experiment", "other", "--sim-latency", "0", "--json"))
	if sum.Answered != 5 || sum.Opinions != 5 {
		t.Errorf("%+v, want 5 answers", sum)
	}
	checkOpinions(t, path, 5)
}

func TestClassifyRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	file(t, dir, "providers.yaml", providersFile("http://127.0.0.1:9", "{}"))
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "--model is missing\nhint: --model NAME --providers FILE"},
		{
			[]string{"--model", "sim/jugde"},
			exitUsage,
			"unknown built-in model \"sim/jugde\"\nhint: did you mean sim/judge?",
		},
		{
			[]string{"--model", "gpt-5-nano"},
			exitUsage,
			"unknown built-in model \"gpt-5-nano\"\nhint: --providers FILE",
		},
		{
			[]string{"--model", "gpt-5-nano", "--providers", filepath.Join(dir, "providers.yaml")},
			exitUsage, "no provider serves model gpt-5-nano\nhint: ",
		},
		{
			[]string{"--model", "sim/judge", "--providers", filepath.Join(dir, "providers.yaml")},
			exitUsage, "environment variable SIM_KEY is not set\n",
		},
		{
			[]string{"--model", "sim/judge", "--limit", "-1"},
			exitUsage,
			"--limit is -1, want 0 or more",
		},
		{
			[]string{"--model", "sim/judge", "--experiment", "failure"},
			exitError,
			"the store has no experiment \"failure\"\nhint: did you mean failures?",
		},
		{
			[]string{"--model", "sim/judge", "--store", filepath.Join(dir, "none.db")},
			exitError,
			"store not found\nhint: ",
		},
		{[]string{"failures"}, exitUsage, "hint: `assay store classify --help`"},
	} {
		r := call(t, nil, append([]string{"store", "classify", "--store", path}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.err, tc.want) || r.out != "" {
			t.Errorf("classify %v: exit code %d, want %d with %q\n%s%s", tc.args, r.code, tc.code,
				tc.want, r.err, r.out)
		}
	}
	checkOpinions(t, path, 0)
}

// judgeFile writes a providers file in which a deployment serves the model my-judge.
func judgeFile(t *testing.T, dir, url, deployment, limits string) string {
	t.Helper()
	return file(t, dir, "judge.yaml", fmt.Sprintf(`
providers:
  rehearsal:
    base_url: %s/v1
    keys: [SIM_KEY]
    models:
      my-judge: {deployments: [%s], serves: [%[2]s], limits: %s, price: {input: 1, output: 2}}
`, url, deployment, limits))
}

// TestClassifyUnreadable asks a model that never answers the question. Each outcome takes two
// requests and gets no opinion. The next command asks again.
func TestClassifyUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	n := failed(attempts(t, path))
	server := serve(t)
	args := []string{
		"store", "classify", "--model", "my-judge", "--store", path, "--json", "--providers",
	}
	env := map[string]string{"SIM_KEY": "k"}

	r := call(t, env,
		append(args, judgeFile(t, dir, server.url, "sim/mute", "{concurrency: 8}"))...)
	sum := asked(t, r)
	if r.code != exitIncomplete || sum.Unreadable != n || sum.CostUSD <= 0 {
		t.Errorf("exit code %d, %+v; want %d unreadable\n%s", r.code, sum, n, r.err)
	}
	if sum.Answered+sum.Faulted+sum.Opinions != 0 {
		t.Errorf("%+v, want no answers, faults or opinions", sum)
	}
	if requests := server.stats(t).Requests; requests != int64(2*n) {
		t.Errorf("%d requests, want two for each of %d outcomes", requests, n)
	}
	checkOpinions(t, path, 0)

	args = append(args, judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 8}"))
	sum = asked(t, must(t, env, args...))
	if sum.Answered != n || sum.Before != 0 {
		t.Errorf("%+v, want %d answers", sum, n)
	}
	checkOpinions(t, path, n)
	paid := 0.0
	for _, o := range opinions(t, path) {
		paid += o.CostUSD
	}
	if diff := paid - sum.CostUSD; diff > 1e-9 || diff < -1e-9 || paid == 0 {
		t.Errorf("the opinions cost $%v, but the command prints $%v", paid, sum.CostUSD)
	}
}

// TestClassifyAsksAgainAfterFaults repeats the command until no request faults any more.
func TestClassifyAsksAgainAfterFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	n := failed(attempts(t, path))
	server := serve(t, "--fault", "content-filter=30%", "--fault", "500=2%")
	args := []string{
		"store", "classify", "--model", "my-judge", "--store", path, "--json",
		"--providers", judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 16}"),
	}
	env := map[string]string{"SIM_KEY": "k"}
	stored := 0
	for round := 1; ; round++ {
		r := call(t, env, args...)
		sum := asked(t, r)
		if sum.Before != stored || sum.Answered+sum.Faulted != n-stored || sum.Unreadable != 0 {
			t.Fatalf("round %d: %+v, but %d of %d were left", round, sum, n-stored, n)
		}
		stored += sum.Answered
		checkOpinions(t, path, stored)
		if round == 1 && sum.Faulted == 0 || round > 20 {
			t.Fatalf("round %d: %+v, want some faults at first and none at the end", round, sum)
		}
		if sum.Faulted == 0 {
			if r.code != exitOK || sum.Fault != "" || stored != n {
				t.Errorf("exit code %d at the end, %+v", r.code, sum)
			}
			return
		}
		if r.code != exitIncomplete || sum.Fault == "" || !strings.Contains(r.err, sum.Fault) {
			t.Errorf("round %d: exit code %d, and %q lacks the fault %q", round, r.code, r.err,
				sum.Fault)
		}
	}
}

// TestRefusingJudgeEndsClassify also checks that runs never ask a judge.
func TestRefusingJudgeEndsClassify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	before := must(t, nil, "export", "--store", path).out
	broken := serve(t, "--fault", "401=100%")
	env := map[string]string{"SIM_KEY": "k"}
	r := call(t, env, "store", "classify", "--model", "my-judge", "--store", path, "--json",
		"--providers", judgeFile(t, dir, broken.url, "sim/judge", "{concurrency: 4}"))
	ended := strings.Contains(r.err, "assay: the model does not respond any more: ")
	if sum := asked(t, r); r.code != exitError || sum.Answered != 0 || sum.Faulted == 0 || !ended {
		t.Errorf("exit code %d, %+v\n%s", r.code, sum, r.err)
	}
	checkOpinions(t, path, 0)
	if must(t, nil, "export", "--store", path).out != before {
		t.Error("the refusing judge changed the export")
	}

	server := serve(t)
	file(t, dir, "providers.yaml", providersFile(server.url, "{concurrency: 16}"))
	experiment := file(t, dir, "more.yaml",
		"models: [sim/mute]\nvariants: [cot]\ntasks_per_type: 2\nproviders: providers.yaml\n")
	must(t, env, "run", experiment, "--store", path, "--display", "none")
	lanes := server.stats(t).PerLane
	if len(lanes) != 1 || lanes[0].Deployment != "sim-mute" {
		t.Errorf("a run of sim/mute asked %+v", lanes)
	}
	checkOpinions(t, path, 0)
}

// TestInterruptedClassifyKeepsAnswers interrupts classify. The next command asks only about the
// remaining outcomes.
func TestInterruptedClassifyKeepsAnswers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	n := failed(attempts(t, path))
	server := serve(t, "--latency", "50ms", "--latency-sigma", "0")
	args := []string{
		"store", "classify", "--model", "my-judge", "--store", path, "--json",
		"--providers", judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 2}"),
	}
	signals := make(chan os.Signal, 1)
	var out, errs bytes.Buffer
	ended := make(chan int)
	go func() {
		ended <- run(args, &process{
			in: strings.NewReader(""), out: &out, err: &errs, name: "assay", signals: signals,
			env: func(string) (string, bool) { return "k", true },
		})
	}()
	waitFor(t, func() bool { return server.stats(t).Requests >= 6 })
	signals <- syscall.SIGINT
	code := <-ended
	first := asked(t, result{code, out.String(), errs.String()})
	interrupted := code == exitInterrupted &&
		strings.Contains(errs.String(), "assay: interrupted\nhint: ")
	if !interrupted || first.Answered < 4 || first.Answered > n-4 || first.Faulted != 0 {
		t.Fatalf("exit code %d, %+v of %d\n%s", code, first, n, errs.String())
	}
	checkOpinions(t, path, first.Answered)
	judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 32}")
	rest := asked(t, must(t, map[string]string{"SIM_KEY": "k"}, args...))
	if rest.Before != first.Answered || rest.Answered != n-first.Answered {
		t.Errorf("second command: %+v, after %+v of %d outcomes", rest, first, n)
	}
	checkOpinions(t, path, n)
}
