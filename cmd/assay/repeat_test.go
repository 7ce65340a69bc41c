//go:build !race

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRepeat plans a published experiment again: as it is, from a report of other tasks, and with an own
// library that is elsewhere.
func TestRepeat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, nil, "init", filepath.Join(dir, "desk"))
	experiment := file(t, filepath.Join(dir, "desk"), "e.yaml", "name: e\nlibrary: tasks.yaml\n"+
		"models:\n- {name: sim/obedient, effort: high}\n- sim/expert\nvariants: [hasty, optimal]\nreliabilities: [1, 0.8]\n"+
		"task_types: [refund]\nlimits: {turns: 9}\nsampling: {temperature: 0.5, max_tokens: 900}\n")
	store := filepath.Join(dir, "e.db")
	must(t, nil, "run", experiment, "--store", store, "--display", "none", "--sim-latency", "0")
	report := must(t, nil, "report", "--store", store, "--json").out

	here := file(t, filepath.Join(dir, "desk"), "report.json", report)
	var r struct {
		Same        bool `json:"same_trials"`
		Trials      int  `json:"trials"`
		Differences []struct{ Setting string }
	}
	decode(t, must(t, nil, "repeat", here, "--json").out, &r)
	if !r.Same || r.Trials == 0 || len(r.Differences) > 0 {
		t.Errorf("the same experiment differs: %+v", r)
	}

	// Running the report adds no trial to the store, because all are done.
	again := must(t, nil, "run", here, "--store", store, "--display", "none", "--sim-latency", "0")
	if !strings.Contains(again.out+again.err, "nothing to run") && !strings.Contains(again.out, "done") {
		t.Errorf("running the report again: %s", again.out)
	}
	if strings.Contains(report, filepath.Join(dir, "desk")) {
		t.Error("the report names a folder of this machine")
	}
	if n := len(attempts(t, store)); n != r.Trials {
		t.Errorf("the store has %d attempts at %d trials after the report was run", n, r.Trials)
	}

	// A library beside the report is found, and one with another task is noticed.
	away := filepath.Join(dir, "away")
	if err := os.MkdirAll(away, 0o755); err != nil {
		t.Fatal(err)
	}
	moved := file(t, away, "report.json", report)
	wantError(t, exitUsage, "put the library", "repeat", moved)
	for _, name := range []string{"tasks.yaml", "tools.yaml", "tools.star"} {
		text, err := os.ReadFile(filepath.Join(dir, "desk", name))
		if os.IsNotExist(err) {
			continue
		}
		file(t, away, name, string(text))
	}
	decode(t, must(t, nil, "repeat", moved, "--json").out, &r)
	if !r.Same {
		t.Errorf("the same library at another place differs: %+v", r)
	}
	text := read(t, filepath.Join(away, "tasks.yaml"))
	file(t, away, "tasks.yaml", strings.Replace(text, "The lamp of order", "The desk lamp of order", 1))
	got := call(t, nil, "repeat", moved)
	if got.code != exitError || !strings.Contains(got.out, "not the published ones") || !strings.Contains(got.out, "library") {
		t.Errorf("a changed library: exit code %d\n%s%s", got.code, got.out, got.err)
	}
	changed := strings.Replace(report, `\"temperature\":0.5`, `\"temperature\":1.9`, 1)
	wantError(t, exitUsage, "the SHA-256 that it states", "repeat", file(t, away, "changed.json", changed))
	part := must(t, nil, "report", "--store", store, "--json", "--where", "model=sim/expert").out
	wantError(t, exitUsage, "the report of a part", "repeat", file(t, away, "part.json", part))
	wantError(t, exitUsage, "cannot be a JSON array", "repeat", file(t, dir, "list.json", `[]`))
	wantError(t, exitUsage, "no experiment's specification", "repeat", file(t, dir, "other.json", `{"a": 1}`))
	wantError(t, exitUsage, "no report in JSON", "repeat", file(t, dir, "broken.json", `{"a": `))
}
