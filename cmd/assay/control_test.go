package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
)

// TestControlChangesRun sends orders for lanes, limits and trials to a run. It checks them in the
// state of the run, in its results and in the store's log.
func TestControlChangesRun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "c.db")
	experiment := file(t, dir, "c.yaml", "name: c\nmodels: [sim/optimal, sim/listed]\n"+
		"variants: [optimal]\ntasks_per_type: 40\n")
	r := call(t, nil, "ctl", "status", "--store", path)
	if r.code != exitError || !strings.Contains(r.err, "no run is working on") {
		t.Errorf("without a run: exit code %d, %s", r.code, r.err)
	}
	var wg sync.WaitGroup
	var ended result
	wg.Go(func() {
		ended = call(t, nil, "run", experiment, "--store", path,
			"--display", "json", "--sim-latency", "300ms")
	})
	defer wg.Wait()
	waitFor(t, func() bool {
		return call(t, nil, "ctl", "status", "--store", path).code == 0
	})
	ctl := func(args ...string) string {
		t.Helper()
		return must(t, nil, append([]string{"ctl", "--store", path}, args...)...).out
	}
	if fi, err := os.Stat(path + ".ctl"); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, error %v; want mode 600", fi.Mode(), err)
	}
	if got := ctl("pause"); got != "paused 2 lanes: builtin, builtin\n" {
		t.Errorf("pause printed %q", got)
	}
	ctl("set", "sim/optimal", "concurrency=3")
	ctl("cancel", "sim/listed")
	// All lanes are paused, so episodes in flight end and no others start.
	var state terminal.Progress
	waitFor(t, func() bool {
		if err := json.Unmarshal([]byte(ctl("status", "--json")), &state); err != nil {
			t.Fatal(err)
		}
		return state.Models[0].Lanes[0].InFlight == 0 &&
			state.Models[1].Lanes[0].InFlight == 0
	})
	l := state.Models[0].Lanes[0]
	if !l.Paused || l.Limits.Concurrency != 3 || l.Waits != "your pause" {
		t.Errorf("lane %+v, want it paused with concurrency 3", l)
	}
	for _, tc := range []struct {
		name, args string
		code       int
		message    string
	}{
		{"unknown lane", "pause other", exitError, "no lane or model of this run is called other"},
		{"known and unknown", "pause sim/optimal sim/opimal", exitError, "did you mean sim/optimal?"},
		{"unknown trial", "cancel 0123abcd", exitError, "no model or trial of this run is called 0123abcd"},
		{"unknown model", "requeue sim/lisetd", exitError, "did you mean sim/listed?"},
		{"misspelt limit", "set sim/optimal concurency=3", exitUsage, "did you mean concurrency"},
		{"limit in words", "set sim/optimal rpm=many", exitUsage, "not a whole number"},
		{"no limit", "set sim/optimal", exitUsage, "no limit to set"},
		{"no trial", "cancel", exitUsage, "was given 0 arguments"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			args := append([]string{"ctl", "--store", path}, strings.Fields(tc.args)...)
			r := call(t, nil, args...)
			if r.code != tc.code || !strings.Contains(r.err, tc.message) {
				t.Errorf("exit code %d, %s; want %d, %s", r.code, r.err, tc.code, tc.message)
			}
		})
	}
	ctl("set", "sim/optimal", "concurrency=200")
	ctl("resume")
	wg.Wait()
	event := lastEvent(t, ended.out)
	cancelled := event["not_run"].(map[string]any)["cancelled"].(float64)
	if ended.code != exitIncomplete || event["done"].(float64) >= 400 || cancelled < 100 {
		t.Errorf("exit code %d, %v; want cancelled and pending trials of sim/listed",
			ended.code, event)
	}
	if _, err := os.Stat(path + ".ctl"); err == nil {
		t.Error("the socket still exists")
	}
	checkControls(t, path)
	// Cancelled trials are pending, so the next run completes them.
	must(t, nil, "run", experiment, "--store", path, "--display", "none", "--sim-latency", "0")
}

// TestCtlStatusQuotesTheEndpoint checks the output about a lane that waits because its endpoint
// asks for it, and about one that does not wait.
func TestCtlStatusQuotesTheEndpoint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	writeState(&process{out: &out}, &terminal.Progress{Models: []terminal.ModelState{{
		Model: "m", Lanes: []terminal.LaneState{
			{Lane: "gw/A/m", Waits: "rate_limited", Words: "come back in a minute"},
			{Lane: "gw/B/m"},
		},
	}}})
	const want = "endpoint: gw/A/m waits for rate_limited: \"come back in a minute\"\n"
	if got := out.String(); !strings.HasSuffix(got, "\n"+want) {
		t.Errorf("the status does not end with %q:\n%s", want, got)
	}
}

func checkControls(t *testing.T, path string) {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	controls, err := db.Controls(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	var verbs []string
	for _, c := range controls {
		var o session.Order
		if err := json.Unmarshal(c.Command, &o); err != nil {
			t.Fatal(err)
		}
		verbs = append(verbs, o.Do)
	}
	if got := strings.Join(verbs, " "); got != "pause set cancel set resume" {
		t.Errorf("logged %q", got)
	}
}

// waitFor polls until ok returns true or the test's deadline passes.
func waitFor(t testing.TB, ok func() bool) {
	t.Helper()
	for !ok() {
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended while it waited")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// TestRefusedKeyIsLoud runs with two keys, one of which the server refuses. Everything that reports
// the run names the closed lane.
func TestRefusedKeyIsLoud(t *testing.T) {
	t.Parallel()
	server := serve(t, "--key", "GOOD_KEY")
	dir := t.TempDir()
	file(t, dir, "providers.yaml", "providers:\n  gw:\n    base_url: "+server.url+"/v1\n"+
		"    keys: [GOOD_KEY, BAD_KEY]\n    models: {sim/optimal: {limits: {concurrency: 2}}}\n")
	plan := file(t, dir, "e.yaml", "name: keys\nmodels: [sim/optimal]\nvariants: [optimal]\n"+
		"difficulties: [easy]\ntask_types: [basic_task]\ntasks_per_type: 10\n"+
		"reliabilities: [1]\nproviders: providers.yaml\n")
	db := filepath.Join(dir, "a.db")
	env := map[string]string{"GOOD_KEY": "canary-GOOD_KEY", "BAD_KEY": "wrong-canary-0123"}
	r := must(t, env, "run", plan, "--store", db, "--display", "json")
	closed, _ := lastEvent(t, r.out)["closed"].(map[string]any)
	const lane = "gw/BAD_KEY/sim/optimal"
	reason, _ := closed[lane].(string)
	if len(closed) != 1 || !strings.Contains(reason, "auth") {
		t.Errorf("the done event has the closed lanes %v, want %s", closed, lane)
	}
	shown := must(t, nil, "status", "--store", db).out
	text := strings.Join(strings.Fields(shown), " ")
	if !strings.Contains(text, lane+" was closed: ") || !strings.Contains(text, "BAD_KEY") {
		t.Errorf("status does not name the closed lane:\n%s", shown)
	}
	if strings.Contains(r.out+r.err+shown, "canary") {
		t.Error("a key is shown")
	}
}
