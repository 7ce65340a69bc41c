package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/assay-eval/assay"
)

// odd stands between the program and a simulated server, and behaves as gateways do: it wants no
// key, refuses a temperature, comments on its replies, and fails in the middle of every fourth one
// with status 200. On a busy machine, slow requests are made a second time, and the slower of the two
// is cancelled.
type odd struct {
	t       *testing.T
	backend string
	// silent is true if the gateway does not report the usage. Then its replies do not fail.
	silent  bool
	replies atomic.Int64
}

func (o *odd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if key := r.Header.Get("Authorization"); key != "" {
		o.t.Errorf("the request has the key %q", key)
	}
	switch {
	case bytes.Contains(body, []byte(`"temperature"`)):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: temperature"}}`)
		return
	case o.replies.Add(1)%4 == 0 && !o.silent:
		_, _ = io.WriteString(w, `{"model":"sim/listed","choices":[{"finish_reason":"error",`+
			`"message":{"content":"The task is comp"},"error":{"code":502,"message":"lost"}}]}`)
		return
	}
	forward, err := http.NewRequestWithContext(r.Context(), http.MethodPost,
		o.backend+r.URL.Path, bytes.NewReader(body))
	if err != nil {
		o.t.Error(err)
		return
	}
	forward.Header.Set("Authorization", "Bearer any")
	resp, err := http.DefaultClient.Do(forward)
	if err == nil {
		defer resp.Body.Close()
	}
	if r.Context().Err() != nil {
		return
	}
	if err != nil {
		o.t.Error(err)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(resp.StatusCode)
	_, _ = io.WriteString(w, ": OPENROUTER PROCESSING\n\n")
	reply, err := io.ReadAll(resp.Body)
	if err != nil && r.Context().Err() == nil {
		o.t.Error(err)
	}
	if o.silent {
		reply = bytes.Replace(reply, []byte(`"usage":{`), []byte(`"unusual":{`), 1)
	}
	_, _ = w.Write(reply)
}

// TestStrangeGatewayChangesNoOutcome runs trials at an odd gateway. Their outcomes are the same as
// without it, and the setting that the gateway does not accept is stored and reported once.
func TestStrangeGatewayChangesNoOutcome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const text = "name: strange\nmodels: [sim/listed]\nvariants: [baseline, optimal]\n" +
		"tasks_per_type: 4\nsampling: {temperature: 0.5}\n"
	calm := filepath.Join(dir, "calm.db")
	must(t, nil, "run", file(t, dir, "calm.yaml", text), "--store", calm,
		"--sim-latency", "0", "--display", "none")

	gateway := httptest.NewServer(&odd{t: t, backend: serve(t).url})
	defer gateway.Close()
	file(t, dir, "providers.yaml", strings.Replace(
		providersFile(gateway.URL, "{concurrency: 4}"), "[SIM_KEY]", "none", 1))
	strange := filepath.Join(dir, "strange.db")
	experiment := file(t, dir, "strange.yaml", text+"providers: providers.yaml\n")
	r := must(t, nil, "run", experiment, "--store", strange, "--display", "plain")
	outcomesEqual(t, outcomes(t, calm), outcomes(t, strange))

	if n := strings.Count(r.out+r.err, "does not accept it: no temperature"); n != 1 {
		t.Errorf("the deviation is told %d times, want once:\n%s%s", n, r.out, r.err)
	}
	report := must(t, nil, "report", "strange", "--store", strange).out
	if !strings.Contains(r.out, " 2 warnings") ||
		!strings.Contains(report, "Requests differ from what was asked") {
		t.Errorf("the run does not count the deviation, or the report does not warn:\n%s%s", r.out, report)
	}
	for _, a := range attempts(t, strange) {
		// An attempt whose tries were all lost has no reply that could deviate.
		deviates := a.Deviations == "no temperature" || a.Deviations == "" && a.FaultKind != ""
		if !deviates || !strings.HasPrefix(a.Lane, "rehearsal/none/") {
			t.Errorf("attempt on %s deviates in %q", a.Lane, a.Deviations)
		}
		noScore(t, a)
	}
}

// TestLimitsHoldWithoutUsage checks that estimates stand for a usage that is not reported, in the
// budget of a run and in the limit of an episode, and that the output mentions it.
func TestLimitsHoldWithoutUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, budget, limit string
		ended               assay.Ended
	}{
		{"Tokens", "{tokens: 200000}", "{tokens: 1000}", assay.TokenLimit},
		{"Dollars", "{usd: 0.2}", "{usd: 0.001}", assay.CostLimit},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			limitWithoutUsage(t, test.budget, test.limit, test.ended)
		})
	}
}

// limitWithoutUsage runs an experiment with a budget for some 15 trials, and one with a limit for
// some two turns. The endpoint reports no usage and costs a dollar for a million tokens.
func limitWithoutUsage(t *testing.T, budget, limit string, ended assay.Ended) {
	dir := t.TempDir()
	gateway := httptest.NewServer(&odd{t: t, backend: serve(t).url, silent: true})
	defer gateway.Close()
	file(t, dir, "prices.yaml", "sim/listed: {input: 1, output: 1}\n")
	file(t, dir, "providers.yaml", "prices: prices.yaml\n"+strings.Replace(
		providersFile(gateway.URL, "{concurrency: 2}"), "[SIM_KEY]", "none", 1))
	const text = "models: [sim/listed]\nvariants: [optimal]\ntasks_per_type: 20\n" +
		"providers: providers.yaml\n"

	experiment := file(t, dir, "budget.yaml", text+"budget: "+budget+"\n")
	db := filepath.Join(dir, "budget.db")
	r := call(t, nil, "run", experiment, "--store", db, "--display", "plain")
	if r.code != exitIncomplete || !strings.Contains(r.out+r.err, "dollars count estimates") {
		t.Errorf("exit code %d without a note\n%s%s", r.code, r.out, r.err)
	}
	if n := len(attempts(t, db)); n < 5 || n > 30 {
		t.Errorf("%d attempts within %s, want some 15:\n%s%s", n, budget, r.out, r.err)
	}

	experiment = file(t, dir, "limit.yaml", text+"limits: "+limit+"\n")
	db = filepath.Join(dir, "limit.db")
	must(t, nil, "run", experiment, "--store", db, "--display", "none")
	limited := 0
	for _, a := range attempts(t, db) {
		if a.Outcome.Turns > 2 || a.CostUSD > 0 {
			t.Errorf("an episode with %s has %d turns for $%v", limit, a.Outcome.Turns, a.CostUSD)
		}
		if a.Ended == ended {
			limited++
		}
	}
	if limited == 0 {
		t.Error("no episode ended by its limit")
	}
}
