package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/assay-eval/assay"
)

// Transcript returns the transcript of an attempt. Number 0 means the attempt whose outcome counts
// or, if the trial is not settled yet, the latest. If the store skips damage, a damaged transcript
// counts in [DB.SkippedRows].
func (db *DB) Transcript(
	ctx context.Context, trial assay.TrialID, number int,
) (assay.Transcript, error) {
	key, err := parseTrialID(trial)
	if err != nil {
		return assay.Transcript{}, err
	}
	what := fmt.Sprintf("trial %s", trial)
	if number != 0 {
		what = nameAttempt(trial, number)
	}
	row, t, err := db.findTranscript(ctx, key, number)
	if err == nil && t == nil {
		err = fmt.Errorf("transcript: %w", ErrNotFound)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
		if db.damage != nil && errors.Is(err, ErrDamaged) {
			db.damage.skipRow("transcript", row, err)
		}
		return assay.Transcript{}, err
	}
	return *t, nil
}

// findTranscript returns the row ID of an attempt, and its transcript unless it has none.
func (db *DB) findTranscript(
	ctx context.Context, key trialKey, number int,
) (row int64, t *assay.Transcript, err error) {
	var body, script []byte
	err = db.reader.QueryRowContext(ctx, `SELECT a.id, body, script
		FROM attempts a LEFT JOIN transcripts t ON t.attempt = a.id
			LEFT JOIN attempt_seals s ON s.attempt = a.id
		WHERE trial = ?1 AND ?2 IN (0, number)
		ORDER BY level <> '' DESC, number DESC LIMIT 1`,
		key[:], number).Scan(&row, &body, &script)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil, ErrNotFound
	}
	if err != nil {
		return 0, nil, db.readError(err)
	}
	t, err = db.transcriptOf(ctx, row, body, script)
	return row, t, err
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
		visit := func(r row) (bool, error) {
			t, err := db.transcriptOf(ctx, r.id, r.body, r.script)
			switch {
			case err == nil:
				return yield(Stored{r.attempt, t}, nil), nil
			case errors.Is(err, ErrDamaged):
				err = fmt.Errorf("%s: %w", nameAttempt(r.attempt.ID, r.attempt.Number), err)
				return yield(Stored{Attempt: r.attempt}, err), nil
			}
			return false, err
		}
		return db.walk(ctx, walk{Filter: f, trials: true, bodies: true}, visit)
	})
}

// transcriptOf returns the transcript with a body, which must have the digest that the seal of its
// attempt covers. It returns nil if no transcript was saved or a user deleted it.
func (db *DB) transcriptOf(
	ctx context.Context, attempt int64, body, script []byte,
) (*assay.Transcript, error) {
	if body == nil {
		return nil, db.checkDropped(ctx, attempt, script)
	}
	text, err := db.decompress(ctx, body)
	if err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	if !bytes.Equal(digest(text), script) {
		return nil, fmt.Errorf("transcript: %w: it differs from the one that was saved", ErrDamaged)
	}
	t := new(assay.Transcript)
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("transcript: %w", damagedBody(err))
	}
	return t, nil
}

// checkDropped returns an error if a missing transcript was saved and not deleted.
func (db *DB) checkDropped(ctx context.Context, attempt int64, script []byte) error {
	if script == nil {
		return nil
	}
	var dropped bool
	query := "SELECT EXISTS (SELECT 1 FROM dropped WHERE attempt = ?)"
	err := db.reader.QueryRowContext(ctx, query, attempt).Scan(&dropped)
	if err == nil && !dropped {
		return fmt.Errorf("transcript: %w: it is lost", ErrDamaged)
	}
	return db.wrap(err)
}
