package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func list(t *testing.T, db *store.DB, since string) (found []store.Listed, l store.Listing) {
	t.Helper()
	l, err := db.List(t.Context(), since)
	if err != nil {
		t.Fatal(err)
	}
	for a, err := range l.All {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, a)
	}
	return found, l
}

// listed leaves the fields that a list has.
func listed(a *assay.Attempt) assay.Attempt {
	return assay.Attempt{
		Trial: assay.Trial{
			ID: a.ID, Cell: a.Cell, Task: a.Task, TaskDigest: a.TaskDigest, Repeat: a.Repeat,
		},
		Run: a.Run, Experiment: a.Experiment, Number: a.Number, Lane: a.Lane,
		Outcome: assay.Outcome{
			Level: a.Level, Ended: a.Ended, ErrorCategory: a.ErrorCategory,
			Turns: a.Outcome.Turns, ToolCalls: a.ToolCalls,
		},
		FaultKind: a.FaultKind, Parked: a.Parked, Requests: a.Requests, Retried: a.Retried,
		InputTokens: a.InputTokens, OutputTokens: a.OutputTokens, CachedTokens: a.CachedTokens,
		CostUSD: a.CostUSD, QueuedMS: a.QueuedMS, WorkingMS: a.WorkingMS, FinishedAt: a.FinishedAt,
	}
}

// A list continues from the snapshot of an earlier one. After a rescoring it begins anew with the new
// outcomes, and after a deletion the snapshot is unknown.
func TestListContinues(t *testing.T) {
	db, _ := create(t, store.Options{})
	begin(t, db, "run-1")
	if found, l := list(t, db, ""); len(found) != 0 || l.Last != 0 {
		t.Errorf("an empty store lists %d attempts", len(found))
	}
	save(t, db, outcome(1), fault(2))
	found, first := list(t, db, "")
	var want []assay.Attempt
	for _, a := range all(t, db, store.Filter{}) {
		want = append(want, listed(&a))
	}
	var got []assay.Attempt
	for _, l := range found {
		got = append(got, l.Attempt)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	save(t, db, outcome(3))
	news, second := list(t, db, first.Snapshot)
	if len(news) != 1 || news[0].Row <= found[1].Row || second.Last != news[0].Row {
		t.Errorf("after one more attempt: %v, last %d", news, second.Last)
	}
	if none, _ := list(t, db, second.Snapshot); len(none) != 0 {
		t.Errorf("nothing is new, but %d attempts are listed", len(none))
	}

	settled := all(t, db, store.Filter{OnlySettled: true})
	rescore(t, db, rescored(&settled[0], better(1)))
	again, third := list(t, db, second.Snapshot)
	if len(again) != 3 || again[0].Level != assay.FullSuccess {
		t.Errorf("after a rescoring: %v", again)
	}
	if _, err := db.Delete(t.Context(), store.Choice{Model: settled[0].Model}, "test"); err != nil {
		t.Fatal(err)
	}
	if _, err := db.List(t.Context(), third.Snapshot); !errors.Is(err, store.ErrUnknownSnapshot) {
		t.Errorf("after a deletion: %v", err)
	}
}
