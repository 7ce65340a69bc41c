package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/session"
)

// TestHungEndpointIsNotFullSpeed runs against a server of which some requests hang until the time
// limit. The summary has the time that produced no reply.
func TestHungEndpointIsNotFullSpeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := serveProgram(t, "--fault", "hang=20%")
	file(t, dir, "providers.yaml", providersFile(server, "{concurrency: 8}"))
	experiment := file(t, dir, "hung.yaml", `
models: [sim/optimal]
variants: [baseline]
tasks_per_type: 1
limits: {request: 100ms, trial: 10s}
providers: providers.yaml
`)
	env := map[string]string{"SIM_KEY": "k"}
	r := call(t, env, "run", experiment, "--store", filepath.Join(dir, "s.db"), "--display", "json")
	var sum session.Summary
	b, err := json.Marshal(lastEvent(t, r.out))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &sum); err != nil || len(sum.Lanes) != 1 {
		t.Fatalf("%v: %s%s", err, b, r.err)
	}
	if timeouts := sum.RequestFaults[assay.Timeout]; sum.Lanes[0].Lost < 0.1*float64(timeouts) ||
		timeouts < 3 {
		t.Errorf("%.1f s lost with %d timeouts of 0.1 s", sum.Lanes[0].Lost, timeouts)
	}
}
