package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

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
	return Set{keys}, err
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
