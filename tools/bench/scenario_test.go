package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
)

var twoLanes = []laneLimits{{"sim-optimal-1", 120, 0}, {"sim-optimal-2", 0, 5000}}

func TestServerArgs(t *testing.T) {
	t.Parallel()
	got := workload{server: []string{"--latency", "1s"}, lanes: twoLanes}.serverArgs()
	want := strings.Fields("sim serve --addr 127.0.0.1:0 --latency 1s " +
		"--limit sim-optimal-1:rpm=120 --limit sim-optimal-2:tpm=5000")
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestFilesMeanTheScenario checks that assay understands the files of a scenario
// as they were meant.
func TestFilesMeanTheScenario(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		scenario workload
		trials   int // planned, over 5 task types
		limits   map[string]lane.Limits
	}{
		{
			"one lane",
			workload{model: "sim/mute", trials: 5000, limits: "concurrency: 7"},
			5000,
			map[string]lane.Limits{"sim/mute": {Concurrency: 7}},
		},
		{
			"few trials",
			workload{model: "sim/mute", trials: 45},
			45,
			map[string]lane.Limits{"sim/mute": {}},
		},
		{
			"stated",
			workload{model: "sim/optimal", trials: 500, lanes: twoLanes, stated: true},
			500,
			map[string]lane.Limits{"sim-optimal-1": {RPM: 120}, "sim-optimal-2": {TPM: 5000}},
		},
		{
			"not stated",
			workload{model: "sim/optimal", trials: 500, lanes: twoLanes},
			500,
			map[string]lane.Limits{"sim-optimal-1": {}, "sim-optimal-2": {}},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.scenario.text = "limits: {turns: 3}"
			rig := &rig{dir: t.TempDir()}
			path, err := rig.writeFiles(tc.scenario, "http://127.0.0.1:1")
			if err != nil {
				t.Fatal(err)
			}
			e, err := plan.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			trials := 5 * int(e.TasksPerType) * e.Repeats
			models := []string{tc.scenario.model}
			if trials != tc.trials || e.Limits.Turns != 3 || !slices.Equal(e.Models, models) {
				t.Errorf("%d trials of %v with %d turns, want %d of %v with 3",
					trials, e.Models, e.Limits.Turns, tc.trials, models)
			}
			checkLanes(t, e.Providers, tc.scenario.model, tc.limits)
		})
	}
}

// checkLanes compares the lanes of a providers file with the expected limits.
func checkLanes(t *testing.T, path, model string, want map[string]lane.Limits) {
	t.Helper()
	providers, err := plan.LoadProviders(path, func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	limits := make(map[string]lane.Limits)
	for _, l := range providers.Lanes(model) {
		limits[l.Deployment] = l.Serve.Limits
		if l.Endpoint.BaseURL != "http://127.0.0.1:1/v1" || l.KeyName != keyName {
			t.Errorf("lane %s at %s", l.Name(), l.Endpoint.BaseURL)
		}
	}
	if diff := cmp.Diff(want, limits); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestDisplay(t *testing.T) {
	t.Parallel()
	var d displayEvents
	for _, line := range []string{
		`{"event":"start","planned":9,"done":4,"models":["a","b"]}`,
		`{"event":"note","text":"hello"}`,
		`{"event":"progress","done":7,"models":[{"done":3},{"done":4}]}`,
	} {
		d.read([]byte(line))
	}
	if d.shown != 7 {
		t.Errorf("%d trials displayed as done, want 7", d.shown)
	}
	d.read([]byte(`{"event":"progress","done":9,"models":[{"done":9`)) // cut off
	d.read([]byte(`{"event":"done","planned":9,"done":8,"models":null,"lanes":[{"occupancy":0.5}]}`))
	if d.shown != 8 || d.undone() != 1 || d.occupancy() != 0.5 {
		t.Errorf("shown %d, undone %d, occupancy %v; want 8, 1, 0.5",
			d.shown, d.undone(), d.occupancy())
	}
}
