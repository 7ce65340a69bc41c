package store_test

import (
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// In each round a trial is settled at most once, and only the outcome of the latest round is read,
// in every way of reading. All rounds stay in the store, and in a store that is made of it.
func TestOutcomeOfLatestRoundCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		path := filepath.Join(t.TempDir(), "assay.db")
		db := open(t, path)
		defer db.Close()
		begin(t, db, "r1")
		rounds := make(map[assay.TrialID]int) // the next
		total := 0
		for range rapid.IntRange(1, 12).Draw(r, "attempts") {
			i := rapid.IntRange(0, 2).Draw(r, "trial")
			a := outcome(i)
			if rapid.Bool().Draw(r, "fault") {
				a = fault(i)
			}
			a.Round = rapid.IntRange(0, 3).Draw(r, "round")
			a.InputTokens = total
			refused := a.Settles() && a.Round != rounds[a.ID]
			err := db.Save(t.Context(), a, transcript(i))
			if errors.Is(err, store.ErrSettled) != refused {
				r.Fatalf("Save() in round %d = %v, the next round is %d", a.Round, err, rounds[a.ID])
			}
			if err == nil {
				total++
			}
			if err == nil && a.Settles() {
				rounds[a.ID]++
			}
		}
		countsLatest(t, r, db, rounds, total)
		if rapid.IntRange(0, 9).Draw(r, "whether it is copied") > 0 {
			return // because a copy takes most of the time
		}
		intact(t, path)
		copied := path + "-new"
		merge(t, copied, path)
		countsLatest(t, r, openReadOnly(t, copied), rounds, total)
	})
}

func countsLatest(
	t *testing.T, r *rapid.T, db *store.DB, rounds map[assay.TrialID]int, total int,
) {
	want := make(map[assay.TrialID]int)
	for id, n := range rounds {
		if n > 0 {
			want[id] = n - 1
		}
	}
	check := func(how string, attempts []assay.Attempt) {
		got := make(map[assay.TrialID]int)
		for _, a := range attempts {
			if !a.Settles() || a.Superseded {
				continue
			}
			if _, double := got[a.ID]; double {
				r.Fatalf("%s: two outcomes of trial %s", how, a.ID)
			}
			got[a.ID] = a.Round
		}
		for id, round := range want {
			if got[id] != round || len(got) != len(want) {
				r.Fatalf("%s: rounds %v, want %v", how, got, want)
			}
		}
	}
	check("Attempts", all(t, db, store.Filter{}))
	var listed []assay.Attempt
	l, err := db.List(t.Context(), "")
	must(r, err)
	for a, err := range l.All {
		must(r, err)
		listed = append(listed, a.Attempt)
	}
	check("List", listed)
	settled, err := db.Settled(t.Context())
	if err != nil || settled.Len() != len(want) {
		r.Fatalf("Settled: %d, %v, want %d", settled.Len(), err, len(want))
	}
	every := all(t, db, store.Filter{All: true})
	if len(every) != total {
		r.Fatalf("%d attempts with the superseded ones, want %d", len(every), total)
	}
	check("all", every)
}

// A library is kept once, whatever is kept of it first, and goes with the last experiment that
// used it.
func TestKeptLibrary(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	digest := experiment("e").Library.Digest
	for _, part := range []string{"one", "two", "one"} {
		must(t, db.KeepLibrary(t.Context(), digest, []byte(part)))
	}
	parts := func(path string) (texts []string) {
		all, err := openReadOnly(t, path).LibraryParts(t.Context(), digest)
		must(t, err)
		for _, p := range all {
			texts = append(texts, string(p))
		}
		slices.Sort(texts)
		return texts
	}
	save(t, db, outcome(1))
	copied := path + "-new"
	merge(t, copied, path, path)
	for _, p := range []string{path, copied} {
		if got := parts(p); !slices.Equal(got, []string{"one", "two"}) {
			t.Errorf("%s: parts %q, want one and two", p, got)
		}
	}
	remove(t, db, store.Choice{Experiment: "e"})
	if got := parts(path); len(got) > 0 {
		t.Errorf("after the experiment was deleted: parts %q", got)
	}
	intact(t, path)
}
