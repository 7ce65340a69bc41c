package job

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay/internal/run/plan"
)

func openText(t *testing.T, text string) *Job {
	t.Helper()
	path := filepath.Join(t.TempDir(), "e.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := plan.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	j, err := Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func TestTaskCacheReturnsPlannedTasks(t *testing.T) {
	t.Parallel()
	j := openText(t, "models: [sim/listed]\ntasks_per_type: all\n")
	cache := NewTaskCache(j.Library)
	for range 2 {
		for trial := range j.Trials() {
			got, err := cache.Task(t.Context(), &trial)
			if err != nil || got.ID != trial.Task || got.Digest() != trial.TaskDigest {
				t.Fatalf("trial of task %s: %+v, error %v", trial.Task, got, err)
			}
		}
	}

	// There are more tasks than the cache has room for.
	if len(cache.tasks) != cachedTasks || len(cache.order) != cachedTasks {
		t.Errorf("the cache has %d tasks, want %d", len(cache.tasks), cachedTasks)
	}
	for trial := range j.Trials() {
		trial.TaskDigest = "another"
		if _, err := cache.Task(t.Context(), &trial); err == nil {
			t.Error("the cache returned a task that differs from the planned one")
		}
		break
	}
}
