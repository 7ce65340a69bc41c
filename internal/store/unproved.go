package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-eval/assay"
)

// A revision names an attempt and a score or costs of it by their row IDs.
type revision struct{ attempt, row int64 }

func (r revision) compare(o revision) int {
	return cmp.Or(cmp.Compare(r.attempt, o.attempt), cmp.Compare(r.row, o.row))
}

// revisions remember which rows of scores or costs up to a row ID are proved, so that a command that
// reads attempts several times proves them once.
type revisions struct {
	mu     sync.Mutex
	last   int64
	proved []revision // sorted; nil before the first proof
}

// upTo returns the proved rows of a table of the store, at least up to a row ID.
func (r *revisions) upTo(ctx context.Context, db *DB, table string, last int64) ([]revision, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proved != nil && r.last >= last {
		return r.proved, nil
	}
	proved := []revision{}
	_, err := db.eachProved(ctx, table, func(id int64, row []any) error {
		attempt, _ := row[0].(int64)
		proved = append(proved, revision{attempt, id})
		return nil
	})
	if err == nil {
		slices.SortFunc(proved, revision.compare)
		r.last, r.proved = last, proved
	}
	return proved, err
}

// latestOf returns the latest row about an attempt up to a row ID, or 0.
func latestOf(rows []revision, attempt, last int64) int64 {
	i, _ := slices.BinarySearchFunc(rows, revision{attempt, last + 1}, revision.compare)
	if i == 0 || rows[i-1].attempt != attempt {
		return 0
	}
	return rows[i-1].row
}

// unproved returns the row IDs of the rows of a table that are not proved: see [DB.eachProved].
func (db *DB) unproved(ctx context.Context, table string) (map[int64]bool, error) {
	return db.eachProved(ctx, table, func(int64, []any) error { return nil })
}

// eachProved visits the rows of a table that are as they were saved, and returns the IDs of the
// others and of those that are missing. Unless the store skips damage, it is an error if there are
// any.
func (db *DB) eachProved(
	ctx context.Context, table string, visit func(id int64, row []any) error,
) (map[int64]bool, error) {
	broken := make(map[int64]bool)
	skip := func(id int64, name, why string) error {
		broken[id] = true
		err := fmt.Errorf("%s: %w: it %s", name, ErrDamaged, why)
		if err := db.skip(table, err, id); err != nil {
			return coded(err, assay.HintRescue, db.path)
		}
		return nil
	}
	err := db.eachSealed(ctx, table, func(r sealedRow) (bool, error) {
		if r.broken != "" {
			return true, skip(r.id, nameRow(table, r.id, r.row), r.broken)
		}
		return true, visit(r.id, r.row)
	})
	if err != nil {
		return broken, err
	}
	missing, err := db.missingRows(ctx, table)
	for _, id := range missing {
		err = errors.Join(err, skip(id, nameRow(table, id, nil), "was saved and is missing"))
	}
	return broken, err
}

// nameRow names a row, with the values of its sealed columns if they are known, for the user.
func nameRow(table string, id int64, row []any) string {
	if row != nil && slices.Contains([]string{"runs", "specs", "ends"}, table) {
		return fmt.Sprintf("run %v", row[0])
	}
	return fmt.Sprintf("row %d of %s", id, table)
}

// missingRows returns the IDs of the rows of a table that have a seal and are missing.
func (db *DB) missingRows(ctx context.Context, table string) ([]int64, error) {
	if lacks, err := db.lacks(ctx, table); err != nil || lacks {
		return nil, err
	}
	query := "SELECT id FROM seals WHERE of = ? AND id NOT IN (SELECT rowid FROM " + table +
		") ORDER BY id"
	ids, err := values[int64](ctx, db.reader, query, table)
	return ids, db.wrap(err)
}

// unprovedRuns returns the IDs of the runs whose rows are not as they were saved.
func (db *DB) unprovedRuns(ctx context.Context) (map[string]bool, error) {
	unproved, err := db.unproved(ctx, "runs")
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
