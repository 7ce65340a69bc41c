package main

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// taskCache keeps the tasks that were read latest. Cells advance together, so
// the same task comes up again for each variant, reliability and model. Its
// size is bounded, however large the library is.
type taskCache struct {
	library *library.Library

	mu    sync.Mutex
	tasks map[string]*assay.Task // by digest; never changed, for episodes share them
	order []string               // of digests, the next one to go at next
	next  int
}

// cachedTasks of a few kilobytes each.
const cachedTasks = 512

func newTaskCache(l *library.Library) *taskCache {
	return &taskCache{library: l, tasks: make(map[string]*assay.Task, cachedTasks)}
}

// task returns a trial's task, which has to be the one that was planned.
func (c *taskCache) task(ctx context.Context, trial *assay.Trial) (*assay.Task, error) {
	c.mu.Lock()
	known := c.tasks[trial.TaskDigest]
	c.mu.Unlock()
	if known != nil {
		return known, nil
	}
	task, err := c.library.Task(ctx, trial.Task, trial.Difficulty)
	if err != nil {
		return nil, err
	}
	if c.library.Digest(&task) != trial.TaskDigest {
		return nil, fmt.Errorf("task %s of the library is not the one that was planned", trial.Task)
	}
	c.keep(trial.TaskDigest, &task)
	return &task, nil
}

func (c *taskCache) keep(digest string, task *assay.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tasks[digest] != nil {
		return
	}
	c.tasks[digest] = task
	if len(c.order) < cachedTasks {
		c.order = append(c.order, digest)
		return
	}
	delete(c.tasks, c.order[c.next])
	c.order[c.next] = digest
	c.next = (c.next + 1) % cachedTasks
}
