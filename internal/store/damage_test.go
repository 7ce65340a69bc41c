//go:build !race

package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// No reader leaves out an attempt silently if its trial or run is missing.
func TestReadersNoticeDanglingAttempts(t *testing.T) {
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
			for what, f := range map[string]store.Filter{
				"all": {}, "experiment": {Experiment: "e"},
				"model": {Model: outcome(1).Model}, "run": {Run: "r2"},
			} {
				if what == "run" && name == "trial" {
					continue
				}
				db := openReadOnly(t, path)
				if _, err := collectAll(t, db, f); !errors.Is(err, store.ErrDamaged) {
					t.Errorf("%s: error = %v, want ErrDamaged", what, err)
				}
				reports := 0
				db.SkipDamage(func(error) { reports++ })
				got, err := collectAll(t, db, f)
				if err != nil || db.Skipped() != c.lost || reports != c.lost+db.SkippedRows() {
					t.Errorf("%s: %v, %d skipped, %d reported, want %d",
						what, err, db.Skipped(), reports, c.lost)
				}
				if what == "all" && got != n-c.lost {
					t.Errorf("%d attempts, want %d", got, n-c.lost)
				}
			}
			if name == "trial" {
				return
			}
			db := openReadOnly(t, path)
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
	must(t, errors.Join(err, db.Close()))
	patch(t, path, func(b []byte) []byte {
		clear(b[(page-1)*4096 : page*4096])
		return b
	})
}

// Damage to tables and indexes that do not prove attempts costs no attempt.
func TestDamageElsewhereCostsNoAttempts(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: damages each table")
	}
	t.Parallel()
	clean := whole(t)
	n := len(all(t, openReadOnly(t, clean), store.Filter{}))
	for i, damage := range []string{
		"DROP VIEW results", "DROP TABLE transcripts", "DROP TABLE libraries",
		"DROP TABLE deletions",
		"DROP TABLE scores", "DROP TABLE classifications", "DROP TABLE dictionaries",
		"DROP TABLE specs", "DROP TABLE ends", "DROP TABLE controls",
		"DROP TABLE imports", "DROP INDEX attempts_settled", "DROP INDEX runs_experiment",
		"zero libraries", "zero deletions", "zero transcripts",
		"zero scores", "zero scores_attempt", "zero classifications", "zero dictionaries",
		"zero attempts_settled", "zero sqlite_autoindex_attempts_1", "zero sqlite_autoindex_runs_1",
		"zero runs_experiment", "zero specs", "zero ends", "zero imports",
	} {
		if testing.Short() && i%2 > 0 {
			continue
		}
		t.Run(damage, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "assay.db")
			copyOf(t, clean, path)
			if name, ok := strings.CutPrefix(damage, "zero "); ok {
				zero(t, path, name)
			} else {
				db := raw(t, path, "PRAGMA foreign_keys = OFF")
				execute(t, db, damage)
				execute(t, db, "PRAGMA wal_checkpoint(TRUNCATE)")
				must(t, db.Close())
			}
			if problems, _ := verify(t, path); len(problems) == 0 {
				t.Error("verify finds no problem")
			}
			// Without scores, the latest verdict is unknown.
			reader := openReadOnly(t, path)
			reader.SkipDamage(func(error) {})
			if got := len(all(t, reader,
				store.Filter{AsSaved: strings.Contains(damage, "scores")})); got != n {
				t.Errorf("%d of %d attempts can be read", got, n)
			}
			sum, lost, to := recoverTo(t, path)
			missing := 0
			if strings.Contains(damage, "deletions") {
				missing = 4 // nothing tells that a user deleted them
			}
			if sum.Attempts != n || sum.Lost != 0 || int(sum.Missing) != missing {
				t.Errorf("%+v, want all %d attempts; lost: %v", sum, n, lost)
			}
			if got := len(all(t, openReadOnly(t, to), store.Filter{})); got != n {
				t.Errorf("%d attempts, want %d", got, n)
			}
		})
	}
}

// Records that excuse a missing seal count only if they are as they were saved.
func TestRecoverIgnoresForgedExcuses(t *testing.T) {
	t.Parallel()
	path := planted(t, whole(t), corruption{sql: `
		UPDATE attempts SET turns = turns + 1 WHERE id = 30;
		DELETE FROM attempt_seals WHERE attempt = 30;
		UPDATE scores SET program = 'x';
		DELETE FROM seals WHERE of = 'scores'`})
	sum, lost, _ := recoverTo(t, path)
	if sum.Lost != 1 || len(lost) < 2 {
		t.Errorf("%+v, lost %v, want one attempt not to be copied", sum, lost)
	}
}

// Readers jump over gaps between IDs of any size.
func TestAbsurdIDsAreReachedQuickly(t *testing.T) {
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
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			db := openReadOnly(t, path)
			var problems []store.Problem
			if _, err := db.Verify(ctx, func(*store.Stored) []store.Problem { return nil },
				func(p store.Problem) { problems = append(problems, p) },
				func(int, int) {}); err != nil || len(problems) == 0 {
				t.Errorf("Verify() = %v, with %v", err, problems)
			}
			db.SkipDamage(func(error) {})
			n := 0
			for _, err := range db.Attempts(ctx, store.Filter{}) {
				must(t, err)
				n++
			}
			if n+db.Skipped() != 56 || db.Skipped() > 1 {
				t.Errorf("%d attempts, %d skipped, want 56", n, db.Skipped())
			}
			sum, lost, _ := recoverTo(t, path)
			if sum.Attempts < 55 || len(lost) == 0 {
				t.Errorf("%+v; lost %v", sum, lost)
			}
		})
	}
}

// If the latest attempts are cut off together with all rows about them, only the count of the run
// shows it.
func TestVerifyFindsTruncation(t *testing.T) {
	t.Parallel()
	const cut = `DELETE FROM transcripts WHERE attempt > 5;
		DELETE FROM attempt_seals WHERE attempt > 5;
		DELETE FROM attempts WHERE id > 5;
		DELETE FROM trials WHERE id NOT IN (SELECT trial FROM attempts)`
	db, path := create(t)
	for i := range 8 {
		save(t, db, outcome(i))
	}
	doomed := outcome(3)
	must(t, db.EndRun(t.Context(), "r1", nil))
	must(t, db.Close())
	merged := filepath.Join(t.TempDir(), "merged.db")
	merge(t, merged, path)
	backup := filepath.Join(t.TempDir(), "backup.db")
	_, err := openReadOnly(t, path).Backup(t.Context(), backup)
	must(t, err)
	deleted := filepath.Join(t.TempDir(), "deleted.db")
	copyOf(t, path, deleted)
	db = open(t, deleted)
	remove(t, db, store.Choice{
		Levels: []assay.Level{doomed.Level},
		Before: epoch.Add(time.Minute + 2*time.Second),
	})
	must(t, db.Close())
	for _, path := range []string{path, merged, backup} {
		intact(t, path)
		meddle(t, path, cut)
		problems, _ := verify(t, path)
		if !slices.ContainsFunc(problems,
			func(p store.Problem) bool {
				return p.Check == "complete" &&
					strings.Contains(p.What, "3 of its 8")
			}) {
			t.Errorf("problems %v, want one with 3 of 8 attempts missing", problems)
		}
		sum, lost, _ := recoverTo(t, path)
		if int(sum.Missing)+sum.Lost != 3 || sum.Attempts != 5 {
			t.Errorf("recover: %+v, %v, want 5 attempts and 3 missing", sum, lost)
		}
	}
	if problems, proof := verify(t, deleted); len(problems) > 0 || proof.Deleted == 0 {
		t.Errorf("after a deletion: %v, %+v", problems, proof)
	}
}

// Every attempt is either copied or counted as missing.
func TestRecoverCountsUnreadableAttempts(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	for i := range 40 {
		save(t, db, outcome(i))
	}
	must(t, errors.Join(db.EndRun(t.Context(), "r1", nil), db.Close()))
	patch(t, path, clearLastAttempts)
	sum, lost, _ := recoverTo(t, path)
	if sum.Missing == 0 || sum.Lost != 0 || sum.Attempts == 0 ||
		sum.Attempts+int(sum.Missing) != 40 {
		t.Errorf("%+v, want 40 attempts, copied or missing", sum)
	}
	if !slices.ContainsFunc(lost, func(p store.Problem) bool { return p.Check == "file" }) {
		t.Errorf("the problems do not mention the file: %v", lost)
	}
}

// A run that cannot be read does not hide other runs.
func TestReadersSkipDamagedRuns(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]int{
		"UPDATE runs SET started_at = 'yesterday' WHERE seq = 2":  1,
		"INSERT INTO ends VALUES (2, 'r2', 'later', '{}', 10)":    2,
		"UPDATE specs SET serves = '{\"a\": 1}' WHERE run = 'r2'": 2,
	} {
		path := planted(t, whole(t), corruption{sql: sql})
		db := openReadOnly(t, path)
		if _, err := db.Runs(t.Context(), ""); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("Runs() = %v, want ErrDamaged", err)
		}
		if _, err := db.Experiments(t.Context()); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("Experiments() = %v, want ErrDamaged", err)
		}
		var reports []error
		db.SkipDamage(func(err error) { reports = append(reports, err) })
		runs, err := db.Runs(t.Context(), "")
		if err != nil || len(runs) != want || runs[0].ID != "r1" {
			t.Errorf("Runs() = %v, %v, want %d", runs, err, want)
		}
		if e, err := db.Experiments(t.Context()); err != nil || len(e) != 1 {
			t.Errorf("Experiments() = %v, %v, want one", e, err)
		}
		if len(reports) != 1 || !strings.Contains(reports[0].Error(), "r2") || db.Skipped() != 0 {
			t.Errorf("reports %v, %d attempts skipped, want one run", reports, db.Skipped())
		}
	}
}

func TestRecoverMendsFormatNumber(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	for _, number := range []int{-1, 4} {
		path := filepath.Join(t.TempDir(), "assay.db")
		copyOf(t, clean, path)
		rawClosed(t, path, fmt.Sprint("PRAGMA user_version = ", number))
		if _, err := store.Open(t.Context(), path); !errors.Is(err,
			store.ErrOlder) || !strings.Contains(said(err), "hint: older["+path) {
			t.Errorf("%d: Open() = %v, want ErrOlder with a hint", number, err)
		}
		if sum, lost, _ := recoverTo(t, path); sum.Attempts != 56 || len(lost) > 0 {
			t.Errorf("%d: recover: %+v, %v", number, sum, lost)
		}
	}
}

func TestOpenNamesForeignNeighbours(t *testing.T) {
	t.Parallel()
	clean := whole(t)
	path := filepath.Join(t.TempDir(), "assay.db")
	copyOf(t, clean, path)
	must(t, os.Mkdir(path+"-wal", 0o755))
	_, write := store.Open(t.Context(), path)
	_, read := store.OpenReadOnly(t.Context(), path)
	for _, err := range []error{write, read} {
		if err == nil || !strings.Contains(err.Error(), "assay.db-wal") ||
			!strings.Contains(err.Error(), "move it away") {
			t.Errorf("a directory in place of the log: %v", err)
		}
	}
	path = filepath.Join(t.TempDir(), "assay.db")
	copyOf(t, clean, path)
	rawClosed(t, path, "PRAGMA journal_mode = DELETE")
	must(t, os.WriteFile(path+"-journal", []byte(strings.Repeat("junk", 2000)),
		0o644))
	if _, err := store.OpenReadOnly(t.Context(), path); err == nil ||
		!strings.Contains(said(err), "hint: roll_back["+path) {
		t.Errorf("a foreign journal: %v", err)
	}
}

// The mark is next to the store itself, even if it was opened through a link.
func TestMarkIsNextToTheStore(t *testing.T) {
	t.Parallel()
	path := whole(t)
	link := filepath.Join(t.TempDir(), "link.db")
	must(t, os.Symlink(path, link))
	db := openReadOnly(t, link)
	must(t, db.MarkDamaged([]store.Problem{{Check: "seal", Damage: true}}))
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

func TestTranscriptWithoutItsDictionaryIsDamaged(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: saves hundreds of transcripts")
	}
	t.Parallel()
	for name, spoil := range map[string]string{
		"missing":  "DELETE FROM dictionaries WHERE id = 2",
		"damaged":  "UPDATE dictionaries SET body = x'28b52ffd0001' WHERE id = 2",
		"no zstd":  "UPDATE dictionaries SET body = x'74657874' WHERE id = 2",
		"of other": "UPDATE dictionaries SET body = (SELECT body FROM dictionaries WHERE id = 1) WHERE id = 2",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := createClosed(t)
			scripts := kept{}
			scripts.session(t, path, kinds[0], enough)
			scripts.session(t, path, kinds[1], enough)
			used, _ := needs(t, path)
			meddle(t, path, spoil)
			reader, lost := openReadOnly(t, path), kept{}
			for id, want := range scripts {
				got, err := reader.Transcript(t.Context(), id, 1)
				switch {
				case err == nil && reflect.DeepEqual(*want, got):
				case errors.Is(err, store.ErrDamaged) && strings.Contains(said(err), "\nhint: "):
					lost[id] = want
				default:
					t.Fatalf("Transcript() = %v, %v, want the transcript or ErrDamaged with a hint",
						got, err)
				}
			}
			if len(lost) != used[2] || len(lost) == 0 {
				t.Errorf("%d transcripts are lost, want the %d that need dictionary 2",
					len(lost), used[2])
			}
			// The store still accepts transcripts.
			scripts.session(t, path, kinds[0], enough)
			for id := range lost {
				delete(scripts, id)
			}
			scripts.in(t, openReadOnly(t, path))
			if now, _ := needs(t, path); name != "of other" && now[2] > used[2] {
				t.Errorf("%d transcripts need the damaged dictionary, %d before", now[2], used[2])
			}
		})
	}
}
