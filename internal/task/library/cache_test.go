package library

import (
	"sync"
	"testing"

	"github.com/assay-eval/assay"
)

// TestCacheReturnsPlannedTasks reads more tasks than the cache has room for, twice.
func TestCacheReturnsPlannedTasks(t *testing.T) {
	t.Parallel()
	lib, err := Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	counts, err := lib.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var trials []assay.Trial
	for _, c := range counts {
		if c.Difficulty != "easy" {
			continue // 630 tasks are more than a cache has room for
		}
		refs, err := lib.Refs(t.Context(), c.Type, c.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			cell := assay.Cell{TaskType: c.Type, Difficulty: c.Difficulty}
			trials = append(trials, assay.Trial{Cell: cell, Task: ref.ID, TaskDigest: ref.Digest})
		}
	}

	cache := NewCache(lib)
	for range 2 {
		for _, trial := range trials {
			got, err := cache.Task(t.Context(), &trial)
			if err != nil || got.ID != trial.Task || got.Digest() != trial.TaskDigest {
				t.Fatalf("trial of task %s: %+v, error %v", trial.Task, got, err)
			}
		}
	}
	if cache.tasks.Len() != cachedTasks {
		t.Errorf("the cache has %d tasks, want %d", cache.tasks.Len(), cachedTasks)
	}

	// The next one is in no cache, and all who ask for it at once get the same.
	var all sync.WaitGroup
	var got [100]*assay.Task
	for i := range got {
		all.Go(func() { got[i], _ = cache.Task(t.Context(), &trials[0]) })
	}
	all.Wait()
	for _, task := range got {
		if task == nil || task != got[0] {
			t.Fatal("a task was read several times")
		}
	}

	changed := trials[0]
	changed.TaskDigest = "another"
	if _, err := cache.Task(t.Context(), &changed); err == nil {
		t.Error("the cache returned a task that differs from the planned one")
	}
}
