package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLearnedLimitsAreRemembered checks that a server without stated limits refuses a few
// requests of the first run but no request of the second, because the second run starts with
// the limits that the first one learned and printed.
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
