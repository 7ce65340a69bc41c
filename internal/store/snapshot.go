package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A storedState is everything stored up to these row IDs of attempts, scores and costs. Because rows
// are only added, it never changes.
type storedState struct{ attempts, scores, costs int64 }

// revised returns what changes if attempts get later outcomes or costs.
func (s storedState) revised() [2]int64 { return [2]int64{s.scores, s.costs} }

// Snapshot names the present state. The name has the number of attempts, a plus sign and the
// number of scores if there are any, the same of costs, and a digest of the last row of each and of all
// deletions. It stands for the same attempts with the same outcomes and costs forever. Once some of them are
// deleted, it is unknown. A damaged state has no name, which counts in [DB.SkippedRows].
func (db *DB) Snapshot(ctx context.Context) (name string, err error) {
	now, err := db.present(ctx)
	if err == nil {
		name, err = db.nameOf(ctx, now)
	}
	if err != nil && db.forgive("the name of the snapshot", err) == nil {
		return "", err
	}
	return name, err
}

func (db *DB) present(ctx context.Context) (now storedState, err error) {
	costs := ", (SELECT ifnull(max(id), 0) FROM costs)"
	if lacks, err := db.lacks(ctx, "costs"); err != nil {
		return now, err
	} else if lacks {
		costs = ", 0"
	}
	query := `SELECT (SELECT ifnull(max(id), 0) FROM attempts),
		(SELECT ifnull(max(id), 0) FROM scores)` + costs
	err = db.reader.QueryRowContext(ctx, query).Scan(&now.attempts, &now.scores, &now.costs)
	return now, db.wrap(err)
}

// deletions returns the row ID of the latest deletion. Rows that were read in several steps are of
// one state if it is the same before and after.
func (db *DB) deletions(ctx context.Context) (last int64, err error) {
	err = db.reader.QueryRowContext(ctx, "SELECT ifnull(max(id), 0) FROM deletions").Scan(&last)
	return last, db.wrap(db.forgive("the records of deletions", err))
}

// unchanged returns an error if something was deleted since.
func (db *DB) unchanged(ctx context.Context, before int64) error {
	now, err := db.deletions(ctx)
	if err == nil && now != before {
		err = hinted(fmt.Errorf("store %s: %w", db.path, ErrChanged),
			"the rows read so far are not of one state; run the same command again")
	}
	return err
}

// state returns the state with that name, or the present one if the name is empty. If scores or costs
// are damaged and the store skips damage, the present state has all attempts as they were saved.
func (db *DB) state(ctx context.Context, snapshot string) (at storedState, err error) {
	if snapshot == "" {
		at, err = db.present(ctx)
		if err != nil && db.forgive("the latest scores and costs", err) == nil {
			at.attempts, err = db.lastAttempt(ctx)
		}
		return at, err
	}
	rows, _, _ := strings.Cut(snapshot, "-")
	n := min(strings.Count(rows, "+"), 2)
	format, to := "%d"+strings.Repeat("+%d", n), []any{&at.attempts, &at.scores, &at.costs}[:1+n]
	if _, err := fmt.Sscanf(rows, format, to...); err != nil {
		return storedState{}, fmt.Errorf("%q: %w", snapshot, ErrUnknownSnapshot)
	}
	name, err := db.nameOf(ctx, at)
	if errors.Is(err, sql.ErrNoRows) || err == nil && name != snapshot {
		return storedState{}, hinted(fmt.Errorf("%q: %w", snapshot, ErrUnknownSnapshot),
			"it belongs to another store, or some of its attempts were deleted")
	}
	return at, err
}

func (db *DB) nameOf(ctx context.Context, s storedState) (string, error) {
	if s == (storedState{}) {
		return "0", nil
	}
	var last []string
	add := func(query string, args ...any) error {
		return eachRaw(ctx, db.reader, query, args, func(row []any) (bool, error) {
			if slices.Contains(row, nil) {
				return false, errDangling
			}
			for _, v := range row {
				last = append(last, fmt.Sprint(v))
			}
			return true, nil
		})
	}
	rows, texts := fmt.Sprint(s.attempts), 4
	if s.revised() != [2]int64{} {
		rows += fmt.Sprint("+", s.scores)
	}
	err := add(`SELECT lower(hex(a.trial)), a.number, r.id, a.finished_at
		FROM attempts a LEFT JOIN runs r ON r.seq = a.run WHERE a.id = ?`, s.attempts)
	if err == nil && s.scores > 0 {
		texts += 3
		err = add("SELECT attempt, scored_at, body FROM scores WHERE id = ?", s.scores)
	}
	if err == nil && s.costs > 0 {
		rows, texts = rows+fmt.Sprint("+", s.costs), texts+3
		err = add("SELECT attempt, priced_at, sha256 FROM costs WHERE id = ?", s.costs)
	}
	if err == nil && len(last) < texts {
		err = sql.ErrNoRows
	}
	if err == nil {
		err = add(`SELECT group_concat(id || ' ' || at || ' ' || what) FROM
			(SELECT * FROM deletions WHERE what -> 'rows' IS NOT NULL ORDER BY id)
			HAVING count(*) > 0`)
	}
	if err != nil {
		return "", db.wrap(err)
	}
	sum := sha256.Sum256([]byte(strings.Join(last, "\x00")))
	return rows + "-" + hex.EncodeToString(sum[:6]), nil
}

// begin returns the state to read, and a function that reports at the end of reading whether
// something was deleted meanwhile.
func (db *DB) begin(
	ctx context.Context, snapshot string,
) (at storedState, end func() error, err error) {
	before, err := db.deletions(ctx)
	if err == nil {
		at, err = db.state(ctx, snapshot)
	}
	return at, func() error { return db.unchanged(ctx, before) }, err
}
