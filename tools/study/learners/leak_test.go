package main

import (
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// TestLearnersLearn checks that learners name the tools of built-in tasks from other built-in
// tasks, because otherwise it would say little that they cannot name the tools of fresh ones.
func TestLearnersLearn(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: trains for seconds")
	}
	const difficulty = "medium"
	var known, unknown []assay.Task
	for task := range library.Generate() {
		switch {
		case task.Difficulty != difficulty:
		case len(known) > 2*len(unknown):
			unknown = append(unknown, task)
		default:
			known = append(known, task)
		}
	}
	from := newLesson(library.Tools(), slices.Values(known))
	about := newLesson(library.Tools(), slices.Values(unknown))
	for _, test := range []struct {
		learner string
		least   float64
	}{
		{"dictionary of phrases", .6},
		{"logistic regression over n-grams", .6},
	} {
		i := slices.IndexFunc(learners, func(l learner) bool { return l.name == test.learner })
		name := learners[i].learn([]*lesson{from}, difficulty)
		share := float64(score([]*lesson{about}, difficulty, name)) / float64(len(unknown))
		t.Logf("%s: %.0f %% of %d tasks", test.learner, 100*share, len(unknown))
		if share < test.least {
			t.Errorf("%s names the tools of %.0f %% of the tasks", test.learner, 100*share)
		}
	}
}
