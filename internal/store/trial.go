package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
)

// A Set is an unchanging set of trials, 16 bytes each. The zero value is empty.
type Set struct {
	keys []trialKey // sorted
}

// Has reports whether the set holds the trial.
func (s Set) Has(id assay.TrialID) bool {
	key, err := parseTrialID(id)
	if err != nil {
		return false
	}
	_, found := slices.BinarySearchFunc(s.keys, key, func(a, b trialKey) int { return bytes.Compare(a[:], b[:]) })
	return found
}

// Len returns the number of trials in the set.
func (s Set) Len() int { return len(s.keys) }

// Settled returns the trials that are done, of all experiments: a trial's
// identity is its content, so an outcome serves every experiment that plans it.
func (db *DB) Settled(ctx context.Context) (Set, error) {
	// The index of settled attempts answers alone, and in order.
	rows, err := db.reader.QueryContext(ctx, "SELECT trial FROM attempts WHERE level <> '' ORDER BY trial")
	keys, err := db.collectKeys(rows, err)
	if err == nil || db.damage == nil || ctx.Err() != nil {
		return Set{keys}, err
	}
	keys = nil
	for o, err := range db.Outcomes(ctx) {
		if err != nil {
			return Set{}, err
		}
		key, err := parseTrialID(o.Trial)
		if err != nil {
			return Set{}, err
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b trialKey) int { return bytes.Compare(a[:], b[:]) })
	return Set{keys}, nil
}

// collectKeys returns the trials of rows of one column.
func (db *DB) collectKeys(rows *sql.Rows, err error) ([]trialKey, error) {
	var raw sql.RawBytes
	return collect(db, rows, err, func(k *trialKey) error {
		err := rows.Scan(&raw)
		copy(k[:], raw)
		return err
	})
}

// trialRows are the row IDs of trials as the table itself has them, for where its index
// is hurt. They are read once, when they are needed.
type trialRows struct {
	once sync.Once
	rows map[trialKey]int64
}

// tablesByRow are [resultTables] of one attempt, with the row ID of its trial for an
// argument.
const tablesByRow = `attempts a NOT INDEXED LEFT JOIN trials t NOT INDEXED ON t.rowid = ? LEFT JOIN runs r ON r.seq = a.run`

// of returns the row ID of a trial, or 0.
func (r *trialRows) of(ctx context.Context, db *DB, key trialKey) int64 {
	r.once.Do(func() { r.rows = db.scanTrials(ctx) })
	return r.rows[key]
}

// scanTrials returns the trials that can be read, by their row IDs, without the index.
func (db *DB) scanTrials(ctx context.Context) map[trialKey]int64 {
	found := make(map[trialKey]int64)
	var scan func(first, last int64)
	scan = func(first, last int64) {
		err := eachRaw(ctx, db.reader, "SELECT rowid, id FROM trials NOT INDEXED WHERE rowid BETWEEN ? AND ?", []any{first, last}, func(row []any) (bool, error) {
			var key trialKey
			id, _ := row[1].([]byte)
			copy(key[:], id)
			found[key], _ = row[0].(int64)
			return true, nil
		})
		if err != nil && first < last && ctx.Err() == nil {
			half := first + (last-first)/2
			scan(first, half)
			scan(half+1, last)
		}
	}
	var last int64
	if err := db.reader.QueryRowContext(ctx, "SELECT ifnull(max(rowid), 0) FROM trials NOT INDEXED").Scan(&last); err != nil {
		last, _ = db.lastAttempt(ctx) // a trial has one attempt at least
	}
	for first := int64(1); first <= last && first > 0 && ctx.Err() == nil; first += page {
		scan(first, min(first+page-1, last))
	}
	return found
}

// Digits of a trial's ID that a prefix has at least, and trials that an
// [AmbiguousError] lists at most.
const (
	minPrefix     = 4
	maxCandidates = 5
)

// FindTrial returns the stored trial whose ID begins with prefix. Its errors
// are [ErrPrefix], [ErrNotFound] and [*AmbiguousError].
func (db *DB) FindTrial(ctx context.Context, prefix string) (assay.TrialID, error) {
	from, to, err := prefixRange(prefix)
	if err != nil {
		return "", err
	}
	rows, err := db.reader.QueryContext(ctx, "SELECT lower(hex(id)) FROM trials WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
		from[:], to[:], maxCandidates+1)
	ids, err := collect(db, rows, err, func(id *assay.TrialID) error { return rows.Scan(id) })
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", hinted(fmt.Errorf("trial %s: %w", prefix, ErrNotFound), "\"assay export\" lists the trials that were tried")
	case len(ids) > 1:
		return "", &AmbiguousError{Prefix: prefix, Trials: ids[:min(len(ids), maxCandidates)], More: len(ids) > maxCandidates}
	}
	return ids[0], nil
}

// prefixRange returns the first and the last ID that begin with prefix.
func prefixRange(prefix string) (from, to trialKey, err error) {
	n := 2 * len(from)
	if len(prefix) < minPrefix || len(prefix) > n {
		return from, to, fmt.Errorf("%q is %w: it takes %d to %d hex digits", prefix, ErrPrefix, minPrefix, n)
	}
	rest := n - len(prefix)
	for pad, key := range map[string]*trialKey{"0": &from, "f": &to} {
		if _, err := hex.Decode(key[:], []byte(prefix+strings.Repeat(pad, rest))); err != nil {
			return from, to, fmt.Errorf("%q is %w: it takes hex digits", prefix, ErrPrefix)
		}
	}
	return from, to, nil
}
