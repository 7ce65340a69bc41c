package job

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/validate"
)

// quickCheck is the longest time that a plan or a run spends on looking for unsound tasks.
const quickCheck = time.Second

// QuickUnsound is Unsound, for a second at most.
func (j *Job) QuickUnsound(ctx context.Context) (validate.Unsound, error) {
	ctx, cancel := context.WithTimeout(ctx, quickCheck)
	defer cancel()
	return j.Unsound(ctx)
}

// Unsound looks for unsound tasks among the planned ones. Only tasks with tools that users wrote
// are played.
func (j *Job) Unsound(ctx context.Context) (validate.Unsound, error) {
	if !j.Library.Own() {
		return validate.Unsound{}, nil
	}
	planned := make(map[assay.TaskID]bool)
	for _, m := range j.Experiment.Models {
		for _, tasks := range j.Plan.Tasks(m) {
			for _, t := range tasks {
				planned[t.ID] = true
			}
		}
	}
	limits := j.Experiment.Limits
	return validate.Quick(ctx, j.Library, limits.Turns, limits.Calls,
		func(id assay.TaskID) bool { return planned[id] })
}

// LibraryPath returns the path of the library, relative to the working directory if it is below it.
func (j *Job) LibraryPath() string {
	path := j.Experiment.Library
	if dir, err := os.Getwd(); err == nil {
		if short, err := filepath.Rel(dir, path); err == nil && !strings.HasPrefix(short, "..") {
			path = short
		}
	}
	return path
}
