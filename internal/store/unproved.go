package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// scoreProof remembers which scores up to a row ID are not proved, so that a command that reads
// attempts several times proves their scores once.
type scoreProof struct {
	mu     sync.Mutex
	last   int64
	broken map[int64]bool // nil before the first proof
}

func (db *DB) unprovedScores(ctx context.Context, last int64) (map[int64]bool, error) {
	db.scores.mu.Lock()
	defer db.scores.mu.Unlock()
	if db.scores.broken != nil && db.scores.last >= last {
		return db.scores.broken, nil
	}
	broken, err := db.unproved(ctx, "score")
	if err == nil {
		db.scores.last, db.scores.broken = last, broken
	}
	return broken, err
}

// unproved returns the row IDs of the rows of a kind that are not proved: see [DB.eachProved].
func (db *DB) unproved(ctx context.Context, of string) (map[int64]bool, error) {
	return db.eachProved(ctx, of, func([]any) error { return nil })
}

// eachProved visits the rows of a kind that are as they were saved, and returns the IDs of the
// others and of those that are missing. Unless the store skips damage, it is an error if there are
// any.
func (db *DB) eachProved(
	ctx context.Context, of string, visit func(row []any) error,
) (map[int64]bool, error) {
	broken := make(map[int64]bool)
	skip := func(id int64, name, why string) error {
		broken[id] = true
		err := fmt.Errorf("%s: %w: it %s", name, ErrDamaged, why)
		if err := db.skip(of, err, id); err != nil {
			return hinted(err, doRescue)
		}
		return nil
	}
	name := func(id int64) string { return fmt.Sprintf("row %d of %s", id, sealed[of].table) }
	err := db.eachSealed(ctx, of, func(r sealedRow) (bool, error) {
		switch {
		case r.broken == "":
			return true, visit(r.row)
		case wholeRow(of) == "run":
			return true, skip(r.id, fmt.Sprintf("run %v", r.row[0]), r.broken)
		}
		return true, skip(r.id, name(r.id), r.broken)
	})
	if err != nil || of != wholeRow(of) {
		return broken, err
	}
	missing, err := db.missingRows(ctx, of)
	for _, id := range missing {
		err = errors.Join(err, skip(id, name(id), "was saved and is missing"))
	}
	return broken, err
}

// missingRows returns the IDs of the rows of a kind that have a seal and are missing.
func (db *DB) missingRows(ctx context.Context, of string) ([]int64, error) {
	query := "SELECT id FROM seals WHERE of = ? AND id NOT IN (SELECT " + sealed[of].id + " FROM " +
		sealed[of].table + ") ORDER BY id"
	ids, err := values[int64](ctx, db.reader, query, of)
	return ids, db.wrap(err)
}

// unprovedRuns returns the IDs of the runs whose rows are not as they were saved.
func (db *DB) unprovedRuns(ctx context.Context) (map[string]bool, error) {
	unproved, err := db.unproved(ctx, "run")
	if err != nil || len(unproved) == 0 {
		return nil, err
	}
	ids, err := table[int64, string](ctx, db.reader, "SELECT seq, id FROM runs")
	runs := make(map[string]bool)
	for seq := range unproved {
		runs[ids[seq]] = true
	}
	return runs, db.wrap(err)
}
