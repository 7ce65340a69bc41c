package bench

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/plan"
)

var twoLanes = []Lane{{"sim-optimal-1", 120, 0}, {"sim-optimal-2", 0, 5000}}

func TestServerArgs(t *testing.T) {
	t.Parallel()
	got := Scenario{Server: []string{"--latency", "1s"}, Lanes: twoLanes}.serverArgs()
	want := strings.Fields("sim serve --addr 127.0.0.1:0 --latency 1s --limit sim-optimal-1:rpm=120 --limit sim-optimal-2:tpm=5000")
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestFiles: the program reads what the rig writes, and means the same by it.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		scenario Scenario
		trials   int // planned, 5 types of task
		limits   map[string]lane.Limits
	}{
		{"one lane", Scenario{Model: "sim/mute", Trials: 5000, Limits: "concurrency: 7"}, 5000, map[string]lane.Limits{"sim/mute": {Concurrency: 7}}},
		{"few trials", Scenario{Model: "sim/mute", Trials: 45}, 45, map[string]lane.Limits{"sim/mute": {}}},
		{
			"stated",
			Scenario{Model: "sim/optimal", Trials: 500, Lanes: twoLanes, Stated: true},
			500,
			map[string]lane.Limits{"sim-optimal-1": {RPM: 120}, "sim-optimal-2": {TPM: 5000}},
		},
		{
			"not stated",
			Scenario{Model: "sim/optimal", Trials: 500, Lanes: twoLanes},
			500,
			map[string]lane.Limits{"sim-optimal-1": {}, "sim-optimal-2": {}},
		},
	} {
		tc.scenario.Text = "limits: {turns: 3}"
		rig := &Rig{Dir: t.TempDir()}
		path, err := rig.Files(tc.scenario, "http://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		e, err := plan.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := 5 * int(e.TasksPerType) * e.Repeats; got != tc.trials || e.Limits.Turns != 3 || !slices.Equal(e.Models, []string{tc.scenario.Model}) {
			t.Errorf("%s: %d trials of %v with %d turns, want %d", tc.name, got, e.Models, e.Limits.Turns, tc.trials)
		}
		providers, err := plan.LoadProviders(e.Providers, func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		limits := make(map[string]lane.Limits)
		for _, l := range providers.Lanes(tc.scenario.Model) {
			limits[l.Deployment] = l.Serve.Limits
			if l.Endpoint.BaseURL != "http://127.0.0.1:1/v1" || l.KeyName != keyName {
				t.Errorf("%s: lane %s at %s", tc.name, l.Name(), l.Endpoint.BaseURL)
			}
		}
		if diff := cmp.Diff(tc.limits, limits); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// TestPathsDiffer: no file of a rig is another's.
func TestPathsDiffer(t *testing.T) {
	t.Parallel()
	rig := &Rig{Dir: "d"}
	a, b := rig.Path("x.db"), rig.Path("x.db")
	if a == b || filepath.Dir(a) != "d" {
		t.Errorf("paths %s and %s", a, b)
	}
}

func TestDisplay(t *testing.T) {
	t.Parallel()
	var d Display
	for _, line := range []string{
		`{"event":"start","planned":9,"done":4,"models":["a","b"]}`,
		`{"event":"note","text":"hello"}`,
		`{"event":"progress","models":[{"done":3},{"done":4}]}`,
	} {
		d.read([]byte(line))
	}
	if d.Shown != 7 {
		t.Errorf("%d trials shown as done, want 7", d.Shown)
	}
	d.read([]byte(`{"event":"progress","models":[{"done":9`)) // cut off
	d.read([]byte(`{"event":"done","planned":9,"done":8,"models":null,"lanes":[{"occupancy":0.5}]}`))
	if d.Shown != 8 || d.Undone() != 1 || d.Occupancy() != 0.5 {
		t.Errorf("shown %d, undone %d, occupancy %v; want 8, 1, 0.5", d.Shown, d.Undone(), d.Occupancy())
	}
}
