package store_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/store"
)

// later returns the path of a store that three programs wrote: this one, a later one that stores a
// further field of attempts, and this one again.
func later(t *testing.T) string {
	t.Helper()
	db, path := create(t)
	save(t, db, outcome(1))
	must(t, db.Close())
	db, err := store.OpenLater(t.Context(), path)
	must(t, err)
	second := outcome(2)
	second.Superseded = true
	save(t, db, second, outcome(3))
	must(t, db.Close())
	db = open(t, path)
	save(t, db, outcome(4), fault(5))
	must(t, errors.Join(db.EndRun(t.Context(), "r1", nil), db.Close()))
	return path
}

// marked returns the tasks of the attempts that have the later field.
func marked(t *testing.T, path string) (tasks []string) {
	t.Helper()
	rows, err := raw(t, path, "").Query("SELECT task FROM results WHERE superseded = 1")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var task string
		must(t, rows.Scan(&task))
		tasks = append(tasks, task)
	}
	must(t, rows.Err())
	return tasks
}

// A store that a later program has written to opens in this one, and the other way round. A field of
// the later program is carried to copies, and stays under its seal.
func TestFieldsOfLaterPrograms(t *testing.T) {
	t.Parallel()
	path := later(t)
	dir := t.TempDir()
	backup, recovered := filepath.Join(dir, "backup"), filepath.Join(dir, "recovered")
	merged := filepath.Join(dir, "merged")
	db := openReadOnly(t, path)
	if got := len(all(t, db, store.Filter{})); got != 5 {
		t.Fatalf("%d attempts, want 5", got)
	}
	_, copied := db.Backup(t.Context(), backup)
	other, plain := create(t)
	save(t, other, outcome(1), outcome(6))
	must(t, other.Close())
	_, failed := store.Merge(t.Context(), merged, []string{plain, path}, quiet)
	_, lost := store.Recover(t.Context(), recovered, path, quiet)
	must(t, errors.Join(copied, failed, lost))
	for _, path := range []string{path, backup, recovered, merged} {
		intact(t, path)
		if diff := cmp.Diff([]string{"task_00000002"}, marked(t, path)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", filepath.Base(path), diff)
		}
	}

	rawClosed(t, path, "DROP TRIGGER attempts_keep; UPDATE attempts SET superseded = 0")
	if problems, _ := verify(t, path); !named(problems, "seal") {
		t.Errorf("%v, want a row that differs from its seal", problems)
	}
}

func named(problems []store.Problem, check string) bool {
	for _, p := range problems {
		if p.Check == check {
			return true
		}
	}
	return false
}

// A trial with a setting that only a later program knows is not read as the trial without it.
func TestTrialsOfLaterPrograms(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, outcome(1), outcome(2))
	must(t, db.Close())
	const add = "ALTER TABLE trials ADD COLUMN mood TEXT NOT NULL DEFAULT ''; DROP TRIGGER trials_keep; "
	rawClosed(t, path, add)
	if got := len(all(t, openReadOnly(t, path), store.Filter{})); got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
	rawClosed(t, path, "UPDATE trials SET mood = 'calm' WHERE rowid = 1")
	for _, err := range openReadOnly(t, path).Attempts(t.Context(), store.Filter{}) {
		if err == nil {
			continue
		}
		if !errors.Is(err, store.ErrNewer) || !strings.Contains(err.Error(), "mood") {
			t.Errorf("%v, want ErrNewer with the column", err)
		}
		return
	}
	t.Error("no error for a trial of a later program")
}

// Another program may have added a column of any name and type. Its store can be read and copied.
func TestColumnsOfOtherPrograms(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	save(t, db, outcome(1), outcome(2))
	must(t, errors.Join(db.EndRun(t.Context(), "r1", nil), db.Close()))
	rawClosed(t, path, `ALTER TABLE attempts ADD COLUMN "my ""note""; DROP TABLE runs" TEXT NOT NULL DEFAULT 'a;b';
		ALTER TABLE trials ADD COLUMN "order" BLOB NOT NULL DEFAULT x'00ff'`)
	if got := len(all(t, openReadOnly(t, path), store.Filter{})); got != 2 {
		t.Errorf("%d attempts, want 2", got)
	}
	merged := filepath.Join(t.TempDir(), "merged")
	_, err := store.Merge(t.Context(), merged, []string{path}, quiet)
	must(t, err)
	intact(t, merged)
	save(t, open(t, path), fault(3))
}
