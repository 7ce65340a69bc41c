//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/stat"
)

func planOf(t *testing.T, env map[string]string, args ...string) job.Estimate {
	t.Helper()
	var out job.Estimate
	r := must(t, env, append([]string{"plan", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(r.out), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestPlanForecastsWithoutKey checks the counts, the cost and the bottleneck of a plan that has no
// key and sends no request.
func TestPlanForecastsWithoutKey(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "p.db")
	file(t, dir, "providers.yaml", `
providers:
  gateway:
    base_url: http://127.0.0.1:9/v1
    keys: [KEY_0, KEY_1]
    models:
      big: {limits: {concurrency: 10, rpm: 100}, price: {input: 1, output: 2}}
      sim/listed: {limits: {concurrency: 4}}
`)
	experiment := file(t, dir, "p.yaml", "name: p\nmodels: [big, sim/listed]\nvariants: [cot]\n"+
		"tasks_per_type: 20\nrepeats: 50\nproviders: providers.yaml\n")
	out := planOf(t, nil, experiment, "--store", path)
	big := out.Models[0]
	if out.Cells != 10 || out.Planned != 10_000 || out.Done != 0 || big.Trials != 5000 {
		t.Errorf("%+v", out)
	}
	// The bottleneck is two lanes of 100 requests a minute.
	minutes := float64(big.Requests) / 200
	if math.Abs(big.Wall/60/minutes-1) > 0.03 ||
		!strings.HasPrefix(big.Bound, "rpm limit of gateway/KEY_") {
		t.Errorf("%v minutes with bottleneck %q; want about %v with an rpm limit",
			big.Wall/60, big.Bound, minutes)
	}
	want := float64(big.InputTokens)*1e-6 + float64(big.OutputTokens)*2e-6
	if math.Abs(big.Cost-want) > 0.01*want || out.Cost != big.Cost {
		t.Errorf("cost %v, want %v", big.Cost, want)
	}
	if !strings.Contains(big.Basis, "rehearsal, assuming 3s a reply") {
		t.Errorf("basis %q", big.Basis)
	}
	text := must(t, nil, "plan", experiment, "--store", path).out
	for _, want := range []string{
		"10 cells, 10000 trials planned, 0 done, 10000 pending",
		"rpm limit of gateway/KEY_", "Models run side by side",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestPlanOfUnknownEndpointIsARange checks that the time is a range, with the reason, unless the
// stated limits or earlier attempts decide about it.
func TestPlanOfUnknownEndpointIsARange(t *testing.T) {
	t.Parallel()
	const speed, limits = "the endpoint's speed is unknown", "the endpoint's limits are unknown"
	const both = "the endpoint's speed and limits are unknown"
	env := map[string]string{"K": "key"}
	for stated, want := range map[string][2]string{ // before and after attempts
		"":                                     {both, limits},
		"limits: {concurrency: 5}":             {speed, ""},
		"limits: {concurrency: 200, rpm: 600}": {"", ""},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "u.db")
		server := serve(t)
		file(t, dir, "providers.yaml", "providers: {gw: {base_url: "+server.url+"/v1, keys: [K], "+
			"models: {sim/listed: {"+stated+"}}}}")
		text := "name: u\nmodels: [sim/listed]\nvariants: [cot]\ntasks_per_type: 2\n" +
			"providers: providers.yaml\n"
		check := func(when, want string) {
			t.Helper()
			e := file(t, dir, "e.yaml", text+"repeats: 99\n")
			out := planOf(t, nil, e, "--store", path)
			m := out.Models[0]
			ranges := m.Low <= m.Wall && m.Wall < m.High
			if out.Unknown != want || m.Range != out.Range || ranges != (want != "") {
				t.Errorf("%q %s: %+v, want %q", stated, when, m, want)
			}
			said := must(t, nil, "plan", e, "--store", path).out
			if !strings.Contains(said, want) || (want != "") != strings.Contains(said, " to ") {
				t.Errorf("%q %s:\n%s", stated, when, said)
			}
		}
		check("at first", want[0])
		run := must(t, env, "run", file(t, dir, "r.yaml", text), "--store", path,
			"--display", "plain")
		if told := strings.Contains(run.err, "("+both+")"); told != (want[0] == both) {
			t.Errorf("%q: the run begins with\n%s", stated, run.err)
		}
		check("after attempts", want[1])
	}
}

// TestForecastLearnsFromAttempts checks that pending trials are forecast from earlier attempts,
// to within ten percent.
func TestForecastLearnsFromAttempts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f.db")
	text := "name: f\nmodels: [sim/listed]\nvariants: [optimal]\ntasks_per_type: 10\n"
	must(t, nil, "run", file(t, dir, "f.yaml", text), "--store", path,
		"--display", "none", "--sim-latency", "1ms")
	requests := 0
	for _, a := range attempts(t, path) {
		requests += a.Requests
	}
	out := planOf(t, nil, file(t, dir, "g.yaml", text+"repeats: 3\n"), "--store", path)
	m := out.Models[0]
	if out.Done != 50 || m.Trials != 100 || m.Basis != "50 earlier attempts" {
		t.Errorf("%+v", out)
	}
	if math.Abs(float64(m.Requests)/float64(2*requests)-1) > 0.1 {
		t.Errorf("%d requests for 100 trials, although 50 trials took %d", m.Requests, requests)
	}
}

// TestPlanCountsUnsolvableTasks plans tasks of one and of three steps with limits that leave two
// calls.
func TestPlanCountsUnsolvableTasks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "models: [sim/listed]\ntask_types: [simple_task, basic_task]\n" +
		"tasks_per_type: 4\nreliabilities: [0, 0.5]\n"
	for limits, want := range map[string]int{"": 0, "limits: {turns: 3}\n": 4} {
		e := file(t, dir, fmt.Sprintf("e%d.yaml", want), text+limits)
		u := planOf(t, nil, e, "--store", filepath.Join(dir, "none.db")).Unsolvable
		said := strings.Contains(must(t, nil, "plan", e, "--store", filepath.Join(dir, "none.db")).out,
			"No policy can solve 4 of 8 tasks")
		if u.Tasks != want || u.Of != 8 || said != (want > 0) {
			t.Errorf("%q: %+v, want %d of 8; told: %v", limits, u, want, said)
		}
	}
}

// TestPlanNamesPartsWithFewSequences checks that every part that is clustered by sequence is named,
// and no other.
func TestPlanNamesPartsWithFewSequences(t *testing.T) {
	t.Parallel()
	power := func(part, cluster string, sequences int) job.Power {
		return job.Power{Part: part, Tasks: 120, Sequences: sequences, Repeats: 1, Cluster: cluster}
	}
	for want, all := range map[string][]job.Power{
		"": {power("a", stat.ByTask, 20), power("b", stat.ByTask, 1)},
		"compared: part b has 1 sequence in 120 tasks.": {
			power("a", stat.ByTask, 20), power("b", stat.BySequence, 1),
		},
		"compared: part a has 6 sequences in 120 tasks, part b has 1 sequence in 120 tasks.": {
			power("a", stat.BySequence, 6), power("b", stat.BySequence, 1),
		},
	} {
		var out strings.Builder
		writePower(&process{out: &out}, all)
		_, got, _ := strings.Cut(out.String(), "are what is ")
		if got = strings.TrimSpace(got); got != want {
			t.Errorf("%q, want %q in\n%s", got, want, &out)
		}
	}
}

// TestPlanHasExactCeiling compares ceilings for three required tools in ten calls with the
// binomial tail and the mean of the negative binomial distribution.
func TestPlanHasExactCeiling(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e := file(t, dir, "e.yaml",
		"models: [sim/listed]\ntask_types: [basic_task]\nreliabilities: [1, 0.5]\n")
	out := planOf(t, nil, e, "--store", filepath.Join(dir, "none.db"))
	tail := 1 - (1+10+45)/1024.
	// The third success is call n with probability C(n-1,2)/2^n. Without it, an episode makes
	// ten calls.
	calls := 10 * (1 - tail)
	for n := 3; n <= 10; n++ {
		calls += float64(n*(n-1)*(n-2)/2) / float64(int(1)<<n)
	}
	want := []job.Ceiling{ // of 20 tasks in three variants
		{Reliability: 1, Best: new(1.), Calls: new(3.), Trials: 60},
		{Reliability: 0.5, Best: &tail, Calls: &calls, Trials: 60},
	}
	if diff := cmp.Diff(want, out.Ceilings, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("ceilings (-want +got):\n%s", diff)
	}
}
