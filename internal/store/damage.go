package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"sync"
)

// damage records the rows that readers skipped.
type damage struct {
	mu      sync.Mutex
	skipped map[skippedRow]bool // guarded by mu
	tell    func(error)         // called under mu
}

// A skippedRow is named by its kind and its row ID. The kind is ofAttempt, or one of [sealed], or a
// description of the unreadable rows.
type skippedRow struct {
	of string
	id int64
}

const ofAttempt = "attempt"

// SkipDamage makes readers leave out the rows that they cannot read or that are not as they were
// saved. Without it, such a row is an error. tell is called once for each skipped row, or once for
// a stretch of rows that SQLite could not read, by one goroutine at a time. Call SkipDamage before
// reading.
func (db *DB) SkipDamage(tell func(error)) {
	db.damage = &damage{skipped: make(map[skippedRow]bool), tell: tell}
}

// Skipped returns how many attempts could not be read or proved so far, including those that
// [DB.SkipGone] found.
func (db *DB) Skipped() int { return db.countSkipped(true) }

// SkippedRows returns how many runs, libraries and rows of other tables were left out so far,
// wholly or in part.
func (db *DB) SkippedRows() int { return db.countSkipped(false) }

func (db *DB) countSkipped(attempts bool) (n int) {
	if db.damage == nil {
		return 0
	}
	db.damage.mu.Lock()
	defer db.damage.mu.Unlock()
	for row := range db.damage.skipped {
		if (row.of == ofAttempt) == attempts {
			n++
		}
	}
	return n
}

// skip records rows of a kind that cannot be read or proved, and reports them unless all are known.
// Unless the store skips damage, it returns err.
func (db *DB) skip(of string, err error, ids ...int64) error {
	d := db.damage
	if d == nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known := len(d.skipped)
	for _, id := range ids {
		d.skipped[skippedRow{of, id}] = true
	}
	if len(d.skipped) > known {
		d.tell(err)
	}
	return nil
}

// SkipGone counts attempts that have a seal but cannot be found. They were deleted by another
// program, or a page is in the wrong place, or the upper pages of their table are damaged, so that
// it ends early without an error. Only the seals show it.
func (db *DB) SkipGone(ctx context.Context) error {
	query := "SELECT attempt FROM attempt_seals WHERE attempt NOT IN (SELECT id FROM attempts)"
	gone, err := values[int64](ctx, db.reader, query)
	if err != nil || len(gone) == 0 {
		return db.wrap(db.forgive("attempts and their seals", err))
	}
	some := strings.Trim(fmt.Sprint(gone[:min(len(gone), 10)]), "[]")
	err = fmt.Errorf("%d attempts that were saved and are missing: row IDs %s", len(gone), some)
	return db.skip(ofAttempt, err, gone...)
}

// readIDs returns the row IDs of attempts.
func (db *DB) readIDs(ctx context.Context, first, last int64) ([]int64, error) {
	query := "SELECT id FROM attempts NOT INDEXED WHERE id BETWEEN ? AND ? ORDER BY id"
	return values[int64](ctx, db.reader, query, first, last)
}

// skipRest records the attempts in a range of row IDs that SQLite did not return because of err.
// Only their seals show how many there are. Unless err is damage and the store skips it,
// skipRest returns err.
func (db *DB) skipRest(ctx context.Context, first, last int64, err error) error {
	if db.damage == nil || !isDamage(err) {
		return err
	}
	// SQLite returns the rows before the damage, unless another table is damaged.
	intact, failed := db.readIDs(ctx, first, last)
	if failed != nil && len(intact) > 0 {
		first = intact[len(intact)-1] + 1
	}
	query := "SELECT attempt FROM attempt_seals WHERE attempt BETWEEN ? AND ?"
	lost, _ := values[int64](ctx, db.reader, query, first, last)
	if len(lost) == 0 { // the seals cannot be read either
		lost = append(intact, first)
	}
	err = fmt.Errorf("%d attempts after row ID %d: %w", len(lost), first-1, err)
	return db.skip(ofAttempt, err, lost...)
}

// forgive records that something cannot be read, and returns nil. If err isn't damage, or the store
// does not skip it, forgive returns err.
func (db *DB) forgive(what string, err error) error {
	if db.damage == nil || !isDamage(err) {
		return err
	}
	return db.skip(what, fmt.Errorf("%s: %w", what, db.wrap(err)), 0)
}

// seek returns the row ID of the first attempt from the given one on.
func (db *DB) seek(ctx context.Context, from int64) (int64, bool) {
	id, err := db.bound(ctx, "min", from)
	if err != nil {
		return max(from, 1), true
	}
	return id.Int64, id.Valid
}

// lastAttempt returns the highest row ID of an attempt, or 0.
func (db *DB) lastAttempt(ctx context.Context) (int64, error) {
	id, err := db.bound(ctx, "max", math.MinInt64)
	return id.Int64, err
}

// bound returns the min or max row ID of the attempts from the given one on. If that table is
// damaged, it returns the min or max of their seals.
func (db *DB) bound(ctx context.Context, which string, from int64) (id sql.NullInt64, err error) {
	for _, rows := range []string{
		"(id) FROM attempts WHERE id >= ?", "(attempt) FROM attempt_seals WHERE attempt >= ?",
	} {
		query := "SELECT " + which + rows
		err = db.reader.QueryRowContext(ctx, query, from).Scan(&id)
		if err == nil || !isDamage(err) {
			break
		}
	}
	return id, db.wrap(err)
}
