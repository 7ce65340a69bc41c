package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"iter"

	"github.com/assay-eval/assay"
)

// An Outcome is the verdict on a trial, the least that a table of results takes.
type Outcome struct {
	Trial         assay.TrialID
	Level         assay.Level
	ErrorCategory string
}

// Outcomes streams the latest verdict on each settled trial in the order in
// which the trials were settled, as of the moment when the loop begins. It reads
// nothing else and takes a second for a million, where [DB.Attempts] takes
// thirteen; after a rescoring of all, three and twenty-five. After an error,
// which comes with a zero outcome, the sequence ends.
func (db *DB) Outcomes(ctx context.Context) iter.Seq2[Outcome, error] {
	return func(yield func(Outcome, error) bool) {
		if err := db.streamOutcomes(ctx, yield); err != nil {
			yield(Outcome{}, err)
		}
	}
}

func (db *DB) streamOutcomes(ctx context.Context, yield func(Outcome, error) bool) error {
	now, err := db.present(ctx)
	if err != nil {
		return err
	}
	// In the order of id the table is read from its front to its end. The index
	// of settled attempts would look each of them up.
	text := "SELECT trial, level, error_category FROM attempts WHERE level <> '' AND id <= ?1 ORDER BY id"
	if now.scores > 0 {
		text = `SELECT a.trial, ifnull(s.level, a.level), ifnull(s.error_category, a.error_category)
			FROM attempts a LEFT JOIN scores s ON s.id = (SELECT max(id) FROM scores WHERE attempt = a.id AND id <= ?2)
			WHERE a.level <> '' AND a.id <= ?1 ORDER BY a.id`
	}
	rows, err := db.reader.QueryContext(ctx, text, now.attempts, now.scores)
	if err != nil {
		return db.readError(err)
	}
	defer rows.Close()
	seen := make(words)
	var trial, level, category sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&trial, &level, &category); err != nil {
			return db.readError(err)
		}
		o := Outcome{assay.TrialID(hex.EncodeToString(trial)), assay.Level(seen.of(level)), seen.of(category)}
		if !yield(o, nil) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return db.readError(err)
	}
	return nil
}

// words holds texts that come again and again, once each.
type words map[string]string

func (w words) of(text []byte) string {
	word, ok := w[string(text)]
	if !ok {
		word = string(text)
		w[word] = word
	}
	return word
}
