package library

import (
	"context"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

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
// task is needed again for other variants, reliabilities and models, often at the same moment. The
// cache is bounded, however large the library is. It is safe for concurrent use.
type Cache struct {
	library *Library
	tasks   *lru.Cache[string, *reading] // by digest
}

// A reading is a task that is read once. Episodes share it, so it is never changed.
type reading struct {
	once sync.Once
	task assay.Task
	err  error
}

// cachedTasks is the size of a cache. A task has a few kilobytes.
const cachedTasks = 512

// NewCache returns an empty cache of a library's tasks.
func NewCache(l *Library) *Cache {
	tasks, err := lru.New[string, *reading](cachedTasks)
	if err != nil {
		panic("library: " + err.Error()) // the size is positive
	}
	return &Cache{l, tasks}
}

// Task returns the task of a trial. It returns an error if the task in the library has changed
// since the trial was planned.
func (c *Cache) Task(ctx context.Context, trial *assay.Trial) (*assay.Task, error) {
	r, known := c.tasks.Get(trial.TaskDigest)
	if !known {
		r = new(reading)
		if earlier, ok, _ := c.tasks.PeekOrAdd(trial.TaskDigest, r); ok {
			r = earlier
		}
	}
	r.once.Do(func() {
		// Others wait for it, too, whose attempts go on.
		r.task, r.err = c.read(context.WithoutCancel(ctx), trial)
	})
	if r.err != nil {
		c.tasks.Remove(trial.TaskDigest) // the next trial reads again
		return nil, r.err
	}
	return &r.task, nil
}

func (c *Cache) read(ctx context.Context, trial *assay.Trial) (assay.Task, error) {
	task, digest, err := c.library.read(ctx, trial.Task, trial.Difficulty)
	if err == nil && c.library.withTools(digest) != trial.TaskDigest {
		err = fmt.Errorf("task %s of the library is not the one that was planned", trial.Task)
	}
	return task, err
}
