package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/assay-eval/assay"
)

// An Outcome is the verdict on a trial without its details.
type Outcome struct {
	Trial         assay.TrialID
	Level         assay.Level
	ErrorCategory string
}

// Outcomes streams the latest verdict on each settled trial in the order in which the trials
// were settled, as of the moment the loop begins. Because it reads nothing else, it takes 1 s
// for a million trials, while [DB.Attempts] takes 13 s. If all trials were rescored, they
// take 3 s and 25 s. An error comes with a zero outcome and ends the sequence.
func (db *DB) Outcomes(ctx context.Context) iter.Seq2[Outcome, error] {
	return stream(func(yield func(Outcome, error) bool) error {
		return db.streamOutcomes(ctx, yield)
	})
}

// Verdicts streams the same attempts as [DB.Attempts], in the same order, with only the fields
// that tables of results need. It leaves out the trial except for its ID, and every column
// marked as detail, such as times. It takes a third of the time. It ignores
// Experiment, Model, Run, Trial and Since in the filter.
func (db *DB) Verdicts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return stream(func(yield func(assay.Attempt, error) bool) error {
		return db.streamVerdicts(ctx, f, yield)
	})
}

func (db *DB) streamVerdicts(
	ctx context.Context, f Filter, yield func(assay.Attempt, error) bool,
) error {
	at, end, err := db.begin(ctx, f.Snapshot, false)
	if err != nil {
		return err
	}

	current, more, err := db.current(ctx, at)
	if err != nil {
		return err
	}
	latest, args := at.latestScore(f.AsSaved)
	query := "SELECT a.id, a.trial, r.id, " + latest + ", " + columnList("a.", verdictFields) +
		" FROM attempts a LEFT JOIN runs r ON r.seq = a.run" +
		" WHERE a.id BETWEEN ? AND ?" + current + " ORDER BY a.id"
	read := func(ctx context.Context, first, last int64) ([]assay.Attempt, error) {
		return db.readVerdicts(ctx, query, slices.Concat(args, []any{first, last}, more))
	}
	visit := func(a assay.Attempt) (bool, error) { return yield(a, nil), nil }
	return eachRow(ctx, db, math.MinInt64, at.attempts, page, read, visit, end)
}

func (db *DB) readVerdicts(
	ctx context.Context, query string, args []any,
) (all []assay.Attempt, err error) {
	in := newInterned()
	err = eachRaw(ctx, db.reader, query, args, func(row []any) (bool, error) {
		var a assay.Attempt
		a.ID = trialIDOf(row[1])
		err := loadVerdict(row[2:], &a, in)
		if err != nil {
			id, _ := row[0].(int64)
			return true, db.skip(id, fmt.Errorf("an attempt at trial %s: %w", a.ID, err))
		}
		all = append(all, a)
		return true, nil
	})
	return all, db.wrap(err)
}

// loadVerdict sets the fields of a verdict from its run, its latest score and verdictFields.
func loadVerdict(row []any, a *assay.Attempt, in *interned) (err error) {
	run, ok := row[0].(string)
	if !ok {
		return errDangling
	}
	a.Run = assay.RunID(in.text(run))
	if err := loadRow(verdictFields, a, row[2:], in); err != nil {
		return err
	}
	if score, ok := row[1].(string); ok {
		a.Outcome, err = parseOutcome([]byte(score))
	}
	return err
}

func (db *DB) streamOutcomes(ctx context.Context, yield func(Outcome, error) bool) error {
	now, end, err := db.begin(ctx, "", false)
	if err != nil {
		return err
	}

	// Without the index of settled attempts, SQLite reads the table from front to back. With it,
	// it would look up each row.
	current, more, err := db.current(ctx, now)
	if err != nil {
		return err
	}
	query, front := "SELECT a.trial, a.level, a.error_category FROM attempts a NOT INDEXED", []any(nil)
	if now.scores > 0 {
		query = `SELECT a.trial, ifnull(s.level, a.level),
				ifnull(s.error_category, a.error_category)
			FROM attempts a NOT INDEXED LEFT JOIN scores s
				ON s.id = (SELECT max(id) FROM scores WHERE attempt = a.id AND id <= ?)`
		front = []any{now.scores}
	}
	query += " WHERE a.level <> '' AND a.id BETWEEN ? AND ?" + current + " ORDER BY a.id"
	read := func(ctx context.Context, first, last int64) ([]Outcome, error) {
		return db.readOutcomes(ctx, query, slices.Concat(front, []any{first, last}, more)...)
	}
	visit := func(o Outcome) (bool, error) { return yield(o, nil), nil }
	return eachRow(ctx, db, math.MinInt64, now.attempts, 10*page, read, visit, end)
}

// readOutcomes scans raw bytes, because it is called for every row of a store.
func (db *DB) readOutcomes(
	ctx context.Context, query string, args ...any,
) (all []Outcome, err error) {
	in := newInterned()
	var trial, level, category sql.RawBytes
	err = each(ctx, db.reader, query, args, func(rows *sql.Rows) (bool, error) {
		if err := rows.Scan(&trial, &level, &category); err != nil {
			return false, err
		}
		id := assay.TrialID(hex.EncodeToString(trial))
		all = append(all, Outcome{id, assay.Level(in.bytes(level)), in.bytes(category)})
		return true, nil
	})
	return all, db.wrap(err)
}
