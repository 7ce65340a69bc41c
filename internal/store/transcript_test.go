package store_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func TestTranscriptsStreamSameAttemptsAsAttempts(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	var saved []*assay.Attempt
	for i := range enough { // some need a dictionary
		a := outcome(i)
		if i%3 == 0 {
			a = fault(i)
		}
		must(t, db.Save(t.Context(), a, longTranscript(i)))
		saved = append(saved, a)
	}
	must(t, db.Save(t.Context(), outcome(1000), nil))
	rescore(t, db, rescored(saved[1], better(1)))
	before := snapshot(t, db)
	rescore(t, db, rescored(saved[2], better(2)))
	for _, filter := range []store.Filter{
		{},
		{AsSaved: true},
		{Snapshot: before},
		{OnlyFaults: true},
		{OnlySettled: true},
		{Trial: saved[4].ID},
		{Run: "r9"},
	} {
		want := all(t, db, filter)
		n := 0
		for s, err := range openReadOnly(t, path).Transcripts(t.Context(), filter) {
			must(t, err)
			if diff := cmp.Diff(want[n], s.Attempt); diff != "" {
				t.Fatalf("%+v: attempt (-want +got):\n%s", filter, diff)
			}
			var script *assay.Transcript
			if got, err := db.Transcript(t.Context(), s.Attempt.ID, s.Attempt.Number); err == nil {
				script = &got
			} else if !errors.Is(err, store.ErrNotFound) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(script, s.Transcript); diff != "" {
				t.Fatalf("%+v: transcript (-want +got):\n%s", filter, diff)
			}
			n++
		}
		if n != len(want) {
			t.Errorf("%+v: %d attempts, want %d", filter, n, len(want))
		}
	}
}

// A loop over more attempts than one page sees one state, although attempts are saved and rescored
// meanwhile, and it does not keep the log from being folded into the file.
func TestLongLoopSeesOneState(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: saves 2,400 attempts")
	}
	db, path := create(t)
	const n = 2400
	saveAll(t, db, 1_000_002, 1_000_000+n)
	a := outcome(1)
	save(t, db, a) // the last
	before := all(t, db, store.Filter{})
	reader := openReadOnly(t, path)
	next := 0
	for s, err := range reader.Transcripts(t.Context(), store.Filter{}) {
		must(t, err)
		if !reflect.DeepEqual(before[next], s.Attempt) || s.Transcript == nil { // cmp is slow
			t.Fatalf("attempt %d (-want +got):\n%s", next, cmp.Diff(before[next], s.Attempt))
		}
		switch next++; next {
		case 10:
			rescore(t, db, rescored(&s.Attempt, better(0)), rescored(a, better(1)))
			save(t, db, outcome(2))
		case n / 2:
			var busy, logged, folded int
			row := raw(t, path, "").QueryRow("PRAGMA wal_checkpoint(PASSIVE)")
			err := row.Scan(&busy, &logged, &folded)
			if err != nil || logged == 0 || folded != logged {
				t.Errorf("%d of %d pages of the log were folded into the file: %v",
					folded, logged, err)
			}
		}
	}
	if next != n {
		t.Errorf("%d attempts, want the %d from before the loop", next, n)
	}
	if got := all(t, db, store.Filter{OnlySettled: true}); len(got) != n+1 ||
		got[9].ScoreVersion != "assay-2" || got[n-1].ScoreVersion != "assay-2" {
		t.Errorf("%d attempts after the loop, by rules %s and %s",
			len(got), got[9].ScoreVersion, got[n-1].ScoreVersion)
	}
}
