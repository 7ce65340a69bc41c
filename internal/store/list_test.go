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
	must(t, err)
	for a, err := range l.All {
		must(t, err)
		found = append(found, a)
	}
	return found, l
}

// A list continues from the snapshot of an earlier one. After a rescoring it begins anew with the
// new outcomes, and after a deletion the snapshot is unknown.
func TestListContinues(t *testing.T) {
	db, _ := create(t)
	begin(t, db, "run-1")
	if found, l := list(t, db, ""); len(found) != 0 || l.Last != 0 {
		t.Errorf("an empty store lists %d attempts", len(found))
	}
	save(t, db, outcome(1), fault(2))
	found, first := list(t, db, "")
	want := all(t, db, store.Filter{})
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
	remove(t, db, store.Choice{Model: settled[0].Model})
	if _, err := db.List(t.Context(), third.Snapshot); !errors.Is(err, store.ErrUnknownSnapshot) {
		t.Errorf("after a deletion: %v", err)
	}
}
