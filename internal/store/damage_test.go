package store_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
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

// TestReadingNoticesDeletions: what is read while attempts are deleted is of no one
// state, and says so.
func TestReadingNoticesDeletions(t *testing.T) {
	t.Parallel()
	type read func(*store.DB, store.Filter, func()) error
	for name, read := range map[string]read{
		"attempts": func(db *store.DB, f store.Filter, meanwhile func()) (last error) {
			for _, err := range db.Attempts(t.Context(), f) {
				last = err
				meanwhile()
			}
			return last
		},
		"transcripts": func(db *store.DB, f store.Filter, meanwhile func()) (last error) {
			for _, err := range db.Transcripts(t.Context(), f) {
				last = err
				meanwhile()
			}
			return last
		},
		"verdicts": func(db *store.DB, f store.Filter, meanwhile func()) (last error) {
			for _, err := range db.Verdicts(t.Context(), f) {
				last = err
				meanwhile()
			}
			return last
		},
		"outcomes": func(db *store.DB, _ store.Filter, meanwhile func()) (last error) {
			for _, err := range db.Outcomes(t.Context()) {
				last = err
				meanwhile()
			}
			return last
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, path := create(t, store.Options{})
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			seed(t, path, 3000)
			db = open(t, path, store.Options{})
			save(t, db, doomed())
			for _, skip := range []bool{false, true} {
				name := snapshot(t, db)
				if skip {
					db.SkipDamage(func(err error) { t.Error(err) })
				}
				var once sync.Once
				err := read(db, store.Filter{Snapshot: name}, func() {
					once.Do(func() {
						if _, err := db.Delete(t.Context(), store.Choice{Model: "doomed"}, "v1"); err != nil {
							t.Error(err)
						}
					})
				})
				if skip { // nothing is left to delete
					if err != nil {
						t.Errorf("nothing was deleted meanwhile, and %v", err)
					}
				} else if !errors.Is(err, store.ErrChanged) || !strings.Contains(err.Error(), "run the same command again") {
					t.Errorf("error = %v, want ErrChanged and what to do", err)
				}
			}
		})
	}
}

// doomed is an attempt by a model of its own.
func doomed() *assay.Attempt {
	a := outcome(1)
	a.Model = "doomed"
	a.Trial = assay.NewTrial(a.Cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest}, a.Setting, 2025, 1)
	return a
}

// TestBereftAttemptsAreNoticed: an attempt whose trial or run is gone is an error, or
// is counted; nothing leaves it out silently.
func TestBereftAttemptsAreNoticed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql  string
		lost int // attempts
	}{
		"trial": {"DELETE FROM trials WHERE id = (SELECT trial FROM attempts WHERE id = 30)", 1},
		"run":   {"DELETE FROM runs WHERE seq = 2", 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := whole(t)
			n := len(all(t, openReadOnly(t, path), store.Filter{}))
			meddle(t, path, c.sql)
			for what, f := range map[string]store.Filter{"all": {}, "experiment": {Experiment: "e"}, "model": {Model: outcome(1).Model}, "run": {Run: "r2"}} {
				if what == "run" && name == "trial" {
					continue
				}
				db := openReadOnly(t, path)
				if _, err := collectAll(t, db, f); !errors.Is(err, store.ErrDamaged) {
					t.Errorf("%s: error = %v, want ErrDamaged", what, err)
				}
				told := 0
				db.SkipDamage(func(error) { told++ })
				got, err := collectAll(t, db, f)
				if err != nil || db.Skipped() != c.lost || told != c.lost {
					t.Errorf("%s: %v, %d skipped, %d told, want %d", what, err, db.Skipped(), told, c.lost)
				}
				if what == "all" && got != n-c.lost {
					t.Errorf("%d attempts, want %d", got, n-c.lost)
				}
			}
			if name == "trial" {
				return
			}
			db := openReadOnly(t, path)
			var last error
			for _, err := range db.Verdicts(t.Context(), store.Filter{}) {
				last = err
			}
			if !errors.Is(last, store.ErrDamaged) {
				t.Errorf("Verdicts(): %v, want ErrDamaged", last)
			}
			if _, err := db.Snapshot(t.Context()); !errors.Is(err, store.ErrDamaged) {
				t.Errorf("Snapshot(): %v, want ErrDamaged", err)
			}
		})
	}
}

// zero clears the page on which a table or an index begins.
func zero(t testing.TB, path, name string) {
	t.Helper()
	db := raw(t, path, "")
	var page int
	err := db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = ?", name).Scan(&page)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	patch(t, path, func(b []byte) []byte {
		clear(b[(page-1)*4096 : page*4096])
		return b
	})
}

// TestRecoverWithoutWhatIsBeside: what is hurt beside the attempts takes none of them
// away.
func TestRecoverWithoutWhatIsBeside(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	n := len(all(t, openReadOnly(t, clean), store.Filter{}))
	for _, hurt := range []string{
		"DROP VIEW results", "DROP TABLE transcripts", "DROP TABLE unsealed", "DROP TABLE deletions",
		"DROP TABLE scores", "DROP TABLE classifications", "DROP TABLE dictionaries",
		"DROP TABLE run_counts", "DROP TABLE lane_limits", "DROP TABLE controls",
		"DROP TABLE imports", "DROP INDEX attempts_settled", "DROP INDEX runs_experiment",
		"zero unsealed", "zero sqlite_autoindex_unsealed_1", "zero deletions", "zero transcripts",
		"zero scores", "zero scores_attempt", "zero classifications", "zero dictionaries",
		"zero attempts_settled", "zero sqlite_autoindex_attempts_1", "zero sqlite_autoindex_runs_1",
		"zero runs_experiment", "zero run_counts", "zero imports",
	} {
		t.Run(hurt, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "assay.db")
			copyOf(t, clean, path)
			if name, ok := strings.CutPrefix(hurt, "zero "); ok {
				zero(t, path, name)
			} else {
				db := raw(t, path, "PRAGMA foreign_keys = OFF")
				execute(t, db, hurt)
				execute(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
				if err := db.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if problems, _ := verify(t, path); len(problems) == 0 {
				t.Error("verify finds nothing")
			}
			// Without scores nobody knows the verdict that holds.
			reader := openReadOnly(t, path)
			reader.SkipDamage(func(error) {})
			if got := len(all(t, reader, store.Filter{AsSaved: strings.Contains(hurt, "scores")})); got != n {
				t.Errorf("%d of %d attempts can be read", got, n)
			}
			var lost []store.Problem
			to := path + "-new"
			sum, err := rebuild(&lost, nil).Make(t.Context(), to, path)
			if err != nil {
				t.Fatal(err)
			}
			if sum.Attempts != n || sum.Lost != 0 || sum.Missing != 0 {
				t.Errorf("%+v, want all %d attempts; lost: %v", sum, n, lost)
			}
			if problems, _ := verify(t, to); len(problems) > 0 {
				t.Errorf("the copy is not whole: %v", problems)
			}
			if got := len(all(t, openReadOnly(t, to), store.Filter{})); got != n {
				t.Errorf("%d attempts, want %d", got, n)
			}
		})
	}
}

func copyOf(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestRecoverExcusesNothing by what is not as it was saved.
func TestRecoverExcusesNothing(t *testing.T) {
	t.Parallel()
	path := planted(t, whole(t), corruption{sql: `UPDATE attempts SET turns = turns + 1 WHERE id = 30; DELETE FROM attempt_seals WHERE attempt = 30;
		UPDATE unsealed SET last = 1000; UPDATE scores SET program = 'x'; DELETE FROM seals WHERE of = 'score'`})
	var lost []store.Problem
	sum, err := rebuild(&lost, nil).Make(t.Context(), path+"-new", path)
	if err != nil || sum.Lost != 1 || len(lost) < 2 {
		t.Errorf("%+v, %v, lost %v, want one attempt to be left", sum, err, lost)
	}
}

// TestRecoveredTranscriptsComeBack: an attempt that was kept without its transcript is
// the same attempt, and gets it from a backup.
func TestRecoveredTranscriptsComeBack(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	dir := t.TempDir()
	hurt, bare, merged := filepath.Join(dir, "hurt.db"), filepath.Join(dir, "bare.db"), filepath.Join(dir, "merged.db")
	copyOf(t, clean, hurt)
	meddle(t, hurt, "DELETE FROM transcripts")
	var lost []store.Problem
	sum, err := rebuild(&lost, nil).Make(t.Context(), bare, hurt)
	if err != nil || sum.Bare == 0 || sum.Transcripts != 0 || sum.Lost != 0 {
		t.Fatalf("%+v, %v, want all attempts without transcripts", sum, err)
	}
	if problems, proof := verify(t, bare); len(problems) > 0 || proof.Lost != sum.Bare {
		t.Errorf("%v; %+v, want %d lost transcripts", problems, proof, sum.Bare)
	}
	if _, err := rebuild(nil, nil).Make(t.Context(), merged, bare, clean); err != nil {
		t.Fatal(err)
	}
	_, want := verify(t, clean)
	if problems, proof := verify(t, merged); len(problems) > 0 || proof.Transcripts != want.Transcripts || proof.Attempts != want.Attempts {
		t.Errorf("%v; %+v, want %+v", problems, proof, want)
	}
}

// TestTargetsAreRefused: files of a store that is gone would be taken for the new one's.
func TestTargetsAreRefused(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, suffix := range []string{"-wal", "-journal", ".damaged"} {
		to := filepath.Join(t.TempDir(), "new.db")
		if err := os.WriteFile(to+suffix, []byte("old"), 0o644); err != nil {
			t.Fatal(err)
		}
		_, backed := openReadOnly(t, clean).Backup(t.Context(), to)
		_, merged := rebuild(nil, nil).Make(t.Context(), to, clean)
		for what, err := range map[string]error{"Backup": backed, "Make": merged} {
			if !errors.Is(err, store.ErrExists) || !strings.Contains(err.Error(), "new.db"+suffix) || !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("%s() beside %s = %v, want ErrExists with a hint", what, suffix, err)
			}
		}
		if left, err := os.ReadDir(filepath.Dir(to)); len(left) != 1 || err != nil {
			t.Errorf("%v was left, %v", left, err)
		}
	}
	for _, to := range []string{"", filepath.Join(t.TempDir(), "none", "new.db")} {
		if _, err := openReadOnly(t, clean).Backup(t.Context(), to); err == nil || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("Backup(%q) = %v, want a hint", to, err)
		}
	}
}

// TestTargetsAreClaimed: two cannot make one store, and what a killed one left is no
// obstacle and does not stay.
func TestTargetsAreClaimed(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	dir := t.TempDir()
	to := filepath.Join(dir, "new.db")
	for _, suffix := range []string{"-part", "-part-wal", "-part.lock", "-lock"} {
		if err := os.WriteFile(filepath.Join(dir, ".new.db"+suffix), []byte("left"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := rebuild(nil, nil)
	var once sync.Once
	r.Progress = func(string, int, int) {
		once.Do(func() {
			if _, err := openReadOnly(t, clean).Backup(t.Context(), to); !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("a backup to where a merge writes: %v, want ErrBusy with a hint", err)
			}
		})
	}
	if _, err := r.Make(t.Context(), to, clean); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(dir)
	if len(left) != 1 || err != nil {
		t.Errorf("%v is there, %v, want the new store alone", left, err)
	}
	if problems, _ := verify(t, to); len(problems) > 0 {
		t.Errorf("the new store is not whole: %v", problems)
	}
}

// TestCopiesAreAsPrivate as the most private of what they are made of.
func TestCopiesAreAsPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open, private := filepath.Join(dir, "open.db"), filepath.Join(dir, "private.db")
	copyOf(t, whole(t), open)
	copyOf(t, open, private)
	for path, mode := range map[string]fs.FileMode{open: 0o644, private: 0o600} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		make func(to string) error
		want fs.FileMode
	}{
		"backup":          {func(to string) error { _, err := openReadOnly(t, private).Backup(t.Context(), to); return err }, 0o600},
		"open backup":     {func(to string) error { _, err := openReadOnly(t, open).Backup(t.Context(), to); return err }, 0o644},
		"merge":           {func(to string) error { _, err := rebuild(nil, nil).Make(t.Context(), to, open, private); return err }, 0o600},
		"merge of open":   {func(to string) error { _, err := rebuild(nil, nil).Make(t.Context(), to, open); return err }, 0o644},
		"other way round": {func(to string) error { _, err := rebuild(nil, nil).Make(t.Context(), to, private, open); return err }, 0o600},
	} {
		to := filepath.Join(t.TempDir(), "new.db")
		if err := c.make(to); err != nil {
			t.Fatal(err)
		}
		if fi, err := os.Stat(to); err != nil || fi.Mode().Perm() != c.want {
			t.Errorf("%s: %v, %v, want %v", name, fi.Mode(), err, c.want)
		}
	}
}

// TestBackupRefusesDamage: nothing would keep a run from writing to the copy.
func TestBackupRefusesDamage(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(path string) error{
		"marked": func(path string) error {
			return openReadOnly(t, path).MarkDamaged([]store.Problem{{Check: "seal", Damage: true}})
		},
		"cut off": func(path string) error {
			fi, err := os.Stat(path)
			return errors.Join(err, os.Truncate(path, fi.Size()-4096))
		},
		"without a table": func(path string) error { rawClosed(t, path, "DROP TABLE controls"); return nil },
		"format":          func(path string) error { rawClosed(t, path, "PRAGMA user_version = 4"); return nil },
	} {
		path := whole(t)
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "copy.db")
		if _, err := openReadOnly(t, path).Backup(t.Context(), to); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "assay recover") {
			t.Errorf("%s: Backup() = %v, want ErrDamaged and what helps", name, err)
		}
		if left, err := os.ReadDir(filepath.Dir(to)); len(left) > 0 || err != nil {
			t.Errorf("%s: %v was left, %v", name, left, err)
		}
	}
}

// TestDeleteAgain: what is made and deleted anew has IDs that nobody had.
func TestDeleteAgain(t *testing.T) {
	t.Parallel()
	db, path := create(t, store.Options{})
	for i, c := range []store.Choice{{Experiment: "e"}, {Experiment: "e"}, {Model: outcome(1).Model}, {Model: outcome(1).Model}, {Experiment: "e"}} {
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
		if err := db.EndRun(t.Context(), a.Run, nil); err != nil {
			t.Fatal(err)
		}
		reader := raw(t, path, "")
		var twice int
		err := reader.QueryRow(`SELECT count(*) FROM deleted d JOIN (SELECT 'run' AS of, seq AS id FROM runs UNION ALL SELECT 'score', id FROM scores
			UNION ALL SELECT 'classification', id FROM classifications UNION ALL SELECT 'attempt', id FROM attempts) r ON r.of = d.of AND r.id BETWEEN d.first AND d.last`).Scan(&twice)
		if err := errors.Join(err, reader.Close()); err != nil || twice > 0 {
			t.Errorf("%d rows have the IDs of deleted ones, %v", twice, err)
		}
		if i%2 == 1 { // also by another session
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = open(t, path, store.Options{})
		}
		d, err := db.Delete(t.Context(), c, "v1")
		if err != nil || d.Attempts != 1 {
			t.Fatalf("deletion %d: %+v, %v", i, d, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if problems, _ := verify(t, path); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// TestDeleteAgainWhereIDsCameAgain: earlier programs gave out IDs twice.
func TestDeleteAgainWhereIDsCameAgain(t *testing.T) {
	t.Parallel()
	db, path := create(t, store.Options{})
	a := outcome(1)
	save(t, db, a)
	rescore(t, db, rescored(a, better(1)))
	if _, err := db.Delete(t.Context(), store.Choice{Model: a.Model}, "v1"); err != nil {
		t.Fatal(err)
	}
	a = outcome(1)
	save(t, db, a)
	rescore(t, db, rescored(a, better(1)))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	meddle(t, path, "UPDATE scores SET id = 1; UPDATE seals SET id = 1 WHERE of = 'score'")
	db = open(t, path, store.Options{})
	if _, err := db.Delete(t.Context(), store.Choice{Model: a.Model}, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if problems, _ := verify(t, path); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
}

// TestVerifyNoticesDeletions: what goes on purpose while it looks is no damage.
func TestVerifyNoticesDeletions(t *testing.T) {
	t.Parallel()
	path := whole(t)
	db := open(t, path, store.Options{})
	var once sync.Once
	var found []store.Problem
	look := func(meanwhile func()) error {
		found = nil
		_, err := db.Verify(t.Context(), func(*store.Stored) []store.Problem { meanwhile(); return nil },
			func(p store.Problem) { found = append(found, p) }, func(int, int) {})
		return err
	}
	err := look(func() {
		once.Do(func() {
			if _, err := db.Delete(t.Context(), store.Choice{Levels: []assay.Level{assay.PartialSuccess}}, "v1"); err != nil {
				t.Error(err)
			}
		})
	})
	if !errors.Is(err, store.ErrChanged) {
		t.Errorf("Verify() = %v, want ErrChanged", err)
	}
	if err := look(func() {}); err != nil || len(found) > 0 {
		t.Errorf("the second look: %v, %v", err, found)
	}
}

// TestMergeNoticesDeletions: a merge is of one state of each store.
func TestMergeNoticesDeletions(t *testing.T) {
	t.Parallel()
	path := whole(t)
	db := open(t, path, store.Options{})
	deletions := []store.Choice{{Levels: []assay.Level{assay.PartialSuccess}}, {Experiment: "e", Transcripts: true}}
	r := rebuild(nil, nil)
	r.Progress = func(what string, _, _ int) {
		if what != "writing" && len(deletions) > 0 {
			if _, err := db.Delete(t.Context(), deletions[0], "v1"); err != nil {
				t.Error(err)
			}
			deletions = deletions[1:]
		}
	}
	to := filepath.Join(t.TempDir(), "new.db")
	if _, err := r.Make(t.Context(), to, path); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sayings(all(t, db, store.Filter{})), sayings(all(t, openReadOnly(t, to), store.Filter{}))); diff != "" {
		t.Errorf("(-store +merged):\n%s", diff)
	}
	if problems, _ := verify(t, to); len(problems) > 0 {
		t.Errorf("the merged store is not whole: %v", problems)
	}
	// It gives up in the end.
	r.Progress = func(string, int, int) {
		a := doomed()
		a.Run = "r2"
		if err := db.Save(t.Context(), a, nil); err != nil && !errors.Is(err, store.ErrSettled) {
			t.Error(err)
		}
		if _, err := db.Delete(t.Context(), store.Choice{Model: a.Model}, "v1"); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Make(t.Context(), to+"2", path); !errors.Is(err, store.ErrChanged) {
		t.Errorf("Make() = %v, want ErrChanged", err)
	}
}

// sayings is what attempts say, in any order.
func sayings(attempts []assay.Attempt) (lines []string) {
	for i := range attempts {
		lines = append(lines, said(&store.Stored{Attempt: attempts[i]}))
	}
	slices.Sort(lines)
	return lines
}

// TestAbsurdIDs: rows with IDs far away are reached at once.
func TestAbsurdIDs(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for name, sql := range map[string]string{
		"seal":         "INSERT INTO attempt_seals (attempt, sum) VALUES (9000000000000000, zeroblob(16))",
		"greatest":     "INSERT INTO attempt_seals (attempt, sum) VALUES (9223372036854775807, zeroblob(16))",
		"attempt":      "UPDATE attempts SET id = 9000000000000000 WHERE id = 30",
		"last attempt": "UPDATE attempts SET id = 9223372036854775807 WHERE id = 30",
		"negative":     "UPDATE attempts SET id = -3 WHERE id = 30",
		"least":        "UPDATE attempts SET id = -9223372036854775808 WHERE id = 30",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := planted(t, clean, corruption{sql: sql})
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			db := openReadOnly(t, path)
			var problems []store.Problem
			if _, err := db.Verify(ctx, func(*store.Stored) []store.Problem { return nil }, func(p store.Problem) { problems = append(problems, p) }, func(int, int) {}); err != nil || len(problems) == 0 {
				t.Errorf("Verify() = %v, with %v", err, problems)
			}
			n := 0
			for _, err := range db.Attempts(ctx, store.Filter{}) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 56 {
				t.Errorf("%d attempts, want 56", n)
			}
			for range db.Outcomes(ctx) {
			}
			for range db.Verdicts(ctx, store.Filter{}) {
			}
			var lost []store.Problem
			sum, err := rebuild(&lost, nil).Make(ctx, path+"-new", path)
			if err != nil || sum.Attempts < 55 || len(lost) == 0 {
				t.Errorf("%+v, %v; lost %v", sum, err, lost)
			}
		})
	}
}

func TestSinceHasWhatWasJudgedAgain(t *testing.T) {
	t.Parallel()
	db, _ := create(t, store.Options{})
	one, two := outcome(1), outcome(2)
	save(t, db, one, two)
	rescore(t, db, rescored(two, better(2)))
	since := snapshot(t, db)
	three := outcome(3)
	save(t, db, three)
	rescore(t, db, rescored(one, better(1)))
	then := snapshot(t, db)
	rescore(t, db, rescored(two, better(2)))
	for name, c := range map[string]struct {
		f    store.Filter
		want []assay.TrialID
	}{
		"since":          {store.Filter{Since: since}, []assay.TrialID{one.ID, two.ID, three.ID}},
		"up to another":  {store.Filter{Since: since, Snapshot: then}, []assay.TrialID{one.ID, three.ID}},
		"as saved":       {store.Filter{Since: since, AsSaved: true}, []assay.TrialID{three.ID}},
		"between scores": {store.Filter{Since: then}, []assay.TrialID{two.ID}},
	} {
		var got []assay.TrialID
		for _, a := range all(t, db, c.f) {
			got = append(got, a.ID)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestMergeReportsPlans: stores in which one name stands for different plans.
func TestMergeReportsPlans(t *testing.T) {
	t.Parallel()
	var paths []string
	for i, spec := range []string{`{"name":"e","models":["a"],"seed":1}`, `{"name":"e","models":["b"],"world":"pilot","seed":1}`, `{"name":"e","models":["b"],"world":"pilot","seed":1}`} {
		path := filepath.Join(t.TempDir(), fmt.Sprint(i, ".db"))
		db := open(t, path, store.Options{})
		e := experiment("e")
		e.Spec = []byte(spec)
		if err := db.BeginRun(t.Context(), e, store.Run{ID: assay.RunID(fmt.Sprint("run", i)), StartedAt: epoch.Add(time.Duration(i) * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		a := outcome(i)
		a.Run = assay.RunID(fmt.Sprint("run", i))
		save(t, db, a)
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	merge := func(from ...string) (conflicts []store.PlanConflict, to string) {
		r := rebuild(nil, nil)
		r.PlanConflict = func(c store.PlanConflict) { conflicts = append(conflicts, c) }
		to = filepath.Join(t.TempDir(), "all.db")
		if _, err := r.Make(t.Context(), to, from...); err != nil {
			t.Fatal(err)
		}
		return conflicts, to
	}
	got, to := merge(paths...)
	want := []store.PlanConflict{{
		Experiment: "e", Kept: store.StoredPlan{Store: paths[2], Run: "run2"}, Left: store.StoredPlan{Store: paths[0], Run: "run0"}, Fields: []string{"models", "world"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conflicts of plans (-want +got):\n%s", diff)
	}
	if same, _ := merge(paths[1], paths[2]); len(same) > 0 {
		t.Errorf("two stores with one plan: %v", same)
	}
	db := openReadOnly(t, to)
	experiments, err := db.Experiments(t.Context())
	if err != nil || len(experiments) != 1 || experiments[0].Plans != 2 {
		t.Errorf("Experiments() = %+v, %v, want one with two plans", experiments, err)
	}
	attempts, trials, err := db.Unplanned(t.Context(), "e", func(id assay.TrialID) bool { return id != outcome(0).ID })
	if err != nil || attempts != 1 || trials != 1 {
		t.Errorf("Unplanned() = %d, %d, %v, want 1, 1", attempts, trials, err)
	}
}

// TestVerifyFindsWhatIsCutOff: of the latest results, with all that is about them, only
// the run that has ended tells.
func TestVerifyFindsWhatIsCutOff(t *testing.T) {
	t.Parallel()
	const cut = `DELETE FROM transcripts WHERE attempt > 5; DELETE FROM attempt_seals WHERE attempt > 5; DELETE FROM attempts WHERE id > 5;
		DELETE FROM trials WHERE id NOT IN (SELECT trial FROM attempts)`
	db, path := create(t, store.Options{})
	for i := range 8 {
		save(t, db, outcome(i))
	}
	doomed := outcome(3)
	if err := db.EndRun(t.Context(), "r1", nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(t.TempDir(), "merged.db")
	if _, err := rebuild(nil, nil).Make(t.Context(), merged, path); err != nil {
		t.Fatal(err)
	}
	backup := filepath.Join(t.TempDir(), "backup.db")
	if _, err := openReadOnly(t, path).Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	deleted := filepath.Join(t.TempDir(), "deleted.db")
	copyOf(t, path, deleted)
	db = open(t, deleted, store.Options{})
	if _, err := db.Delete(t.Context(), store.Choice{Levels: []assay.Level{doomed.Level}, Before: epoch.Add(time.Minute + 2*time.Second)}, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, merged, backup} {
		if problems, _ := verify(t, path); len(problems) > 0 {
			t.Errorf("before: %v", problems)
		}
		meddle(t, path, cut)
		problems, _ := verify(t, path)
		if !slices.ContainsFunc(problems, func(p store.Problem) bool { return p.Check == "complete" && strings.Contains(p.What, "3 of its 8") }) {
			t.Errorf("problems %v, want that 3 of 8 are missing", problems)
		}
		var lost []store.Problem
		sum, err := rebuild(&lost, nil).Make(t.Context(), path+"-new", path)
		if err != nil || sum.Missing != 3 || sum.Attempts != 5 {
			t.Errorf("recover: %+v, %v, want 5 attempts and 3 missing", sum, err)
		}
		if problems, _ := verify(t, path+"-new"); len(problems) > 0 {
			t.Errorf("after: %v", problems)
		}
	}
	if problems, proof := verify(t, deleted); len(problems) > 0 || proof.Deleted == 0 {
		t.Errorf("after a deletion: %v, %+v", problems, proof)
	}
}

// TestUnreadableIsNotMissing: each lost attempt is told of once.
func TestUnreadableIsNotMissing(t *testing.T) {
	t.Parallel()
	db, path := create(t, store.Options{})
	for i := range 40 {
		save(t, db, outcome(i))
	}
	if err := errors.Join(db.EndRun(t.Context(), "r1", nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	patch(t, path, func(b []byte) []byte {
		at := strings.LastIndex(string(b), "azure-east/AZURE_KEY") / 4096 * 4096
		clear(b[at : at+4096])
		return b
	})
	var lost []store.Problem
	sum, err := rebuild(&lost, nil).Make(t.Context(), path+"-new", path)
	if err != nil || sum.Missing == 0 || sum.Lost != 0 || sum.Attempts == 0 || sum.Attempts+int(sum.Missing) != 40 {
		t.Errorf("%+v, %v, want 40 attempts, copied or missing", sum, err)
	}
	if !slices.ContainsFunc(lost, func(p store.Problem) bool { return p.Check == "file" }) {
		t.Errorf("the problems do not mention the file: %v", lost)
	}
}

// TestGarbageInARun: one run that cannot be read hides no other.
func TestGarbageInARun(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"UPDATE runs SET started_at = 'yesterday' WHERE seq = 2", "UPDATE runs SET finished_at = 'later', summary = '{}' WHERE seq = 2"} {
		path := planted(t, whole(t), corruption{sql: sql})
		db := openReadOnly(t, path)
		if _, err := db.Runs(t.Context(), ""); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("Runs() = %v, want ErrDamaged", err)
		}
		if _, err := db.Experiments(t.Context()); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("Experiments() = %v, want ErrDamaged", err)
		}
		var told []error
		db.SkipDamage(func(err error) { told = append(told, err) })
		runs, err := db.Runs(t.Context(), "")
		if err != nil || len(runs) != 1 || runs[0].ID != "r1" {
			t.Errorf("Runs() = %v, %v, want r1", runs, err)
		}
		if e, err := db.Experiments(t.Context()); err != nil || len(e) != 1 {
			t.Errorf("Experiments() = %v, %v, want one", e, err)
		}
		if len(told) != 1 || !strings.Contains(told[0].Error(), "r2") || db.Skipped() != 0 {
			t.Errorf("told %v, %d attempts skipped, want one run", told, db.Skipped())
		}
	}
}

// TestLostPlan: recovery keeps a run whose experiment's text is lost, and it says so.
func TestLostPlan(t *testing.T) {
	t.Parallel()
	path := planted(t, whole(t), corruption{sql: `UPDATE runs SET spec = '{"name": "other"}'`})
	var lost []store.Problem
	if _, err := rebuild(&lost, nil).Make(t.Context(), path+"-new", path); err != nil {
		t.Fatal(err)
	}
	e, err := openReadOnly(t, path+"-new").Experiments(t.Context())
	if err != nil || len(e) != 1 || !e[0].Lost() || e[0].Plans != 0 {
		t.Errorf("Experiments() = %+v, %v, want one whose plan is lost", e, err)
	}
}

func TestWrongFormatNumber(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, number := range []int{-1, 0, 4, -2147483648} {
		path := filepath.Join(t.TempDir(), "assay.db")
		copyOf(t, clean, path)
		rawClosed(t, path, fmt.Sprint("PRAGMA user_version = ", number))
		if _, err := store.Open(t.Context(), path, store.Options{}); !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), "assay recover") {
			t.Errorf("%d: Open() = %v, want ErrDamaged and what helps", number, err)
		}
		problems, proof := verify(t, path)
		if len(problems) != 1 || problems[0].Check != "schema" || proof.Attempts != 56 {
			t.Errorf("%d: problems %v, %+v, want the number alone", number, problems, proof)
		}
		var lost []store.Problem
		if sum, err := rebuild(&lost, nil).Make(t.Context(), path+"-new", path); err != nil || sum.Attempts != 56 || len(lost) > 0 {
			t.Errorf("%d: recover: %+v, %v, %v", number, sum, err, lost)
		}
	}
	path := former(t, 3)
	rawClosed(t, path, "PRAGMA user_version = -1")
	if _, err := store.Open(t.Context(), path, store.Options{}); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("Open() = %v, want ErrDamaged", err)
	}
	if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("OpenReadOnly() = %v, want ErrDamaged", err)
	}
}

// TestStrangeNeighbours: what lies beside a store and is none of it is named.
func TestStrangeNeighbours(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	path := filepath.Join(t.TempDir(), "assay.db")
	copyOf(t, clean, path)
	if err := os.Mkdir(path+"-wal", 0o755); err != nil {
		t.Fatal(err)
	}
	_, write := store.Open(t.Context(), path, store.Options{})
	_, read := store.OpenReadOnly(t.Context(), path)
	for _, err := range []error{write, read} {
		if err == nil || !strings.Contains(err.Error(), "assay.db-wal") || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("a directory in the place of the log: %v", err)
		}
	}
	path = filepath.Join(t.TempDir(), "assay.db")
	copyOf(t, clean, path)
	rawClosed(t, path, "PRAGMA journal_mode = DELETE")
	if err := os.WriteFile(path+"-journal", []byte(strings.Repeat("junk", 2000)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := store.OpenReadOnly(t.Context(), path); err == nil || !strings.Contains(err.Error(), "-journal") {
		t.Errorf("a journal of nobody: %v", err)
	}
}

// TestMarkIsBesideTheStore, also where a link leads to it, and what is not marked needs
// no place to write.
func TestMarkIsBesideTheStore(t *testing.T) {
	t.Parallel()
	path := whole(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	db := openReadOnly(t, link)
	if err := db.MarkDamaged([]store.Problem{{Check: "seal", Damage: true}}); err != nil {
		t.Fatal(err)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil || db.MarkPath() != real+".damaged" {
		t.Errorf("MarkPath() = %s, want that of %s", db.MarkPath(), real)
	}
	if _, err := os.Stat(db.MarkPath()); err != nil {
		t.Error(err)
	}
	if err := db.MarkDamaged(nil); err != nil {
		t.Error(err)
	}
}

// TestDeleteIsNotHalfInterrupted: either all is deleted and known, or nothing is.
func TestDeleteIsNotHalfInterrupted(t *testing.T) {
	t.Parallel()
	path := whole(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	db := open(t, path, store.Options{})
	before := len(all(t, db, store.Filter{}))
	if _, err := db.Delete(ctx, store.Choice{Experiment: "e"}, "v1"); !errors.Is(err, stop) {
		t.Errorf("Delete() = %v, want %v", err, stop)
	}
	if n := len(all(t, db, store.Filter{})); n != before {
		t.Errorf("%d of %d attempts are left", n, before)
	}
	for wait := time.Duration(0); wait < 4*time.Millisecond; wait += 400 * time.Microsecond {
		path := filepath.Join(t.TempDir(), "assay.db")
		db := open(t, path, store.Options{})
		begin(t, db, "r1")
		seed(t, path, 500)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		d, err := db.Delete(ctx, store.Choice{Experiment: "e"}, "v1")
		cancel()
		left := len(all(t, openReadOnly(t, path), store.Filter{}))
		if err == nil && (left != 0 || d.Attempts != 500) || err != nil && left != 500 {
			t.Errorf("Delete() = %+v, %v, and %d of 500 attempts are left", d, err, left)
		}
		if err != nil && strings.Contains(err.Error(), "unknown") {
			t.Errorf("Delete() = %v, which tells nothing", err)
		}
	}
}

// TestStoreOfFormat5 works on, with its rows as they are.
func TestStoreOfFormat5(t *testing.T) {
	t.Parallel()
	source := whole(t)
	path := filepath.Join(t.TempDir(), "assay.db")
	text := schema(t, 0, 5) + "PRAGMA application_id = 0x41736179; PRAGMA user_version = 5; PRAGMA journal_mode = WAL; ATTACH '" + source + "' AS source;"
	for table, columns := range columns(t, 5) {
		switch table {
		case "unsealed": // which the migration filled
			text += "DELETE FROM unsealed; INSERT INTO unsealed SELECT * FROM source.unsealed WHERE of <> 'run_count';"
			continue
		case "seals":
			text += "INSERT INTO seals SELECT * FROM source.seals WHERE of IN ('run', 'run_spec', 'run_end', 'score', 'classification', 'dictionary', 'import');"
			continue
		case "scores": // some of whose columns are made of others
			columns = "id, attempt, scored_at, program, body"
		}
		text += fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM source.%s;", table, columns, columns, table)
	}
	rawClosed(t, path, text)
	if _, err := store.OpenReadOnly(t.Context(), path); !errors.Is(err, store.ErrOlder) {
		t.Errorf("OpenReadOnly() = %v, want ErrOlder", err)
	}
	db := open(t, path, store.Options{})
	want := all(t, openReadOnly(t, source), store.Filter{})
	if diff := cmp.Diff(want, all(t, db, store.Filter{})); diff != "" {
		t.Errorf("attempts (-before +after):\n%s", diff)
	}
	if snapshot(t, db) != snapshot(t, openReadOnly(t, source)) {
		t.Error("the snapshot has another name")
	}
	begin(t, db, "r6")
	a := outcome(500)
	a.Run = "r6"
	save(t, db, a)
	if err := errors.Join(db.EndRun(t.Context(), "r6", nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	if problems, _ := verify(t, path); len(problems) > 0 {
		t.Errorf("problems: %v", problems)
	}
	meddle(t, path, "INSERT INTO deleted SELECT 1, 'attempt', 30, 30")
	if problems, _ := verify(t, path); len(problems) == 0 {
		t.Error("a row that excuses others was added to an old deletion, and nobody notices")
	}
}
