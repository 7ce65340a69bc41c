//go:build !race

package store_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// bills lists what attempts cost now and cost at first.
func bills(t *testing.T, db *store.DB, f store.Filter) (out [][2]float64) {
	t.Helper()
	f.All = true
	for _, a := range all(t, db, f) {
		first := a.CostUSD
		if a.SavedCostUSD != nil {
			first = *a.SavedCostUSD
		}
		out = append(out, [2]float64{a.CostUSD, first})
	}
	return out
}

func wantBills(t *testing.T, what string, got [][2]float64, want ...[2]float64) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantRows(t *testing.T, path string, want int, query string) {
	t.Helper()
	var got int
	if must(t, raw(t, path, "").QueryRow(query).Scan(&got)); got != want {
		t.Errorf("%d, want %d: %s", got, want, query)
	}
}

// The latest costs hold, those before stay, and states from before are as they were.
func TestPriceKeepsWhatWas(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	f, a := fault(1), outcome(2)
	f.CostUSD, a.CostUSD = 0.5, 0.25
	save(t, db, f, a)
	before := snapshot(t, db)
	must(t, db.Price(t.Context(), []store.Cost{costing(f, 7), costing(a, 8)}))
	between := snapshot(t, db)
	must(t, db.Price(t.Context(), []store.Cost{costing(a, 9)}))
	wantBills(t, "now", bills(t, db, store.Filter{}), [2]float64{7, .5}, [2]float64{9, .25})
	wantBills(t, "as saved", bills(t, db, store.Filter{AsSaved: true}), [2]float64{.5, .5}, [2]float64{.25, .25})
	wantBills(t, "before", bills(t, db, store.Filter{Snapshot: before}), [2]float64{.5, .5}, [2]float64{.25, .25})
	wantBills(t, "between", bills(t, db, store.Filter{Snapshot: between}), [2]float64{7, .5}, [2]float64{8, .25})
	wantBills(t, "since", bills(t, db, store.Filter{Since: between}), [2]float64{9, .25})
	d, err := db.Preview(t.Context(), store.Choice{Experiment: "e"})
	if must(t, err); d.CostUSD != 7+9+2*7+2*9 {
		t.Errorf("a deletion says $%v", d.CostUSD)
	}
	if err := db.Price(t.Context(), []store.Cost{costing(outcome(3), 1)}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("Price() of an unknown attempt = %v", err)
	}
	must(t, db.Close())
	intact(t, path)

	rawClosed(t, path, "DROP TRIGGER costs_keep; UPDATE costs SET cost_usd = 1 WHERE id = 3")
	changed := openReadOnly(t, path)
	if _, err := collectAll(t, changed, store.Filter{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("a changed cost is read: %v", err)
	}
}

// Costs go with their attempts into copies, also if an attempt counts for nothing but its cost there, and
// out of the store with them.
func TestCostsFollowTheirAttempts(t *testing.T) {
	t.Parallel()
	var paths []string
	for i, run := range []assay.RunID{"r1", "r2"} {
		path := filepath.Join(t.TempDir(), "assay.db")
		db := open(t, path)
		begin(t, db, run)
		a := outcome(1)
		a.Run, a.CostUSD, a.Lane = run, .25, string(run)
		a.FinishedAt = a.FinishedAt.Add(time.Duration(i) * time.Second)
		save(t, db, a)
		must(t, db.Price(t.Context(), []store.Cost{costing(a, float64(i+1))}))
		must(t, db.Close())
		paths = append(paths, path)
	}
	both := filepath.Join(t.TempDir(), "both.db")
	if sum := merge(t, both, paths...); sum.Conflicts != 1 {
		t.Fatalf("%d conflicts", sum.Conflicts)
	}
	want := [][2]float64{{1, .25}, {2, .25}}
	wantBills(t, "merged", bills(t, openReadOnly(t, both), store.Filter{}), want...)
	again, whole := filepath.Join(t.TempDir(), "again.db"), filepath.Join(t.TempDir(), "whole.db")
	merge(t, again, paths[1], both, paths[0])
	wantBills(t, "merged again", bills(t, openReadOnly(t, again), store.Filter{}), want...)
	if diff := cmp.Diff(everything(t, both), everything(t, again)); diff != "" {
		t.Errorf("a second merge (-first +second):\n%s", diff)
	}
	_, err := store.Recover(t.Context(), whole, again, quiet)
	must(t, err)
	wantBills(t, "recovered", bills(t, openReadOnly(t, whole), store.Filter{}), want...)
	copied := filepath.Join(t.TempDir(), "copy.db")
	_, err = openReadOnly(t, whole).Backup(t.Context(), copied)
	must(t, err)
	wantBills(t, "backup", bills(t, openReadOnly(t, copied), store.Filter{}), want...)
	for _, path := range []string{both, again, whole, copied} {
		intact(t, path)
	}

	db := open(t, whole)
	remove(t, db, store.Choice{Experiment: "e"})
	must(t, db.Close())
	intact(t, whole)
	wantRows(t, whole, 0, "SELECT count(*) FROM costs")
}

// A store of format 17 is read as it is, and gets what it lacks when it is opened for writing.
func TestFormat17(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	a := outcome(1)
	a.CostUSD = .25
	save(t, db, a)
	must(t, db.Close())
	rawClosed(t, path, `DROP VIEW spend; DROP VIEW outcomes; DROP TABLE costs; PRAGMA user_version = 17`)
	old := openReadOnly(t, path)
	wantBills(t, "read only", bills(t, old, store.Filter{}), [2]float64{.25, .25})
	_, err := old.Profile(t.Context())
	must(t, err)
	_, err = old.Users(t.Context(), "e")
	must(t, err)
	_, err = old.Preview(t.Context(), store.Choice{Experiment: "e"})
	must(t, err)
	if err := old.Price(t.Context(), []store.Cost{costing(a, 3)}); !errors.Is(err, store.ErrReadOnly) {
		t.Errorf("Price() of a store that is read = %v", err)
	}
	intact(t, path)
	for name, copy := range map[string]func(string) error{
		"merge":   func(to string) error { _, err := store.Merge(t.Context(), to, []string{path}, quiet); return err },
		"recover": func(to string) error { _, err := store.Recover(t.Context(), to, path, quiet); return err },
		"backup":  func(to string) error { _, err := old.Backup(t.Context(), to); return err },
	} {
		to := filepath.Join(t.TempDir(), name+".db")
		if err := copy(to); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		intact(t, to)
	}
	db = open(t, path)
	must(t, db.Price(t.Context(), []store.Cost{costing(a, 3)}))
	wantBills(t, "priced", bills(t, db, store.Filter{}), [2]float64{3, .25})
	must(t, db.Close())
	intact(t, path)
	wantRows(t, path, 1, "SELECT count(*) FROM outcomes o JOIN spend s USING (trial) WHERE o.cost_usd = 3 AND s.cost_usd = 3")
}
