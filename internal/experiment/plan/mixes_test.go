package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// A single mix is written as a map and several as a list, in files and in stored experiments.
func TestMixesOfFaults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		mixes  []string
		stored string
	}{
		"": {[]string{""}, `null`},
		"failures: {kinds: {stale: 0.25, before: 0.5, after: 0.25}}\n": {
			[]string{"after=0.25,before=0.5,stale=0.25"}, `{"after":0.25,"before":0.5,"stale":0.25}`,
		},
		"failures: {kinds: {before: 1}}\n":   {[]string{""}, `{"before":1}`},
		"failures: {kinds: [{before: 1}]}\n": {[]string{""}, `{"before":1}`},
		"failures:\n  kinds:\n    - {before: 1}\n    - {after: 1}\n": {
			[]string{"", "after=1"}, `[{"before":1},{"after":1}]`,
		},
	} {
		mixes := load(t, "models: [a]\n"+text).Failures.Kinds
		if diff := cmp.Diff(want.mixes, mixes.Texts()); diff != "" {
			t.Errorf("%q: mixes (-want +got):\n%s", text, diff)
		}
		stored, err := json.Marshal([]assay.FaultMix(mixes))
		if len(mixes) > 0 {
			stored, err = json.Marshal(mixes)
		}
		if err != nil || string(stored) != want.stored {
			t.Errorf("%q is stored as %s, %v", text, stored, err)
		}
		var again plan.FaultMixes
		if err := json.Unmarshal(stored, &again); err != nil ||
			!slices.Equal(again.Texts(), mixes.Texts()) {
			t.Errorf("%q is read back as %v, %v", text, again, err)
		}
	}
}

// TestReliableToolsNeedOneMix checks that mixes of faults are compared only where tools can fail.
func TestReliableToolsNeedOneMix(t *testing.T) {
	t.Parallel()
	e := load(t, "models: [a]\nvariants: [optimal]\ndifficulties: [easy]\nreliabilities: [1, 0.5]\n"+
		"tasks_per_type: 2\nfailures: {kinds: [{after: 1}, {before: 1}]}\n")
	cells := make(map[string]int)
	for trial := range expand(t, e, 2).Trials("a") {
		cells[fmt.Sprint(trial.Reliability, trial.Faults)]++
	}
	n := 2 * len(assay.TaskTypes)
	want := map[string]int{"1after=1": n, "0.5after=1": n, "0.5": n}
	if diff := cmp.Diff(want, cells); diff != "" {
		t.Errorf("trials (-want +got):\n%s", diff)
	}
}
