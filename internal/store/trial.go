package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Set is an immutable set of trials. It takes 16 bytes a trial. The zero value is empty.
type Set struct {
	keys []trialKey // sorted
}

// Has reports whether the set holds the trial.
func (s Set) Has(id assay.TrialID) bool {
	key, err := parseTrialID(id)
	if err != nil {
		return false
	}
	_, found := slices.BinarySearchFunc(s.keys, key, func(a, b trialKey) int {
		return bytes.Compare(a[:], b[:])
	})
	return found
}

// Len returns the number of trials in the set.
func (s Set) Len() int { return len(s.keys) }

// Settled returns the trials that are done in any experiment. Trials are identified by their
// content, so an outcome counts for every experiment that plans its trial. If the store skips
// damage, Settled reads all attempts and leaves out the outcomes that are not proved. Otherwise it
// only reads the index of settled attempts, which is not proved.
func (db *DB) Settled(ctx context.Context) (Set, error) {
	if db.damage != nil {
		return db.setOf(ctx, func(assay.Level) bool { return true })
	}
	query := "SELECT DISTINCT trial FROM attempts WHERE level <> '' ORDER BY trial"
	return db.keys(ctx, query)
}

// Succeeded returns the trials whose latest verdict is full success, in any experiment.
func (db *DB) Succeeded(ctx context.Context) (Set, error) {
	return db.setOf(ctx, func(l assay.Level) bool { return l == assay.FullSuccess })
}

// setOf returns the trials whose latest verdict is chosen.
func (db *DB) setOf(ctx context.Context, chosen func(assay.Level) bool) (Set, error) {
	var set Set
	for a, err := range db.Verdicts(ctx, Filter{OnlySettled: true}) {
		if err != nil {
			return Set{}, err
		}
		if chosen(a.Level) {
			key, _ := parseTrialID(a.ID)
			set.keys = append(set.keys, key)
		}
	}
	slices.SortFunc(set.keys, func(a, b trialKey) int { return bytes.Compare(a[:], b[:]) })
	return set, nil
}

// keys returns the trials in a query with a single column as a set.
func (db *DB) keys(ctx context.Context, query string, args ...any) (Set, error) {
	keys, err := values[trialKey](ctx, db.reader, query, args...)
	return Set{keys}, db.wrap(err)
}

const (
	minPrefix     = 4 // digits of a trial's ID
	maxCandidates = 5 // trials that an [AmbiguousError] lists
)

// FindTrial returns the stored trial whose ID begins with prefix. It returns [ErrPrefix],
// [ErrNotFound] or an [*AmbiguousError] if it cannot.
func (db *DB) FindTrial(ctx context.Context, prefix string) (assay.TrialID, error) {
	from, to, err := prefixRange(prefix)
	if err != nil {
		return "", coded(err, assay.HintTrials, db.path)
	}
	query := "SELECT lower(hex(id)) FROM trials WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
	ids, err := values[assay.TrialID](ctx, db.reader, query, from[:], to[:], maxCandidates+1)
	switch {
	case err != nil:
		return "", db.wrap(err)
	case len(ids) == 0:
		return "", coded(fmt.Errorf("trial %s: %w", prefix, ErrNotFound), assay.HintTrials, db.path)
	case len(ids) > 1:
		first := ids[:min(len(ids), maxCandidates)]
		return "", &AmbiguousError{prefix, first, len(ids) > maxCandidates}
	}
	return ids[0], nil
}

// prefixRange returns the first and the last ID that begin with prefix.
func prefixRange(prefix string) (from, to trialKey, err error) {
	n := 2 * len(from)
	if len(prefix) < minPrefix || len(prefix) > n {
		return from, to, fmt.Errorf("%q is %w: give %d to %d hex digits", prefix, ErrPrefix, minPrefix, n)
	}
	rest := n - len(prefix)
	for pad, key := range map[string]*trialKey{"0": &from, "f": &to} {
		if _, err := hex.Decode(key[:], []byte(prefix+strings.Repeat(pad, rest))); err != nil {
			return from, to, fmt.Errorf("%q is %w: give hex digits", prefix, ErrPrefix)
		}
	}
	return from, to, nil
}
