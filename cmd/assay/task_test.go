package main

import (
	"testing"

	"github.com/assay-eval/assay/internal/run/plan"
)

// TestTaskCache gives what the library has, whatever was asked before, and
// keeps no more than its bound.
func TestTaskCache(t *testing.T) {
	t.Parallel()
	j, err := openJob(t.Context(), load(t, "models: [sim/listed]\ntasks_per_type: all\n"), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	cache := newTaskCache(j.library)
	for range 2 {
		for trial := range j.plan.Trials("sim/listed") {
			got, err := cache.task(t.Context(), &trial)
			if err != nil || got.ID != trial.Task || got.Digest() != trial.TaskDigest {
				t.Fatalf("trial of task %s: %+v, error %v", trial.Task, got, err)
			}
		}
	}
	if len(cache.tasks) != cachedTasks || len(cache.order) != cachedTasks {
		t.Errorf("%d tasks are kept, want %d", len(cache.tasks), cachedTasks)
	}
	for trial := range j.plan.Trials("sim/listed") {
		trial.TaskDigest = "another"
		if _, err := cache.task(t.Context(), &trial); err == nil {
			t.Error("a task that is not the planned one was given")
		}
		break
	}
}

func load(t *testing.T, text string) *plan.Experiment {
	t.Helper()
	e, err := plan.Load(file(t, t.TempDir(), "e.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}
