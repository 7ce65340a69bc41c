package query

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/score"
)

// Libraries finds the tasks of stored attempts in the libraries that their runs used. It keeps the
// libraries open until Close. It is safe for concurrent use.
type Libraries struct {
	db *store.DB

	mu   sync.Mutex
	runs map[assay.RunID]store.Experiment // nil until the first use
	open map[string]*libraryCache         // by digest
}

// A libraryCache is an open library with its latest tasks, or the error of opening it.
type libraryCache struct {
	library *library.Library
	tasks   *library.Cache
	judge   *score.Judge
	err     error
}

// NewLibraries returns the libraries of a store. It does not open them.
func NewLibraries(db *store.DB) *Libraries {
	return &Libraries{db: db, open: make(map[string]*libraryCache)}
}

// Task returns the task of an attempt, and the judge for its library.
func (l *Libraries) Task(ctx context.Context, a *assay.Attempt) (*assay.Task, *score.Judge, error) {
	c, name, err := l.ofRun(ctx, a.Run)
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, nil, err
	}
	task, err := c.tasks.Task(ctx, &a.Trial)
	if err != nil {
		return nil, nil, fmt.Errorf("library %s does not have the task as it was planned", name)
	}
	return task, c.judge, nil
}

// ofRun returns the library that a run used, and its name.
func (l *Libraries) ofRun(ctx context.Context, run assay.RunID) (*libraryCache, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.runs == nil {
		var err error
		if l.runs, err = l.db.Plans(ctx); err != nil {
			return nil, "", err
		}
	}
	used := l.runs[run].Library
	if l.open[used.Digest] == nil {
		l.open[used.Digest] = openCache(ctx, l.db, used)
	}
	return l.open[used.Digest], used.Name, nil
}

func openCache(ctx context.Context, db *store.DB, l store.Library) *libraryCache {
	lib, err := job.OpenLibrary(ctx, db, l)
	if err != nil {
		return &libraryCache{err: err}
	}
	return &libraryCache{
		library: lib, tasks: library.NewCache(lib), judge: score.New(lib.Catalog()),
	}
}

// Close closes all libraries.
func (l *Libraries) Close() error {
	var errs []error
	for _, c := range l.open {
		if c.library != nil {
			errs = append(errs, c.library.Close())
		}
	}
	return errors.Join(errs...)
}
