package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/classify"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/run/opinion"
	"github.com/assay-eval/assay/internal/store"
)

// failures runs an experiment of which most outcomes are no full success, and
// returns its store.
func failures(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "failures.db")
	experiment := file(t, dir, "failures.yaml", "models: [sim/obedient, sim/searcher]\nvariants: [optimal, flawed_missing_step, flawed_parameter_error]\ntasks_per_type: 4\n")
	mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	return path
}

// failed counts the outcomes to have an opinion on.
func failed(all []assay.Attempt) (n int) {
	for _, a := range all {
		if a.Settles() && a.Level != assay.FullSuccess {
			n++
		}
	}
	return n
}

// opinions returns what a store holds.
func opinions(t *testing.T, path string) []store.Classification {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var all []store.Classification
	for o, err := range db.Classifications(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// opinionated checks that the opinions are on outcomes that are no full success,
// one on each at most, and as many as wanted.
func opinionated(t *testing.T, path string, want int) {
	t.Helper()
	category, seen := make(map[assay.TrialID]string), make(map[assay.TrialID]bool)
	for _, a := range attempts(t, path) {
		category[a.ID] = a.ErrorCategory
	}
	all := opinions(t, path)
	for _, o := range all {
		if category[o.Trial] == "" || o.RuleCategory != category[o.Trial] || seen[o.Trial] || !slices.Contains(classify.Categories, o.Category) || o.Reason == "" {
			t.Errorf("an opinion %+v on an outcome of the category %q, the second: %v", o, category[o.Trial], seen[o.Trial])
		}
		seen[o.Trial] = true
	}
	if len(all) != want {
		t.Errorf("%d opinions are stored, want %d", len(all), want)
	}
}

// asked returns what `assay classify --json` says.
func asked(t *testing.T, r result) opinion.Summary {
	t.Helper()
	var sum opinion.Summary
	decode(t, r.out, &sum)
	return sum
}

// TestClassify has every outcome that is no full success judged once, and
// leaves all that was stored as it is.
func TestClassify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	before, snapshot := must(t, nil, "export", "--store", path).out, snapshotOf(t, path)
	all := attempts(t, path)
	n := failed(all)
	if n < 80 || n == len(all) {
		t.Fatalf("%d of %d outcomes are no full success", n, len(all))
	}
	args := []string{"classify", "--model", "sim/judge", "--store", path, "--sim-latency", "0"}
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
		// With a limit the rest need not be looked at.
		if sum.Answered != step.answer || sum.Before > step.before || step.args == nil && sum.Before != step.before ||
			sum.Unreadable+sum.Faulted != 0 || sum.Opinions != stored || (sum.Tokens == 0) != (step.answer == 0) {
			t.Errorf("classify %v: %+v, want %d answers after %d", step.args, sum, step.answer, step.before)
		}
		opinionated(t, path, stored)
	}
	if after := must(t, nil, "export", "--store", path).out; after != before || snapshotOf(t, path) != snapshot {
		t.Error("opinions have changed the export or the snapshot")
	}
	sum := asked(t, must(t, nil, append(args, "--json")...))
	if total, same := tableOf(sum); total != n || same != sum.Agreed || sum.Kappa == nil || *sum.Kappa >= 1 {
		t.Errorf("a table of %d opinions, %d of which agree: %+v", total, same, sum)
	}
	text := must(t, nil, args...).out
	for _, want := range []string{
		fmt.Sprintf("sim/judge gave 0 opinions (%d before), 0 replies could not be read, 0 requests faulted; 0 tokens\n", n),
		fmt.Sprintf("The model agrees with the rules on %d of %d outcomes (Cohen's kappa %.2f).", sum.Agreed, n, *sum.Kappa),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	o := opinions(t, path)[0]
	shown := must(t, nil, "show", string(o.Trial), "--store", path).out
	if want := fmt.Sprintf("\n  sim/judge says %s, with confidence %.2f: %s\n", o.Category, o.Confidence, o.Reason); !strings.Contains(shown, want) {
		t.Errorf("show does not have %q:\n%s", want, shown)
	}
}

// tableOf returns how many opinions the table of a classification has, and on
// how many both say the same.
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

// TestClassifyOneExperiment asks about the outcomes of one experiment only.
func TestClassifyOneExperiment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	other := file(t, dir, "other.yaml", "models: [sim/mute]\nvariants: [cot]\ntasks_per_type: 1\n")
	must(t, nil, "run", other, "--store", path, "--sim-latency", "0", "--display", "none")
	sum := asked(t, must(t, nil, "classify", "--model", "sim/judge", "--store", path, "--experiment", "other", "--sim-latency", "0", "--json"))
	if sum.Answered != 5 || sum.Opinions != 5 {
		t.Errorf("%+v, want 5 answers", sum)
	}
	opinionated(t, path, 5)
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
		{[]string{"--model", "sim/jugde"}, exitUsage, "unknown built-in model \"sim/jugde\"\nhint: did you mean sim/judge?"},
		{[]string{"--model", "gpt-5-nano"}, exitUsage, "unknown built-in model \"gpt-5-nano\"\nhint: --providers FILE"},
		{[]string{"--model", "gpt-5-nano", "--providers", filepath.Join(dir, "providers.yaml")}, exitUsage, "no provider serves model gpt-5-nano\nhint: "},
		{[]string{"--model", "sim/judge", "--providers", filepath.Join(dir, "providers.yaml")}, exitUsage, "environment variable SIM_KEY is not set\n"},
		{[]string{"--model", "sim/judge", "--limit", "-1"}, exitUsage, "--limit is -1, want 0 or more"},
		{[]string{"--model", "sim/judge", "--experiment", "failure"}, exitError, "the store has no experiment \"failure\"\nhint: did you mean failures?"},
		{[]string{"--model", "sim/judge", "--store", filepath.Join(dir, "none.db")}, exitError, "store not found\nhint: "},
		{[]string{"failures"}, exitUsage, "hint: `assay classify --help`"},
	} {
		r := call(t, nil, append([]string{"classify", "--store", path}, tc.args...)...)
		if r.code != tc.code || !strings.Contains(r.err, tc.want) || r.out != "" {
			t.Errorf("classify %v: exit code %d, want %d with %q\n%s%s", tc.args, r.code, tc.code, tc.want, r.err, r.out)
		}
	}
	opinionated(t, path, 0)
}

// judgeFile is a providers file that has a deployment serve the model my-judge.
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

// TestClassifyUnreadable: a model that talks of something else is asked twice
// about each outcome and has no opinion; nothing is made up, and what it said
// counts as unreadable. The next command asks again.
func TestClassifyUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	n := failed(attempts(t, path))
	server := serve(t)
	args := []string{"classify", "--model", "my-judge", "--store", path, "--json", "--providers"}
	env := map[string]string{"SIM_KEY": "k"}

	r := call(t, env, append(args, judgeFile(t, dir, server.url, "sim/mute", "{concurrency: 8}"))...)
	if sum := asked(t, r); r.code != exitIncomplete || sum.Unreadable != n || sum.Answered+sum.Faulted+sum.Opinions != 0 || sum.CostUSD <= 0 {
		t.Errorf("exit code %d, %+v; want %d unreadable\n%s", r.code, sum, n, r.err)
	}
	if requests := server.stats(t).Requests; requests != int64(2*n) {
		t.Errorf("%d requests, want two for each of %d outcomes", requests, n)
	}
	opinionated(t, path, 0)

	sum := asked(t, must(t, env, append(args, judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 8}"))...))
	if sum.Answered != n || sum.Before != 0 {
		t.Errorf("%+v, want %d answers", sum, n)
	}
	opinionated(t, path, n)
	paid := 0.0
	for _, o := range opinions(t, path) {
		paid += o.CostUSD
	}
	if diff := paid - sum.CostUSD; diff > 1e-9 || diff < -1e-9 || paid == 0 {
		t.Errorf("opinions cost $%v, and the command says $%v", paid, sum.CostUSD)
	}
}

// TestClassifyUnderFaults: an outcome on which a request faults is left out and
// counted, and the same command asks about it again.
func TestClassifyUnderFaults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	n := failed(attempts(t, path))
	server := serve(t, "--fault", "content-filter=30%", "--fault", "500=2%")
	args := []string{"classify", "--model", "my-judge", "--store", path, "--json", "--providers", judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 16}")}
	env := map[string]string{"SIM_KEY": "k"}
	stored := 0
	for round := 1; ; round++ {
		r := call(t, env, args...)
		sum := asked(t, r)
		if sum.Before != stored || sum.Answered+sum.Faulted != n-stored || sum.Unreadable != 0 {
			t.Fatalf("round %d: %+v, where %d of %d were left", round, sum, n-stored, n)
		}
		stored += sum.Answered
		opinionated(t, path, stored)
		if round == 1 && sum.Faulted == 0 || round > 20 {
			t.Fatalf("round %d: %+v, want faults that pass", round, sum)
		}
		if sum.Faulted == 0 {
			if r.code != exitOK || sum.Fault != "" || stored != n {
				t.Errorf("exit code %d at the end, %+v", r.code, sum)
			}
			return
		}
		if r.code != exitIncomplete || sum.Fault == "" || !strings.Contains(r.err, sum.Fault) {
			t.Errorf("round %d: exit code %d, the fault %q is not in %q", round, r.code, sum.Fault, r.err)
		}
	}
}

// TestJudgeThatRefuses ends the command at once, and nothing else: runs ask no
// judge, so they have nothing to wait for.
func TestJudgeThatRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	before := must(t, nil, "export", "--store", path).out
	broken := serve(t, "--fault", "401=100%")
	env := map[string]string{"SIM_KEY": "k"}
	r := call(t, env, "classify", "--model", "my-judge", "--store", path, "--json", "--providers", judgeFile(t, dir, broken.url, "sim/judge", "{concurrency: 4}"))
	if sum := asked(t, r); r.code != exitError || sum.Answered != 0 || sum.Faulted == 0 || !strings.Contains(r.err, "assay: the model does not respond any more: ") {
		t.Errorf("exit code %d, %+v\n%s", r.code, sum, r.err)
	}
	opinionated(t, path, 0)
	if must(t, nil, "export", "--store", path).out != before {
		t.Error("a judge that refuses has changed the export")
	}

	server := serve(t)
	file(t, dir, "providers.yaml", providersFile(server.url, "{concurrency: 16}"))
	experiment := file(t, dir, "more.yaml", "models: [sim/mute]\nvariants: [cot]\ntasks_per_type: 2\nproviders: providers.yaml\n")
	must(t, env, "run", experiment, "--store", path, "--display", "none")
	lanes := server.stats(t).PerLane
	if len(lanes) != 1 || lanes[0].Deployment != "sim-mute" {
		t.Errorf("a run of sim/mute asked %+v", lanes)
	}
	opinionated(t, path, 0)
}

// TestClassifyInterrupted: a signal ends the command, what was answered is
// stored, and the next one asks about the rest only.
func TestClassifyInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := failures(t, dir)
	n := failed(attempts(t, path))
	server := serve(t, "--latency", "50ms", "--latency-sigma", "0")
	args := []string{"classify", "--model", "my-judge", "--store", path, "--json", "--providers", judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 2}")}
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
	if code != exitInterrupted || !strings.Contains(errs.String(), "assay: interrupted\nhint: ") || first.Answered < 4 || first.Answered > n-4 || first.Faulted != 0 {
		t.Fatalf("exit code %d, %+v of %d\n%s", code, first, n, errs.String())
	}
	opinionated(t, path, first.Answered)
	judgeFile(t, dir, server.url, "sim/judge", "{concurrency: 32}")
	rest := asked(t, must(t, map[string]string{"SIM_KEY": "k"}, args...))
	if rest.Before != first.Answered || rest.Answered != n-first.Answered {
		t.Errorf("%+v after %+v, of %d", rest, first, n)
	}
	opinionated(t, path, n)
}

// TestUntilInterrupted: a signal ends the work, whose own error it replaces;
// without one the work's error is given.
func TestUntilInterrupted(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	p := &process{signals: signals}
	broken := errors.New("broken")
	for _, want := range []error{nil, broken} {
		if got := untilInterrupted(t.Context(), p, func(context.Context) error { return want }); got != want {
			t.Errorf("error %v, want %v", got, want)
		}
	}
	signals <- syscall.SIGTERM
	err := untilInterrupted(t.Context(), p, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return errors.New("the signal was not noticed")
		}
	})
	if exitCode(err) != exitInterrupted || !strings.HasPrefix(err.Error(), "interrupted\n") {
		t.Errorf("exit code %d for %v", exitCode(err), err)
	}
	signals <- syscall.SIGTERM
	err = untilInterrupted(t.Context(), p, func(ctx context.Context) error {
		<-ctx.Done()
		return nil // it was done by then
	})
	if err != nil {
		t.Errorf("work that was done has the error %v", err)
	}
}

// TestShowOfTags: a trial under the protocol of tags is shown with the luck of
// its calls, its mistakes and its verdict, and its prompt is what comes before
// the first reply.
func TestShowOfTags(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "tags.db")
	experiment := file(t, dir, "tags.yaml", "models: [sim/obedient]\nvariants: [flawed_parameter_error]\nseverities: [light]\nreliabilities: [0.6]\nprotocol: tags\ntasks_per_type: 4\n")
	mustProgram(t, "run", experiment, "--store", path, "--sim-latency", "0", "--display", "none")
	worked := regexp.MustCompile(`(?m)^    \((\w+): chance 0\.600, luck 0\.\d{3}: worked\)$`)
	unlucky := regexp.MustCompile(`(?m)^    \((\w+): chance 0\.600, luck [01]\.\d{3}: failed, [A-Z_]+\)$`)
	mistaken := regexp.MustCompile(`(?m)^    \((\w+): a mistake, INVALID_INPUT\)$`)
	n := make(map[string]int)
	for _, a := range attempts(t, path) {
		text := must(t, nil, "show", string(a.ID), "--store", path).out
		found := map[string]int{
			"worked":  len(worked.FindAllString(text, -1)),
			"failed":  len(unlucky.FindAllString(text, -1)),
			"mistake": len(mistaken.FindAllString(text, -1)),
		}
		want := map[string]int{"worked": len(a.ExecutedTools), "failed": a.Failures, "mistake": a.Mistakes}
		for what, count := range want {
			if found[what] != count {
				t.Errorf("trial %s: %d calls are shown as %s, want %d\n%s", a.ID, found[what], what, count, text)
			}
			n[what] += count
		}
		for _, want := range []string{
			"flawed_parameter_error (light)", "protocol tags", "\n  <tool_call>",
			fmt.Sprintf("\n%s, ended by %s after %d turns and %d calls\n", a.Level, a.Ended, a.Outcome.Turns, a.ToolCalls),
			fmt.Sprintf("\n  calls: %d mistakes, %d failed by chance", a.Mistakes, a.Failures),
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the text of trial %s lacks %q:\n%s", a.ID, want, text)
			}
		}
		prompt := must(t, nil, "show", string(a.ID), "--store", path, "--prompt").out
		if !strings.HasPrefix(prompt, "── system ──\n") || !strings.Contains(prompt, "\n── user ──\n") || strings.Contains(prompt, "assistant") ||
			worked.MatchString(prompt) || !strings.Contains(text, indent(strings.TrimPrefix(prompt[:strings.Index(prompt, "\n\n── user")], "── system ──\n"), "  ")) {
			t.Errorf("the prompt of trial %s is no beginning of it:\n%s", a.ID, prompt)
		}
	}
	for what, count := range n {
		if count == 0 {
			t.Errorf("no call of the whole experiment is shown as %s", what)
		}
	}
}

// TestShowPrompt: without a trial the templates are shown, with their hash, and
// without any of both the user is told how to name a trial.
func TestShowPrompt(t *testing.T) {
	t.Parallel()
	text := must(t, nil, "show", "--prompt").out
	if !strings.HasPrefix(text, "templates "+episode.TemplatesHash+"\n") {
		t.Errorf("it does not begin with the hash:\n%.200s", text)
	}
	var object struct {
		Hash      string
		Templates map[string]string
	}
	decode(t, must(t, nil, "show", "--prompt", "--json").out, &object)
	if object.Hash != episode.TemplatesHash || len(object.Templates) < 4 {
		t.Errorf("hash %s, %d templates", object.Hash, len(object.Templates))
	}
	for name, body := range object.Templates {
		if !strings.Contains(text, "\n── "+name+" ──\n"+body) {
			t.Errorf("the text lacks the template %s", name)
		}
	}
	r := call(t, nil, "show", "--store", filepath.Join(t.TempDir(), "none.db"))
	if r.code != exitUsage || !strings.Contains(r.err, "no trial is named\nhint: `assay export` lists trials") {
		t.Errorf("show without a trial: exit code %d\n%s", r.code, r.err)
	}
}
