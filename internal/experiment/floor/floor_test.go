package floor_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// trials returns trials of the first tasks of each type at two difficulties with all kinds of plan.
func trials(t *testing.T, lib *library.Library, worldName string) (all []assay.Trial) {
	counts, err := lib.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	setting := assay.Setting{
		World: worldName, Protocol: assay.Native, Tools: assay.Listed,
		Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
	}
	for _, c := range counts {
		if c.Difficulty != "easy" && c.Difficulty != "hard" {
			continue
		}
		refs, err := lib.Refs(t.Context(), c.Type, c.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs[:6] {
			for _, reliability := range []float64{1, .8} {
				for _, variant := range []string{assay.Baseline, assay.Optimal} {
					cell := assay.Cell{
						Model: "m", Variant: variant, Difficulty: c.Difficulty, TaskType: c.Type,
						Reliability: reliability,
					}
					all = append(all, assay.NewTrial(cell, ref, setting, 1, 1))
				}
			}
		}
	}
	return all
}

func builtin(t *testing.T) *library.Library {
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lib.Close() })
	return lib
}

// TestFind checks the floors against what is known about the policies: hard tasks cannot be
// solved without skill, but every plan can be copied, and no floor is above the ceiling.
func TestFind(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := builtin(t)
	planned := trials(t, lib, world.Assay1Name)
	floors, err := floor.Find(t.Context(), lib, slices.Values(planned))
	if err != nil {
		t.Fatal(err)
	}
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

// TestFloorsAreKept plays with the cache: what was stored is read again, whatever its order and
// models, and a damaged file is not.
func TestFloorsAreKept(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	lib := builtin(t)
	planned := trials(t, lib, world.PilotName)[:24]
	find := func(ctx context.Context, planned []assay.Trial) (floor.Floors, error) {
		return floor.Find(ctx, lib, slices.Values(planned))
	}
	first, err := find(t.Context(), planned)
	if err != nil {
		t.Fatal(err)
	}
	// A context that has ended shows that nothing is played.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	slices.Reverse(planned)
	for i := range planned {
		planned[i].Model = "another"
	}
	again, err := find(over, planned)
	if err != nil || !maps.Equal(first, again) {
		t.Errorf("stored %v, read %v (%v)", first, again, err)
	}
	if _, err := find(over, planned[:10]); err == nil {
		t.Error("other trials have the same floors")
	}
	files, err := filepath.Glob(filepath.Join(dir, "assay", "floors", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v (%v), want one", files, err)
	}
	for _, text := range []string{"", "[]", "{", `[{"value":{"full":3,"played":2}}]`} {
		if err := os.WriteFile(files[0], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := find(over, planned); err == nil {
			t.Errorf("%q was read as floors", text)
		}
		if again, err := find(t.Context(), planned); err != nil || !maps.Equal(first, again) {
			t.Errorf("after %q: floors %v (%v), want %v", text, again, err, first)
		}
	}
}

// TestVersion fails if floors change, because floors in the caches of users would be out of date.
func TestVersion(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	lib := builtin(t)
	got := make(map[string]string)
	for _, w := range world.Simulated {
		floors, err := floor.Find(t.Context(), lib, slices.Values(trials(t, lib, w)))
		if err != nil {
			t.Fatal(err)
		}
		for at, f := range floors {
			if at.Reliability == 1 {
				got[w+" "+at.Variant+" "+at.Difficulty] = fmt.Sprint(f)
			}
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
