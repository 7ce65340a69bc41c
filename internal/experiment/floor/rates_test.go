//go:build !race

// The tests of this file play thousands of episodes, and the race detector would make them take
// minutes. TestFloorsAreKept plays under it.

package floor_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
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
			got[fmt.Sprint(w, " ", at.Variant, " ", at.Difficulty, " ", at.Reliability)] = fmt.Sprintf(
				"%s %.3f of %.3f in %d", f.Policy, f.Full, f.Best, f.Played)
		}
		if w == world.Assay1Name {
			checkFloors(t, floors)
		}
	}
	want := map[string]string{
		"assay-1 baseline easy 1":   "sim/expert 21.000 of 30.000 in 30",
		"assay-1 baseline easy 0.8": "sim/expert 20.860 of 29.850 in 30",
		"assay-1 baseline hard 1":   "sim/expert 0.000 of 30.000 in 30",
		"assay-1 baseline hard 0.8": "sim/expert -0.163 of 29.850 in 30",
		"assay-1 optimal easy 1":    "sim/obedient 30.000 of 30.000 in 30",
		"assay-1 optimal easy 0.8":  "sim/obedient 29.850 of 29.850 in 30",
		"assay-1 optimal hard 1":    "sim/obedient 30.000 of 30.000 in 30",
		"assay-1 optimal hard 0.8":  "sim/obedient 29.850 of 29.850 in 30",
		"pilot baseline easy 1":     "sim/expert 23.137 of 29.988 in 30",
		"pilot baseline easy 0.8":   "sim/expert 22.945 of 29.285 in 30",
		"pilot baseline hard 1":     "sim/guesser 6.119 of 29.988 in 30",
		"pilot baseline hard 0.8":   "sim/guesser 4.847 of 29.285 in 30",
		"pilot optimal easy 1":      "sim/obedient 29.988 of 29.988 in 30",
		"pilot optimal easy 0.8":    "sim/obedient 29.285 of 29.285 in 30",
		"pilot optimal hard 1":      "sim/obedient 29.988 of 29.988 in 30",
		"pilot optimal hard 0.8":    "sim/obedient 29.285 of 29.285 in 30",
	}
	if !maps.Equal(got, want) {
		t.Errorf("floors %v, want %v: raise floor.Version", got, want)
	}
}

func checkFloors(t *testing.T, floors floor.Floors) {
	t.Helper()
	if len(floors) != 8 {
		t.Fatalf("%d conditions, want 8: %v", len(floors), floors)
	}
	for at, f := range floors {
		switch rate, _ := floors.Rate(at, new(1.)); {
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
}

// anyTrials returns trials of a library under random conditions of a world.
func anyTrials(t *testing.T, lib *library.Library, worldName string, n int) (all []assay.Trial) {
	t.Helper()
	dice := rand.New(rand.NewPCG(5, 6))
	counts, err := lib.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := world.Of(worldName)
	mixes := []string{"", "", "after=1", "stale=1", "down=1", "before=0.5,down=0.2,throttled=0.3", "after=0.3,before=0.3,slow=0.1,stale=0.1,wrong_shape=0.2"}
	for range n {
		c := counts[dice.IntN(len(counts))]
		refs, err := lib.Refs(t.Context(), c.Type, c.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		cell := assay.Cell{
			Model: "m", Variant: []string{assay.Baseline, assay.Optimal}[dice.IntN(2)], Difficulty: c.Difficulty,
			TaskType: c.Type, Reliability: []float64{1, .8, .5, .3}[dice.IntN(4)],
		}
		calls := 1 + dice.IntN(12)
		setting := assay.Setting{
			World: worldName, Protocol: assay.Native, Tools: assay.Listed, Turns: calls + 1, Calls: calls,
		}
		if d.FaultKinds {
			cell.Faults = mixes[dice.IntN(len(mixes))]
		}
		if d.FailuresLast && cell.Faults == "" && dice.IntN(2) == 0 {
			setting.Persistence, setting.Burst = .8*dice.Float64(), .8*dice.Float64()
		}
		if dice.IntN(4) == 0 {
			setting.SeveralCalls = assay.RefuseSeveral
		}
		all = append(all, assay.NewTrial(cell, refs[dice.IntN(len(refs))], setting, dice.Int64(), 1))
	}
	return all
}

// TestNoFloorIsAboveTheCeiling plays all policies under random conditions of each world. At no trial
// is the success of a policy without its luck above the best possible, so no floor is above its
// ceiling; and on average it is the success as luck had it.
func TestNoFloorIsAboveTheCeiling(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	n := 200
	if testing.Short() {
		n = 60
	}
	for _, w := range world.Names {
		if world.Of(w).Environments {
			continue
		}
		lib := builtin(t)
		if world.Of(w).OwnTools {
			var err error
			if lib, err = library.OpenNamed(t.Context(), "../../../cmd/assay/example/tasks.yaml"); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lib.Close() }()
		}
		planned := anyTrials(t, lib, w, n)
		player := floor.NewPlayer(lib)
		for _, policy := range floor.Policies(w) {
			luck, square := 0.0, 0.0
			for i := range planned {
				trial := planned[i]
				task, err := lib.Task(t.Context(), trial.Task, trial.Difficulty)
				if err != nil {
					t.Fatal(err)
				}
				a, tr := player.Play(t.Context(), policy, trial, &task, trial.Seed)
				won := 0.0
				if a.Level == assay.FullSuccess {
					won = 1
				}
				fair, best := workflow.Fair(lib.Catalog(), &trial, &task, tr, won == 1)
				if fair > best || best > 1+1e-9 {
					t.Fatalf("%s, %s, %+v: %v is above the optimum %v", w, policy.Name, trial, fair, best)
				}
				luck, square = luck+won-fair, square+(won-fair)*(won-fair)
			}
			t.Logf("%s, %s: luck %.2f ± %.2f", w, policy.Name, luck, math.Sqrt(square))
			if math.Abs(luck) > 5*math.Sqrt(square)+1e-6 {
				t.Errorf("%s, %s: luck is %.2f in %d trials, want 0 ± %.2f", w, policy.Name, luck, n, math.Sqrt(square))
			}
		}
		floors, err := floor.Find(t.Context(), lib, slices.Values(planned))
		if err != nil || len(floors) == 0 {
			t.Fatalf("%s: %d floors, %v", w, len(floors), err)
		}
		for at, f := range floors {
			for _, ceiling := range []float64{0, .1, .7, 1} {
				if rate, ok := floors.Rate(at, &ceiling); !ok || rate < 0 || rate > ceiling {
					t.Errorf("%s, %+v, %+v: the floor is %v with a ceiling of %v", w, at, f, rate, ceiling)
				}
			}
		}
	}
}
