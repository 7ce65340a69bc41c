//go:build !race

package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// everything returns the content of a store without the IDs of its rows.
func everything(t testing.TB, path string) (lines []string) {
	t.Helper()
	db := openReadOnly(t, path)
	add := func(v any) {
		text, err := json.Marshal(v)
		must(t, err)
		lines = append(lines, string(text))
	}
	for _, asSaved := range []bool{true, false} {
		for s, err := range db.Transcripts(t.Context(), store.Filter{AsSaved: asSaved}) {
			must(t, err)
			add(s)
		}
	}
	for c, err := range db.Classifications(t.Context(), "", "") {
		must(t, err)
		add(c)
	}
	runs, err := db.Runs(t.Context(), "")
	must(t, err)
	imports, err := db.Imports(t.Context())
	must(t, err)
	snapshot, err := db.Snapshot(t.Context())
	must(t, err)
	add(runs)
	add(imports)
	add(snapshot)
	return lines
}

// spent returns what all attempts of a store have cost, also those that have not ended.
func spent(t testing.TB, path string) (usd float64) {
	t.Helper()
	db := openReadOnly(t, path)
	for _, a := range all(t, db, store.Filter{All: true}) {
		usd += a.CostUSD
	}
	left, err := db.Left(t.Context())
	must(t, err)
	for _, u := range left.Attempts {
		usd += u.CostUSD
	}
	return assay.RoundUSD(usd)
}

// talkAndDie leaves an attempt in the journal of a store, with replies that have cost money.
func talkAndDie(t testing.TB, db *store.DB, run assay.RunID, i, replies int) (usd float64) {
	t.Helper()
	j, err := db.Journal(t.Context())
	must(t, err)
	j.Continue(store.JournalEntry{Run: run, Experiment: "e"}, func(err error) { t.Error(err) })
	must(t, db.MarkJournal(t.Context(), run, 0))
	a := outcome(i)
	j.Write(store.JournalEntry{Trial: &a.Trial, At: epoch.Add(time.Duration(i) * time.Minute)})
	for n := range replies {
		usd += 0.25
		j.Keep(store.JournalEntry{
			ID: a.ID, Spent: &assay.Usage{InputTokens: 5}, Cost: 0.25,
			Reply: &store.JournalReply{To: uint64(n), Began: epoch, Ended: epoch.Add(time.Hour)},
		})
	}
	j.Close(false)
	return usd
}

// The result does not depend on the order of the stores, how they are grouped, or how often one is
// given. Each trial has the outcome that finished first, and no money is lost.
func TestMergeLaws(t *testing.T) {
	t.Parallel()
	seeds := uint64(3) // only a few, because each makes a dozen stores
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		random := rand.New(rand.NewPCG(seed, 5))
		dir := t.TempDir()
		merged := func(name string, from ...string) string {
			to := filepath.Join(dir, name)
			merge(t, to, from...)
			return to
		}
		var stores []string
		first := make(map[assay.TrialID]time.Time)
		var usd float64
		for s := range 3 {
			path := filepath.Join(dir, fmt.Sprint("store", s))
			db := open(t, path)
			run := assay.RunID(fmt.Sprint("run", s))
			begin(t, db, run)
			for n := range random.IntN(7) {
				i := random.IntN(5)
				a := []func(int) *assay.Attempt{outcome, outcome, fault}[random.IntN(3)](i)
				a.Run = run
				a.FinishedAt = epoch.Add(time.Duration(random.IntN(51)) * time.Second)
				a.InputTokens, a.OutputTokens = s, n // to make them differ
				a.CostUSD = float64(1 + random.IntN(9))
				err := db.Save(t.Context(), a, transcript(i))
				if errors.Is(err, store.ErrSettled) {
					continue
				}
				must(t, err)
				usd += a.CostUSD
				if was, ok := first[a.ID]; a.Settles() && (!ok || a.FinishedAt.Before(was)) {
					first[a.ID] = a.FinishedAt
				}
				if a.Settles() && random.IntN(2) == 0 {
					rescore(t, db, rescored(a, better(s)))
				}
			}
			usd += talkAndDie(t, db, run, 3+random.IntN(4), 1+random.IntN(2))
			must(t, db.Close())
			stores = append(stores, path)
		}
		abc := everything(t, merged("abc", stores...))
		for name, from := range map[string][]string{
			"cba":     {stores[2], stores[1], stores[0]},
			"(ab)c":   {merged("ab", stores[0], stores[1]), stores[2]},
			"a(bc)":   {stores[0], merged("bc", stores[1], stores[2])},
			"abcabc":  append(slices.Clone(stores), stores...),
			"(abc)ab": {filepath.Join(dir, "abc"), stores[0], stores[1]},
		} {
			if diff := cmp.Diff(abc, everything(t, merged(name, from...))); diff != "" {
				t.Fatalf("abc is not %s:\n%s", name, diff)
			}
			if got := spent(t, filepath.Join(dir, name)); got != usd {
				t.Fatalf("%s has cost $%v, want the $%v that the stores have cost", name, got, usd)
			}
		}
		intact(t, filepath.Join(dir, "abc"))
		for _, a := range all(t, openReadOnly(t, filepath.Join(dir, "abc")),
			store.Filter{OnlySettled: true}) {
			if want := first[a.ID]; !a.FinishedAt.Equal(want) {
				t.Fatalf("trial %s has the outcome of %s, want that of %s",
					a.ID, a.FinishedAt, want)
			}
			delete(first, a.ID)
		}
		if len(first) > 0 {
			t.Fatalf("outcomes are lost: %v", first)
		}
	}
}

// A transcript that one store dropped, or that recovery found lost, comes from another store, in any
// order.
func TestMergeKeepsTranscripts(t *testing.T) {
	t.Parallel()
	full, lean := whole(t), whole(t)
	db := open(t, lean)
	remove(t, db, store.Choice{Experiment: "e", Transcripts: true})
	must(t, db.Close())
	hurt := planted(t, full, corruption{
		sql: "PRAGMA secure_delete = ON; UPDATE transcripts SET body = zeroblob(9)",
	})
	sum, _, bare := recoverTo(t, hurt)
	if sum.Bare == 0 || sum.Transcripts != 0 || sum.Lost != 0 {
		t.Fatalf("%+v, want all attempts without transcripts", sum)
	}
	if _, proof := verify(t, bare); proof.Lost != sum.Bare {
		t.Errorf("%+v, want %d lost transcripts", proof, sum.Bare)
	}
	_, want := verify(t, full)
	for name, from := range map[string][]string{
		"full first": {full, lean}, "lean first": {lean, full},
		"recovered first": {bare, full}, "recovered last": {full, bare},
	} {
		to := filepath.Join(t.TempDir(), "all.db")
		merge(t, to, from...)
		if problems, is := verify(t, to); is.Transcripts != want.Transcripts ||
			is.Attempts != want.Attempts || len(problems) > 0 {
			t.Errorf("%s: %+v, want %+v; problems %v", name, is, want, problems)
		}
	}
}

// A backup that was made during a run does not make the run unfinished again.
func TestMergeKeepsEndsOfRuns(t *testing.T) {
	t.Parallel()
	db, after := create(t)
	save(t, db, outcome(1))
	before := filepath.Join(t.TempDir(), "before.db")
	_, err := db.Backup(t.Context(), before)
	must(t, errors.Join(err, db.EndRun(t.Context(), "r1", nil), db.Close()))
	for _, from := range [][]string{{before, after}, {after, before}} {
		to := filepath.Join(t.TempDir(), "all.db")
		merge(t, to, from...)
		runs, err := openReadOnly(t, to).Runs(t.Context(), "")
		if err != nil || len(runs) != 1 || runs[0].FinishedAt.IsZero() {
			t.Errorf("merged from %v: %+v, %v; want one run that has ended", from, runs, err)
		}
	}
}

func TestMergeReportsConflicts(t *testing.T) {
	t.Parallel()
	var paths []string
	for i, level := range []assay.Level{assay.Failure, assay.FullSuccess} {
		path := filepath.Join(t.TempDir(), "assay.db")
		db := open(t, path)
		run := assay.RunID(fmt.Sprint("run", i))
		begin(t, db, run)
		a := outcome(1)
		a.Run, a.Level, a.FinishedAt = run, level, epoch.Add(time.Duration(i)*time.Hour)
		if level == assay.FullSuccess {
			a.ErrorCategory = ""
		}
		save(t, db, a)
		must(t, db.Close())
		paths = append(paths, path)
	}
	to := filepath.Join(t.TempDir(), "all.db")
	sum := merge(t, to, paths[1], paths[0])
	want := []store.Conflict{{
		Trial: outcome(1).ID,
		Kept:  store.StoredOutcome{Store: paths[0], Run: "run0", Level: assay.Failure},
		Left:  store.StoredOutcome{Store: paths[1], Run: "run1", Level: assay.FullSuccess},
	}}
	if diff := cmp.Diff(want, sum.ConflictList); diff != "" || sum.Conflicts != 1 || sum.Attempts != 2 || sum.Outcomes != 1 {
		t.Errorf("%+v, conflicts (-want +got):\n%s", sum, diff)
	}
}

func TestMergeRefusesExistingFileAndDamage(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	there := filepath.Join(t.TempDir(), "there.db")
	must(t, os.WriteFile(there, []byte("mine"), 0o644))
	_, err := store.Merge(t.Context(), there, []string{clean}, quiet)
	if !errors.Is(err, store.ErrExists) {
		t.Errorf("Merge() over a file = %v, want ErrExists", err)
	}
	if b, err := os.ReadFile(there); string(b) != "mine" {
		t.Errorf("the file was changed: %q, %v", b, err)
	}
	dir := t.TempDir()
	damaged := planted(t, clean, corruptions[0])
	_, err = store.Merge(t.Context(), filepath.Join(dir, "new.db"), []string{damaged}, quiet)
	if !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Merge() of a damaged store = %v, want ErrDamaged", err)
	}
	if left, err := os.ReadDir(dir); len(left) > 0 || err != nil {
		t.Errorf("the directory has %v, %v", left, err)
	}
}

func TestImportStoresAFileOnce(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	i := store.Import{
		Kind: "v3", Name: "a.json", SHA256: strings.Repeat("0f", 32), At: epoch,
		Program: "v1", Body: json.RawMessage(`{"leaves":[1,2]}`),
	}
	must(t, db.Import(t.Context(), i))
	if err := db.Import(t.Context(), i); !errors.Is(err, store.ErrImported) {
		t.Errorf("a second import of the file: %v, want ErrImported", err)
	}
	got, err := openReadOnly(t, path).Imports(t.Context())
	if diff := cmp.Diff([]store.Import{i}, got); diff != "" || err != nil {
		t.Errorf("Imports() = %v, (-want +got):\n%s", err, diff)
	}
	if n := len(all(t, db, store.Filter{})); n != 0 {
		t.Errorf("an import of aggregates added %d attempts", n)
	}
}

// One changed column of a run costs recovery no attempt. What the row says is unknown then, and the
// other rows of the run are kept.
func TestRecoverKeepsAttemptsOfChangedRun(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	n := len(all(t, openReadOnly(t, clean), store.Filter{}))
	for _, change := range []string{
		"runs SET experiment = 'f'", "runs SET started_at = ''", "runs SET planned = 11",
		"specs SET spec = '{}'", "specs SET run = 'r2'", "ends SET attempts = attempts + 1",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, corruption{sql: "UPDATE " + change + " WHERE seq = 1"})
			sum, lost, to := recoverTo(t, path)
			if sum.Attempts != n || sum.Lost != 0 || sum.Runs != 2 || len(lost) == 0 {
				t.Errorf("%+v, lost %v; want all %d attempts", sum, lost, n)
			}
			db := openReadOnly(t, to)
			runs, err := db.Runs(t.Context(), "")
			if err != nil || len(runs) != 2 || runs[0].ID != "r1" ||
				runs[0].FinishedAt.IsZero() != strings.HasPrefix(change, "ends") {
				t.Errorf("Runs() = %+v, %v", runs, err)
			}
			plans, err := db.Plans(t.Context())
			if plan := plans["r1"]; err != nil || plan.Lost() != strings.HasPrefix(change, "specs") {
				t.Errorf("the plan is %+v, %v", plan, err)
			}
			if got := len(all(t, db, store.Filter{Run: "r1"})); got != n-10 {
				t.Errorf("%d attempts of the run, want %d", got, n-10)
			}
		})
	}
}
