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

// A Rescored is a later verdict on a stored attempt.
type Rescored struct {
	Trial   assay.TrialID
	Number  int // of the attempt
	Outcome assay.Outcome
	At      time.Time
	// Program is the one whose rules gave the verdict.
	Program string
}

// Rescore stores new outcomes for attempts, all of them or none. From then on readers return
// them instead of the earlier ones, which stay in the store: see [Filter.AsSaved] and
// [DB.Snapshot]. If an attempt is rescored more than once, the latest outcome counts. Rescore
// returns the errors of [DB.Save], and [ErrNotFound] for an unknown attempt. A fault has no
// outcome, so rescoring it returns [ErrInvalid].
//
// A call is one transaction, and other writers wait for it, so pass a few hundred outcomes at a
// time. Rescore does not keep the slice.
func (db *DB) Rescore(ctx context.Context, outcomes []Rescored) error {
	if len(outcomes) == 0 {
		return nil
	}
	rows, bytes := make([]scoreRow, len(outcomes)), 0
	for i := range outcomes {
		o := &outcomes[i]
		var err error
		if rows[i], err = encodeScore(o); err != nil {
			return fmt.Errorf("rescore %s: %w: %w", nameAttempt(o.Trial, o.Number), ErrInvalid, err)
		}
		bytes += len(rows[i].body)
	}
	return db.do(ctx, bytes, func(w *writer) error {
		for _, r := range rows {
			if err := w.insertScore(r); err != nil {
				return fmt.Errorf("rescore %s: %w", nameAttempt(r.key.id(), r.number), err)
			}
		}
		return nil
	})
}

func (w *writer) insertScore(r scoreRow) error {
	id, err := w.findAttempt(r.key, r.number)
	if err != nil {
		return err
	}
	res, err := w.stmt.score.ExecContext(w.ctx, w.gone["score"], id, r.at, r.program, r.body)
	return w.sealNew("score", res, err)
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

// findAttempt returns the row ID of an attempt.
func (w *writer) findAttempt(key trialKey, number int) (id int64, err error) {
	err = w.stmt.find.QueryRowContext(w.ctx, key[:], number).Scan(&id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNotFound
	}
	return id, err
}
