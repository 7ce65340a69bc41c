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
	tasks   *lru.Cache[string, func() (*assay.Task, error)] // which read it once, by digest
}

// cachedTasks is the size of a cache. A task has a few kilobytes.
const cachedTasks = 512

// NewCache returns an empty cache of a library's tasks.
func NewCache(l *Library) *Cache {
	tasks, err := lru.New[string, func() (*assay.Task, error)](cachedTasks)
	if err != nil {
		panic("library: " + err.Error()) // the size is positive
	}
	return &Cache{l, tasks}
}

// Task returns the task of a trial. It returns an error if the task in the library has changed
// since the trial was planned. Episodes share the task, so it must not be changed.
func (c *Cache) Task(ctx context.Context, trial *assay.Trial) (*assay.Task, error) {
	read, known := c.tasks.Get(trial.TaskDigest)
	if !known {
		read = sync.OnceValues(func() (*assay.Task, error) {
			// Others wait for it, too, whose attempts go on.
			return c.read(context.WithoutCancel(ctx), trial)
		})
		if earlier, ok, _ := c.tasks.PeekOrAdd(trial.TaskDigest, read); ok {
			read = earlier
		}
	}
	task, err := read()
	if err != nil {
		c.tasks.Remove(trial.TaskDigest) // the next trial reads again
	}
	return task, err
}

func (c *Cache) read(ctx context.Context, trial *assay.Trial) (*assay.Task, error) {
	task, digest, err := c.library.put(ctx, trial.Task, trial.Difficulty, trial.Phrasing)
	switch {
	case err != nil:
		return nil, err
	case c.library.withTools(digest) != trial.TaskDigest:
		return nil, fmt.Errorf("task %s of the library is not the one that was planned", trial.Task)
	}
	return &task, nil
}
