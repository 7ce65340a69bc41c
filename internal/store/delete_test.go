package store_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// Delete deletes exactly the attempts that the preview counts.
func TestDeleteMatchesItsPreview(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]store.Choice{
		"experiment":  {Experiment: "e"},
		"model":       {Model: "qwen2.5-7b-instruct"},
		"level":       {Levels: []assay.Level{assay.PartialSuccess}},
		"nothing":     {Model: "unknown"},
		"transcripts": {Experiment: "e", Transcripts: true},
		"old":         {Before: epoch.Add(time.Minute + 25*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := whole(t)
			db := open(t, path)
			before := all(t, db, store.Filter{})
			snapshot, err := db.Snapshot(t.Context())
			must(t, err)
			preview, err := db.Preview(t.Context(), c)
			must(t, err)
			d, err := db.Delete(t.Context(), c, "v1")
			if diff := cmp.Diff(preview, d); diff != "" || err != nil {
				t.Errorf("Delete() = %v; (-preview +deleted):\n%s", err, diff)
			}
			after := all(t, db, store.Filter{})
			if len(before)-len(after) != d.Attempts {
				t.Errorf("%d attempts are left of %d, and %d were deleted",
					len(after), len(before), d.Attempts)
			}
			var cost float64
			for _, a := range before {
				cost += a.CostUSD + a.UserCostUSD
			}
			for _, a := range after {
				cost -= a.CostUSD + a.UserCostUSD
			}
			if math.Abs(cost-d.CostUSD) > 1e-9 {
				t.Errorf("the deleted attempts have cost $%f, not $%f", cost, d.CostUSD)
			}
			for _, a := range after {
				if !slices.ContainsFunc(before,
					func(b assay.Attempt) bool { return cmp.Equal(a, b) }) {
					t.Errorf("attempt %d at trial %s was changed", a.Number, a.ID)
				}
			}
			// An earlier snapshot is unknown afterwards, unless no attempt was deleted.
			if _, err := collectAll(t, db,
				store.Filter{Snapshot: snapshot}); (err != nil) != (d.Attempts > 0) {
				t.Errorf("the earlier snapshot: %v, and %d attempts were deleted", err, d.Attempts)
			}
			// IDs are not reused, and the store accepts an outcome of a pending trial.
			if d.Runs == 0 {
				a := outcome(1)
				a.Run = "r2"
				if err := db.Save(t.Context(), a, transcript(1)); err != nil &&
					!errors.Is(err, store.ErrSettled) {
					t.Error(err)
				}
			}
			must(t, db.Close())
			intact(t, path)
		})
	}
	db, _ := create(t)
	if _, err := db.Delete(t.Context(), store.Choice{}, "v1"); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("Delete() without a choice = %v, want ErrInvalid", err)
	}
}

// If attempts are deleted during a loop, the rows that it has seen are not of one state, so it must
// end with an error.
func TestReadersNoticeDeletions(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]func(*store.DB, store.Filter, func()) error{
		"attempts": func(db *store.DB, f store.Filter, meanwhile func()) error {
			return during(db.Attempts(t.Context(), f), meanwhile)
		},
		"transcripts": func(db *store.DB, f store.Filter, meanwhile func()) error {
			return during(db.Transcripts(t.Context(), f), meanwhile)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, _ := create(t)
			seed(t, db, 1500)
			save(t, db, doomed())
			for _, skip := range []bool{false, true} {
				name := snapshot(t, db)
				if skip {
					db.SkipDamage(func(err error) { t.Error(err) })
				}
				var once sync.Once
				err := read(db, store.Filter{Snapshot: name}, func() {
					once.Do(func() {
						if _, err := db.Delete(t.Context(), store.Choice{Model: "doomed"},
							"v1"); err != nil {
							t.Error(err)
						}
					})
				})
				if skip { // the first round has deleted it
					if err != nil {
						t.Errorf("nothing was deleted meanwhile, but the error is %v", err)
					}
				} else if !errors.Is(err, store.ErrChanged) ||
					!strings.Contains(err.Error(), "run the same command again") {
					t.Errorf("error = %v, want ErrChanged with a hint", err)
				}
			}
		})
	}
}

// during does something else at each step of a loop, and returns the loop's last error.
func during[T any](all iter.Seq2[T, error], meanwhile func()) (last error) {
	for _, err := range all {
		last = err
		meanwhile()
	}
	return last
}

// doomed returns an attempt by a model that has no other.
func doomed() *assay.Attempt {
	a := outcome(1)
	a.Model = "doomed"
	a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest},
		a.Setting, 2025, 1)
	return a
}

// Rows that are saved again after a deletion get new IDs.
func TestDeletedIDsAreNotReused(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	for i, c := range []store.Choice{
		{Experiment: "e"},
		{Experiment: "e"},
		{Model: outcome(1).Model},
		{Model: outcome(1).Model},
		{Experiment: "e"},
	} {
		if i > 0 {
			begin(t, db, assay.RunID(fmt.Sprint("again", i)))
		}
		a := outcome(1)
		a.Run = "r1"
		if i > 0 {
			a.Run = assay.RunID(fmt.Sprint("again", i))
		}
		save(t, db, a)
		rescore(t, db, rescored(a, better(1)), rescored(a, better(1)))
		classify(t, db, opinion(a))
		must(t, db.EndRun(t.Context(), a.Run, nil))
		reader := raw(t, path, "")
		var reused int
		err := reader.QueryRow(`WITH deleted AS (SELECT t.key AS of, s.value ->> 'first' AS first,
					s.value ->> 'last' AS last
				FROM deletions, json_each(what, '$.rows') t, json_each(t.value) s)
			SELECT count(*) FROM deleted d JOIN (
				SELECT 'runs' AS of, seq AS id FROM runs
				UNION ALL SELECT 'scores', id FROM scores
				UNION ALL SELECT 'classifications', id FROM classifications
				UNION ALL SELECT 'attempts', id FROM attempts
			) r ON r.of = d.of AND r.id BETWEEN d.first AND d.last`).Scan(&reused)
		if err := errors.Join(err, reader.Close()); err != nil || reused > 0 {
			t.Errorf("%d rows have the IDs of deleted rows, %v", reused, err)
		}
		if i%2 == 1 { // also in another session
			must(t, db.Close())
			db = open(t, path)
		}
		d, err := db.Delete(t.Context(), c, "v1")
		if err != nil || d.Attempts != 1 {
			t.Fatalf("deletion %d: %+v, %v", i, d, err)
		}
	}
	must(t, db.Close())
	intact(t, path)
}

// Rows that are deleted on purpose during a verification are not damage.
func TestVerifyNoticesDeletions(t *testing.T) {
	t.Parallel()
	path := whole(t)
	db := open(t, path)
	var once sync.Once
	var found []store.Problem
	look := func(meanwhile func()) error {
		found = nil
		_, err := db.Verify(t.Context(),
			func(*store.Stored) []store.Problem { meanwhile(); return nil },
			func(p store.Problem) { found = append(found, p) }, func(int, int) {})
		return err
	}
	err := look(func() {
		once.Do(func() {
			if _, err := db.Delete(t.Context(),
				store.Choice{Levels: []assay.Level{assay.PartialSuccess}}, "v1"); err != nil {
				t.Error(err)
			}
		})
	})
	if !errors.Is(err, store.ErrChanged) {
		t.Errorf("Verify() = %v, want ErrChanged", err)
	}
	if err := look(func() {}); err != nil || len(found) > 0 {
		t.Errorf("the second pass: %v, %v", err, found)
	}
}

// A merge copies one state of each store.
func TestMergeNoticesDeletions(t *testing.T) {
	t.Parallel()
	path := whole(t)
	db := open(t, path)
	deletions := []store.Choice{
		{Levels: []assay.Level{assay.PartialSuccess}},
		{Experiment: "e", Transcripts: true},
	}
	meanwhile := func(what string, _, _ int) {
		if what != "writing" && len(deletions) > 0 {
			if _, err := db.Delete(t.Context(), deletions[0], "v1"); err != nil {
				t.Error(err)
			}
			deletions = deletions[1:]
		}
	}
	to := filepath.Join(t.TempDir(), "new.db")
	if _, err := store.Merge(t.Context(), to, []string{path}, meanwhile); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sortedContents(all(t, db, store.Filter{})),
		sortedContents(all(t, openReadOnly(t, to), store.Filter{}))); diff != "" {
		t.Errorf("(-store +merged):\n%s", diff)
	}
	intact(t, to)
	// After a few tries it gives up.
	meanwhile = func(string, int, int) {
		a := doomed()
		a.Run = "r2"
		if err := db.Save(t.Context(), a, nil); err != nil && !errors.Is(err, store.ErrSettled) {
			t.Error(err)
		}
		if _, err := db.Delete(t.Context(), store.Choice{Model: a.Model}, "v1"); err != nil {
			t.Error(err)
		}
	}
	_, err := store.Merge(t.Context(), to+"2", []string{path}, meanwhile)
	if !errors.Is(err, store.ErrChanged) {
		t.Errorf("Merge() = %v, want ErrChanged", err)
	}
}

// sortedContents returns the content of attempts in an order that does not depend on their numbers.
func sortedContents(attempts []assay.Attempt) (lines []string) {
	for i := range attempts {
		lines = append(lines, contentOf(&store.Stored{Attempt: attempts[i]}))
	}
	slices.Sort(lines)
	return lines
}

func TestInterruptedDeleteIsAllOrNothing(t *testing.T) {
	t.Parallel()
	path := whole(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	db := open(t, path)
	before := len(all(t, db, store.Filter{}))
	if _, err := db.Delete(ctx, store.Choice{Experiment: "e"}, "v1"); !errors.Is(err, stop) {
		t.Errorf("Delete() = %v, want %v", err, stop)
	}
	if n := len(all(t, db, store.Filter{})); n != before {
		t.Errorf("%d of %d attempts are left", n, before)
	}
	for wait := time.Duration(0); wait < 4*time.Millisecond; wait += time.Millisecond {
		path := filepath.Join(t.TempDir(), "assay.db")
		db := open(t, path)
		begin(t, db, "r1")
		seed(t, db, 500)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		d, err := db.Delete(ctx, store.Choice{Experiment: "e"}, "v1")
		cancel()
		left := len(all(t, openReadOnly(t, path), store.Filter{}))
		if err == nil && (left != 0 || d.Attempts != 500) || err != nil && left != 500 {
			t.Errorf("Delete() = %+v, %v, and %d of 500 attempts are left", d, err, left)
		}
		if err != nil && strings.Contains(err.Error(), "unknown") {
			t.Errorf("Delete() = %v, want a definite result", err)
		}
	}
}
