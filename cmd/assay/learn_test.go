package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestLearnedLimitsAreRemembered: a server whose limits nobody stated refuses a
// few requests of the first run and none of the second, which starts from what
// the first has learned. The user is told.
func TestLearnedLimitsAreRemembered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "l.db")
	server := serve(t, "--limit", "concurrency=3", "--latency", "10ms", "--retry-after", "ms")
	file(t, dir, "providers.yaml", providersFile(server.url, "{}"))
	env := map[string]string{"SIM_KEY": "k"}
	text := "name: l\nmodels: [sim/optimal]\nvariants: [optimal]\ntasks_per_type: 5\nproviders: providers.yaml\n"
	first := must(t, env, "run", file(t, dir, "a.yaml", text), "--store", path, "--display", "none")
	if want := "learned: rehearsal/SIM_KEY/sim/optimal allows 3 requests at once"; !strings.Contains(first.out, want) {
		t.Errorf("the run does not say %q:\n%s", want, first.out)
	}
	refused := server.stats(t).OverLimit
	if refused == 0 {
		t.Fatal("the first run was never refused")
	}
	must(t, env, "run", file(t, dir, "b.yaml", text+"repeats: 2\n"), "--store", path, "--display", "none")
	if again := server.stats(t).OverLimit - refused; again != 0 {
		t.Errorf("the second run was refused %d times", again)
	}
}
