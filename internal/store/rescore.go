package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

const scoreColumns = "attempt, scored_at, program, body"

// A Rescored is what rules say of an attempt that was stored before.
type Rescored struct {
	Trial   assay.TrialID
	Number  int // of the attempt
	Outcome assay.Outcome
	At      time.Time
	// Program is the one whose rules they are.
	Program string
}

// Rescore stores outcomes of attempts anew, all or none. From then on readers
// get them in place of those before, which stay in the store: see
// [Filter.AsSaved] and [DB.Snapshot]. Of two outcomes for one attempt the later
// holds. Its errors are those of [DB.Save] and, for an attempt that is not
// there, [ErrNotFound]; a fault has no outcome and is [ErrInvalid].
//
// All of a call is one transaction, for which other writers wait: some hundred
// outcomes are a good number. Rescore does not keep the slice.
func (db *DB) Rescore(ctx context.Context, outcomes []Rescored) error {
	if len(outcomes) == 0 {
		return nil
	}
	rows, bytes := make([]scoreRow, len(outcomes)), 0
	for i := range outcomes {
		var err error
		if rows[i], err = encodeScore(&outcomes[i]); err != nil {
			return fmt.Errorf("rescore %s: %w: %w", nameAttempt(outcomes[i].Trial, outcomes[i].Number), ErrInvalid, err)
		}
		bytes += len(rows[i].body)
	}
	return db.do(ctx, bytes, func(w *writer) error {
		for _, r := range rows {
			id, err := w.findAttempt(r.key, r.number)
			if err == nil {
				res, failed := w.stmt.score.ExecContext(w.ctx, w.gone["score"], id, r.at, r.program, r.body)
				err = w.sealNew("score", res, failed)
			}
			if err != nil {
				return fmt.Errorf("rescore %s: %w", nameAttempt(r.key.id(), r.number), err)
			}
		}
		return nil
	})
}

type scoreRow struct {
	key               trialKey
	number            int
	at, program, body string
}

func encodeScore(r *Rescored) (row scoreRow, err error) {
	row.number, row.program = r.Number, r.Program
	if row.key, err = parseTrialID(r.Trial); err != nil {
		return row, err
	}
	if err := check(&assay.Attempt{Outcome: r.Outcome}); err != nil {
		return row, err
	}
	if row.at, err = formatTime(r.At); err != nil {
		return row, err
	}
	body, err := json.Marshal(r.Outcome)
	row.body = string(body)
	return row, err
}

func parseOutcome(body []byte) (o assay.Outcome, err error) {
	err = json.Unmarshal(body, &o)
	if len(o.RequiredTools) == 0 {
		o.RequiredTools = nil
	}
	if len(o.ExecutedTools) == 0 {
		o.ExecutedTools = nil
	}
	return o, err
}

// findAttempt returns the row of an attempt.
func (w *writer) findAttempt(key trialKey, number int) (id int64, err error) {
	err = w.stmt.find.QueryRowContext(w.ctx, key[:], number).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNotFound
	}
	return id, err
}
