package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

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
	bodies, bytes := make([]string, len(outcomes)), 0
	for i, o := range outcomes {
		err := check(&assay.Attempt{Outcome: o.Outcome})
		if err == nil {
			var body []byte
			body, err = json.Marshal(o.Outcome)
			bodies[i] = string(body)
		}
		if err != nil {
			return fmt.Errorf("rescore %s: %w: %w", nameAttempt(o.Trial, o.Number), ErrInvalid, err)
		}
		bytes += len(bodies[i])
	}
	outcomes = slices.Clone(outcomes)
	return db.do(ctx, bytes, func(w *writer) error {
		for i, o := range outcomes {
			id, err := w.findAttempt(o.Trial, o.Number)
			if err == nil {
				_, err = w.add("scores", id, o.At, o.Program, bodies[i])
			}
			if err != nil {
				return fmt.Errorf("rescore %s: %w", nameAttempt(o.Trial, o.Number), err)
			}
		}
		return nil
	})
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
func (w *writer) findAttempt(trial assay.TrialID, number int) (id int64, err error) {
	key, err := parseTrialID(trial)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	query := "SELECT id FROM attempts WHERE trial = ? AND number = ?"
	err = w.get(query, []any{key[:], number}, &id)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, ErrNotFound
	}
	return id, err
}
