package query

import (
	"iter"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// A trial of an exported file is missing if all of its attempts ended in faults.
func TestFaultsAreMissingFromFiles(t *testing.T) {
	t.Parallel()
	attempt := func(id assay.TrialID, task assay.TaskID, settles bool) (a assay.Attempt) {
		a.ID, a.Task, a.FaultKind = id, task, assay.ContentFilter
		if settles {
			a.FaultKind, a.Level = "", assay.FullSuccess
		}
		return a
	}
	var file iter.Seq2[assay.Attempt, error] = func(yield func(assay.Attempt, error) bool) {
		_ = yield(attempt("1", "a", false), nil) && yield(attempt("1", "a", true), nil) &&
			yield(attempt("2", "a", false), nil) && yield(attempt("3", "b", true), nil)
	}
	s := triedSide(file, export.Where{})
	for _, err := range s.all() {
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.coverage()
	if err != nil || c.planned != 3 || c.pending != 1 || c.at["a"] != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

// Conditions on outcomes leave no trial of the plan unfinished that has another outcome.
func TestOutcomesThatAreLeftOutAreNotPending(t *testing.T) {
	t.Parallel()
	where, err := export.ParseWhere([]string{"level=failure"})
	if err != nil {
		t.Fatal(err)
	}
	var planned []assay.Trial
	var attempts []assay.Attempt
	for _, id := range []assay.TrialID{"1", "2", "3"} {
		trial := assay.Trial{ID: id}
		planned = append(planned, trial)
		if id < "3" {
			attempts = append(attempts, assay.Attempt{Trial: trial, Outcome: assay.Outcome{Level: assay.FullSuccess}})
		}
	}
	s := &side{where: where, attempts: sequenceOf(attempts), trials: sequenceOf(planned)}
	for range s.all() {
		t.Error("a full success is selected")
	}
	if c, err := s.coverage(); err != nil || c.planned != 3 || c.pending != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func sequenceOf[T any](all []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range all {
			if !yield(x, nil) {
				return
			}
		}
	}
}
