package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/assay-eval/assay"
)

// Transcript returns the transcript of an attempt. Number 0 means the attempt whose outcome counts
// or, if the trial is not settled yet, the latest.
func (db *DB) Transcript(
	ctx context.Context, trial assay.TrialID, number int,
) (assay.Transcript, error) {
	key, err := parseTrialID(trial)
	if err != nil {
		return assay.Transcript{}, err
	}
	var body []byte
	err = db.reader.QueryRowContext(ctx, `SELECT body
		FROM attempts LEFT JOIN transcripts ON attempt = id
		WHERE trial = ?1 AND ?2 IN (0, number)
		ORDER BY level <> '' DESC, number DESC LIMIT 1`, key[:], number).Scan(&body)
	what := fmt.Sprintf("trial %s", trial)
	if number != 0 {
		what = nameAttempt(trial, number)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return assay.Transcript{}, fmt.Errorf("%s: %w", what, ErrNotFound)
	case err != nil:
		return assay.Transcript{}, db.readError(err)
	case body == nil:
		return assay.Transcript{}, fmt.Errorf("%s: transcript: %w", what, ErrNotFound)
	}
	t, err := db.parseTranscript(ctx, body)
	if err != nil {
		return assay.Transcript{}, fmt.Errorf("%s: %w", what, err)
	}
	return t, nil
}

// A Stored is an attempt with its transcript.
type Stored struct {
	Attempt assay.Attempt
	// Transcript is nil if none was saved or it cannot be read.
	Transcript *assay.Transcript
}

// Transcripts streams the same attempts as [DB.Attempts], with their transcripts. If a
// transcript is damaged, its attempt comes with [ErrDamaged], and the sequence continues. Any
// other error comes with a zero value and ends the sequence. Several goroutines read ahead by a
// few hundred transcripts at most.
func (db *DB) Transcripts(ctx context.Context, f Filter) iter.Seq2[Stored, error] {
	return stream(func(yield func(Stored, error) bool) error {
		visit := func(a assay.Attempt, body []byte) (bool, error) {
			if body == nil {
				return yield(Stored{Attempt: a}, nil), nil
			}
			t, err := db.parseTranscript(ctx, body)
			switch {
			case err == nil:
				return yield(Stored{a, &t}, nil), nil
			case errors.Is(err, ErrDamaged):
				err = fmt.Errorf("%s: %w", nameAttempt(a.ID, a.Number), err)
				return yield(Stored{Attempt: a}, err), nil
			}
			return false, err
		}
		return db.walk(ctx, f, bodyColumn, page/10, visit)
	})
}

func (db *DB) parseTranscript(ctx context.Context, body []byte) (t assay.Transcript, err error) {
	text, err := db.decompress(ctx, body)
	if err != nil {
		return assay.Transcript{}, fmt.Errorf("transcript: %w", err)
	}
	if err := json.Unmarshal(text, &t); err != nil {
		return assay.Transcript{}, fmt.Errorf("transcript: %w", damagedBody(err))
	}
	return t, nil
}
