package job

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// A TaskCache keeps the tasks that were read last. Cells advance together, so the same task is
// needed again for each variant, reliability and model. The size of the cache does not depend on
// the size of the library. It is safe for concurrent use.
type TaskCache struct {
	library *library.Library

	mu    sync.Mutex
	tasks map[string]*assay.Task // by digest; episodes share them, so they never change
	order []string               // digests; the one at next is replaced next
	next  int
}

// cachedTasks is the number of tasks in a full cache. Each takes a few kilobytes.
const cachedTasks = 512

// NewTaskCache returns an empty cache of a library's tasks.
func NewTaskCache(l *library.Library) *TaskCache {
	return &TaskCache{library: l, tasks: make(map[string]*assay.Task, cachedTasks)}
}

// Task returns the task of a trial. It returns an error if the library's task differs from the
// planned one.
func (c *TaskCache) Task(ctx context.Context, trial *assay.Trial) (*assay.Task, error) {
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
		return nil, fmt.Errorf("task %s has changed in the library since it was planned", trial.Task)
	}
	c.keep(trial.TaskDigest, &task)
	return &task, nil
}

func (c *TaskCache) keep(digest string, task *assay.Task) {
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
