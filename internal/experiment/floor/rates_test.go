//go:build !race

// The tests of this file play thousands of episodes, and the race detector would make them take
// minutes. TestFloorsAreKept plays under it.

package floor_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// TestFind checks the floors against what is known about the policies: hard tasks cannot be
// solved without skill, but every plan can be copied, and no floor is above the ceiling. It also
// fails if floors change, because floors in the caches of users would be out of date.
func TestFind(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := builtin(t)
	got := make(map[string]string)
	for _, w := range world.Simulated {
		planned := trials(t, lib, w)
		floors, err := floor.Find(t.Context(), lib, slices.Values(planned))
		if err != nil {
			t.Fatal(err)
		}
		for at, f := range floors {
			if at.Reliability == 1 {
				got[w+" "+at.Variant+" "+at.Difficulty] = fmt.Sprint(f)
			}
		}
		if w == world.Assay1Name {
			checkFloors(t, lib, floors, planned)
		}
	}
	want := map[string]string{
		"assay-1 baseline easy": "{sim/obedient 23 30}",
		"assay-1 baseline hard": "{sim/expert 0 30}",
		"assay-1 optimal easy":  "{sim/obedient 30 30}",
		"assay-1 optimal hard":  "{sim/obedient 30 30}",
		"pilot baseline easy":   "{sim/obedient 24 30}",
		"pilot baseline hard":   "{sim/sprayer 6 30}",
		"pilot optimal easy":    "{sim/obedient 30 30}",
		"pilot optimal hard":    "{sim/obedient 30 30}",
	}
	if !maps.Equal(got, want) {
		t.Errorf("floors %v, want %v: raise floor.Version", got, want)
	}
}

func checkFloors(
	t *testing.T, lib *library.Library, floors floor.Floors, planned []assay.Trial,
) {
	if len(floors) != 8 {
		t.Fatalf("%d conditions, want 8: %v", len(floors), floors)
	}
	for at, f := range floors {
		switch rate, _ := floors.Rate(at); {
		case at.Model != "" || at.TaskType != "":
			t.Errorf("a condition has a model or a task type: %+v", at)
		case at.Variant == assay.Optimal && (f.Policy != sim.Obedient || rate < .7):
			t.Errorf("%+v: %+v, want plans to be copied", at, f)
		case at.Variant == assay.Baseline && at.Difficulty == "easy" && rate < .5:
			t.Errorf("%+v: %+v, want words to solve easy tasks", at, f)
		case at.Variant == assay.Baseline && at.Difficulty == "hard" && rate > .15:
			t.Errorf("%+v: %+v, want no skill to solve hardly any hard task", at, f)
		}
	}
	ceilings := make(map[assay.Cell][]float64)
	for _, trial := range planned {
		task, err := lib.Task(t.Context(), trial.Task, trial.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		problem := workflow.ProblemOf(&trial, task.Required)
		best := workflow.Solve(lib.Catalog(), problem).Success()
		trial.Model, trial.TaskType = "", ""
		ceilings[trial.Cell] = append(ceilings[trial.Cell], best)
	}
	for at, all := range ceilings {
		sum := 0.0
		for _, best := range all {
			sum += best
		}
		if rate, ok := floors.Rate(at); !ok || rate > sum/float64(len(all))+.1 {
			t.Errorf("%+v: floor %.2f, ceiling %.2f", at, rate, sum/float64(len(all)))
		}
	}
}
