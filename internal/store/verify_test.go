//go:build !race

package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func TestVerifyFindsNoProblemInIntactStore(t *testing.T) {
	t.Parallel()
	path := whole(t)
	problems, proof := verify(t, path)
	if len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	want := store.Proof{
		Trials: 46, Attempts: 56, Outcomes: 46, Transcripts: 37, Dropped: 19,
		Deleted: 4,
	}
	if diff := cmp.Diff(want, proof); diff != "" {
		t.Errorf("proof (-want +got):\n%s", diff)
	}
}

func TestVerifyFindsCorruption(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, c)
			problems, _ := verify(t, path)
			found := func(p store.Problem) bool { return p.Check == c.check }
			if !slices.ContainsFunc(problems, found) {
				t.Errorf("problems %v, want one of %q", problems, c.check)
			}
			for _, p := range problems {
				if p.Where == "" || p.What == "" || p.Do == "" {
					t.Errorf("%+v lacks a place, a description or advice", p)
				}
			}
			refusesToWrite(t, path, problems, c.sql != "")
		})
	}
}

// refusesToWrite marks a store as damaged, and checks that it can be read but not written.
func refusesToWrite(t *testing.T, path string, problems []store.Problem, rowByRow bool) {
	t.Helper()
	db := openReadOnly(t, path)
	must(t, db.MarkDamaged(problems))
	_, err := store.Open(t.Context(), path)
	if !errors.Is(err, store.ErrDamaged) || !strings.Contains(said(err), "hint: rescue["+path) {
		t.Errorf("Open() = %v, want ErrDamaged with a hint", err)
	}
	n, reports := 0, 0
	done := make(map[assay.TrialID]bool)
	db.SkipDamage(func(error) { reports++ })
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Error(err)
			break
		}
		if n++; a.Settles() {
			done[a.ID] = true
		}
	}
	settled, err := db.Settled(t.Context())
	if err != nil || settled.Len() < len(done) {
		t.Errorf("%d trials are settled, the outcomes of %d can be read; %v",
			settled.Len(), len(done), err)
	}
	// Rows are reported one by one, but the rest of a damaged page only once.
	skipped := db.Skipped() + db.SkippedRows()
	if rowByRow && reports != skipped || (reports == 0) != (skipped == 0) {
		t.Errorf("%d rows were skipped, and %d reported", skipped, reports)
	}
	if n == 0 && !strings.Contains(t.Name(), "quarter") {
		t.Error("no attempt can be read")
	}
}

// Every attempt that is copied from a damaged store is intact, and equal to the one before the
// damage.
func TestRecover(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	before, bare := make(map[string]bool), make(map[string]bool)
	for s, err := range openReadOnly(t, clean).Transcripts(t.Context(),
		store.Filter{AsSaved: true}) {
		must(t, err)
		before[contentOf(&s)] = true
		s.Transcript = nil // it may be lost
		bare[contentOf(&s)] = true
	}
	for i, c := range corruptions {
		if testing.Short() && i%3 > 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, c)
			sum, lost, to := recoverTo(t, path)
			n, without := 0, 0
			for s, err := range openReadOnly(t, to).Transcripts(t.Context(),
				store.Filter{AsSaved: true}) {
				must(t, err)
				n++
				if s.Transcript == nil && bare[contentOf(&s)] && !before[contentOf(&s)] {
					without++
				} else if !before[contentOf(&s)] {
					t.Errorf("%s differs from the attempt in the intact store", s.Attempt.ID)
				}
			}
			if without != sum.Bare {
				t.Errorf("%d attempts came without their transcripts, but %d were reported",
					without, sum.Bare)
			}
			if n != sum.Attempts {
				t.Errorf("%d attempts, but %d were reported", n, sum.Attempts)
			}
			if n < len(before) && len(lost) == 0 {
				t.Errorf("%d of %d attempts are lost, and no problem was reported",
					len(before)-n, len(before))
			}
			if c.sql != "" && !strings.Contains(c.name, "run is") && n < len(before)-2 {
				t.Errorf("only %d of %d attempts were copied: %v", n, len(before), lost)
			}
		})
	}
}
