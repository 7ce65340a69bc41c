package store

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// hold locks a store for writing, as another program does, and returns a function that frees it.
func hold(t *testing.T, path string) (free func()) {
	t.Helper()
	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	other.SetMaxOpenConns(1)
	if _, err := other.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := other.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := other.Close(); err != nil {
			t.Error(err)
		}
	}
}

// locked returns a store that another program has locked, and the result of a write that waits for
// that.
func locked(t *testing.T, longest time.Duration) (db *DB, free func(), result chan error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "assay.db")
	db, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.do(t.Context(), 0, func(w *writer) error {
		w.locked.longest = longest
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	free = hold(t, path)
	result = make(chan error, 1)
	go func() {
		result <- db.Log(t.Context(), Control{Run: assay.RunID("unknown"), At: time.Now()})
	}()
	return db, free, result
}

// TestWriteOutlastsALock checks that a write waits as long as another program has locked the file,
// that the wait can be seen, and that the write then happens.
func TestWriteOutlastsALock(t *testing.T) {
	t.Parallel()
	db, free, result := locked(t, longestLock)
	for db.Locked().IsZero() {
		select {
		case err := <-result:
			t.Fatalf("the write did not wait: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	if waited := time.Since(db.Locked()); waited <= 0 || waited > time.Minute {
		t.Errorf("waited %v", waited)
	}
	free()
	if err := <-result; !errors.Is(err, ErrUnknownRun) { // the transaction has looked for the run
		t.Errorf("after the lock: %v, want ErrUnknownRun", err)
	}
	if !db.Locked().IsZero() {
		t.Error("it still waits")
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestWriteGivesUpALock checks that a write fails if the wait is given up, or if it takes too long,
// and that the error has the program's trace and the wait.
func TestWriteGivesUpALock(t *testing.T) {
	t.Parallel()
	for name, longest := range map[string]time.Duration{"given up": longestLock, "too long": 1} {
		db, free, result := locked(t, longest)
		if name == "given up" {
			db.GiveUp()
		}
		err := <-result
		if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "locked by another program for ") ||
			!strings.Contains(err.Error(), "\nhint: ") || !strings.Contains(err.Error(), "fuser assay.db") {
			t.Errorf("%s: %v", name, err)
		}
		free()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}
