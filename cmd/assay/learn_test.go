package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/session"
)

// TestLearnedLimitsAreRemembered checks that a server without stated limits refuses a few
// requests of the first run but no request of the second, because the second run starts with
// the limits that the first one learned and printed. The status shows them with their evidence.
func TestLearnedLimitsAreRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "l.db")
	server := serve(t, "--limit", "concurrency=3", "--latency", "10ms", "--retry-after", "ms")
	file(t, dir, "providers.yaml", providersFile(server.url, "{}"))
	env := map[string]string{"SIM_KEY": "k"}
	text := "name: l\nmodels: [sim/optimal]\nvariants: [optimal]\ntasks_per_type: 5\n" +
		"providers: providers.yaml\n"
	first := must(t, env, "run", file(t, dir, "a.yaml", text), "--store", path, "--display", "none")
	want := "learned: rehearsal/SIM_KEY/sim/optimal allows 3 requests at once"
	if !strings.Contains(first.out, want) {
		t.Errorf("the output lacks %q:\n%s", want, first.out)
	}
	status := must(t, nil, "status", "l", "--store", path).out
	for _, want := range []string{
		"learned: rehearsal/SIM_KEY/sim/optimal allows 3 requests at once, after ",
		` (the endpoint: "Rate limit reached`, " Runs start with it until ",
	} {
		if !strings.Contains(status, want) {
			t.Errorf("the status lacks %q:\n%s", want, status)
		}
	}
	var statuses []session.Status
	inJSON := must(t, nil, "status", "l", "--json", "--store", path).out
	if err := json.Unmarshal([]byte(inJSON), &statuses); err != nil {
		t.Fatal(err)
	}
	for _, l := range statuses[0].Learned {
		if l.Accepted == 0 || l.Refused == 0 || l.Words == "" ||
			l.Expires.Sub(l.At) != job.LearnedFor {
			t.Errorf("learned without evidence: %+v", l)
		}
	}
	refused := server.stats(t).OverLimit
	if refused == 0 {
		t.Fatal("the first run was never refused")
	}
	again := file(t, dir, "b.yaml", text+"repeats: 2\n")
	must(t, env, "run", again, "--store", path, "--display", "none")
	if n := server.stats(t).OverLimit - refused; n != 0 {
		t.Errorf("the second run was refused %d times", n)
	}
}
