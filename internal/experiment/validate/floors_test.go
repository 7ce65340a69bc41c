//go:build !race

package validate

import (
	"math"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
)

// TestFloorsAgreeWithReports checks that the policy that solves most tasks of a library has the floor
// that a report shows for them without a plan on tools that hardly fail, and the same name.
func TestFloorsAgreeWithReports(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := supportDesk(t, "", "")
	v := newValidator(lib, "own-1")
	v.rounds = 1
	if err := v.playAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := v.conclude().Floors
	jobs, err := v.jobs(t.Context())
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	var planned []assay.Trial
	for _, j := range jobs {
		task, err := lib.Task(t.Context(), j.id, j.difficulty)
		if err != nil {
			t.Fatal(err)
		}
		p := taskPlayer{validator: v, task: &task}
		planned = append(planned, p.trial(cellOf("m", assay.Baseline, 1), assay.Listed, 0))
	}
	floors, err := floor.Find(t.Context(), lib, slices.Values(planned))
	if err != nil || len(floors) != 1 {
		t.Fatalf("%+v, %v", floors, err)
	}
	for at, f := range floors {
		rate, _ := floors.Rate(at, new(1.))
		if want := float64(found[0].Best) / float64(found[0].Tasks); math.Abs(rate-want) > 1e-6 || want == 0 || f.Policy != found[0].Policy {
			t.Errorf("the floor is %v by %s, want %v by %s", rate, f.Policy, want, found[0].Policy)
		}
	}
}
