package store

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// longestLock is how long writes wait for a program that has locked the file.
const longestLock = time.Hour

// oneTry is how many milliseconds SQLite itself waits for a lock. Then the writer looks whether it
// is to go on.
const oneTry = 1000

// A lockWait is the writer's wait for a lock that another program holds.
type lockWait struct {
	longest time.Duration

	mu      sync.Mutex // guards the fields below
	since   time.Time  // zero if the writer does not wait
	givenUp bool
}

// goesOn reports whether the writer tries again, and since when it has waited.
func (l *lockWait) goesOn(began time.Time) (since time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		l.since = began
	}
	return l.since, !l.givenUp && time.Since(l.since) < l.longest
}

func (l *lockWait) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Time{}
}

// Locked returns since when writes have been waiting because another program has locked the store,
// or the zero time if they are not. They wait for an hour at most, and keep everything meanwhile.
func (db *DB) Locked() time.Time {
	db.locked.mu.Lock()
	defer db.locked.mu.Unlock()
	return db.locked.since
}

// GiveUp makes writes that wait for another program's lock fail with [ErrBusy] within about a
// second, now and later. Other writes go on.
func (db *DB) GiveUp() {
	db.locked.mu.Lock()
	defer db.locked.mu.Unlock()
	db.locked.givenUp = true
}

// insist is try, again and again while another program has locked the file.
func (w *writer) insist(batch []*op) error {
	defer w.locked.end()
	for {
		began := time.Now()
		err := w.try(batch)
		if c := primary(err); c != sqlite3.SQLITE_BUSY && c != sqlite3.SQLITE_LOCKED {
			return err
		}
		since, ok := w.locked.goesOn(began)
		if !ok {
			err := fmt.Errorf("store %s: %w for %v: %w", w.path, ErrBusy,
				time.Since(since).Round(time.Second), err)
			return hinted(err, fmt.Sprintf("what is in the store is safe; close the program, which "+
				"`fuser %s` names, and run again", filepath.Base(w.path)))
		}
		time.Sleep(commitWait)
	}
}
