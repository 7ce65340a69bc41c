package library

import (
	"context"
	"fmt"
	"sync"

	"github.com/assay-eval/assay"
)

// BuiltinName names the built-in library in experiment files and stores.
const BuiltinName = "builtin"

// OpenNamed opens a library file, a YAML file of tasks, or the built-in library if that is the
// name.
func OpenNamed(ctx context.Context, name string) (*Library, error) {
	switch {
	case name == BuiltinName:
		return Builtin(ctx)
	case IsTaskFile(name):
		return openTasks(ctx, name)
	}
	return Open(ctx, name)
}

// A Cache keeps the tasks that were read latest. An experiment's cells advance together, so each
// task is needed again for other variants, reliabilities and models. The cache is bounded, however
// large the library is. It is safe for concurrent use.
type Cache struct {
	library *Library

	mu    sync.Mutex
	tasks map[string]*assay.Task // by digest; shared by episodes, so never changed
	order []string               // the digests; the next one to evict is at next
	next  int
}

// cachedTasks is the size of a cache. A task has a few kilobytes.
const cachedTasks = 512

// NewCache returns an empty cache of a library's tasks.
func NewCache(l *Library) *Cache {
	return &Cache{library: l, tasks: make(map[string]*assay.Task, cachedTasks)}
}

// Task returns the task of a trial. It returns an error if the task in the library has changed
// since the trial was planned.
func (c *Cache) Task(ctx context.Context, trial *assay.Trial) (*assay.Task, error) {
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

func (c *Cache) keep(digest string, task *assay.Task) {
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
