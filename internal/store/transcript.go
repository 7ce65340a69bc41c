package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

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
	var row int64
	var script []byte
	var t *assay.Transcript
	err = db.reader.QueryRowContext(ctx, `SELECT a.id, script
		FROM attempts a LEFT JOIN attempt_seals s ON s.attempt = a.id
		WHERE trial = ?1 AND ?2 IN (0, number)
		ORDER BY level <> '' DESC, number DESC LIMIT 1`, key[:], number).Scan(&row, &script)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		err = ErrNotFound
	case err != nil:
		err = db.wrap(err)
	default:
		t, err = db.transcriptOf(ctx, row, script, nil)
	}
	if err == nil && t == nil {
		err = fmt.Errorf("transcript: %w", ErrNotFound)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
		if errors.Is(err, ErrDamaged) {
			_ = db.skip("transcript", err, row)
		}
		return assay.Transcript{}, err
	}
	return *t, nil
}

// A Stored is an attempt with its transcript.
type Stored struct {
	Attempt assay.Attempt
	// Transcript is nil if it was not saved or cannot be read.
	Transcript *assay.Transcript
}

// Transcripts streams the same attempts as [DB.Attempts], with their transcripts. If a
// transcript is damaged, its attempt comes with [ErrDamaged], and the sequence continues. Any
// other error comes with a zero value and ends the sequence. Several goroutines read ahead by a
// few hundred transcripts at most.
func (db *DB) Transcripts(ctx context.Context, f Filter) iter.Seq2[Stored, error] {
	return stream(func(yield func(Stored, error) bool) error {
		q := walk{Filter: f, bodies: true}
		return db.walk(ctx, q, func(r row) (bool, error) {
			return yield(Stored{r.attempt, r.transcript}, r.damage), nil
		})
	})
}

// transcriptOf returns the transcript of an attempt, or nil: see [DB.textOf].
func (db *DB) transcriptOf(
	ctx context.Context, attempt int64, script []byte, bodies map[int64][]byte,
) (*assay.Transcript, error) {
	text, err := db.textOf(ctx, attempt, script, bodies)
	if err != nil || text == nil {
		return nil, err
	}
	t := new(assay.Transcript)
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("transcript: %w", damagedBody(err))
	}
	return t, nil
}

// bodies returns the stored transcripts of the attempts that satisfy a condition, by the row ID of
// the attempt, with nil for texts that a user deleted. They have a separate query, so that damage to
// them costs transcripts only.
func (db *DB) bodies(
	ctx context.Context, where string, args ...any,
) (map[int64][]byte, error) {
	query := "SELECT attempt, NULL FROM dropped WHERE " + where +
		" UNION ALL SELECT attempt, body FROM transcripts WHERE " + where
	bodies, err := table[int64, []byte](ctx, db.reader, query, slices.Concat(args, args)...)
	return bodies, db.wrap(err)
}

// textOf returns the JSON of an attempt's transcript, which must have the digest that the
// attempt's seal covers. It returns nil if no transcript was saved or a user deleted it. If bodies
// is nil, it reads the body.
func (db *DB) textOf(
	ctx context.Context, attempt int64, script []byte, bodies map[int64][]byte,
) (text []byte, err error) {
	if bodies == nil {
		if bodies, err = db.bodies(ctx, "attempt = ?", attempt); err != nil {
			return nil, fmt.Errorf("transcript: %w", err)
		}
	}
	body, known := bodies[attempt]
	switch {
	case body == nil && script != nil && !known:
		return nil, fmt.Errorf("transcript: %w: it is lost", ErrDamaged)
	case body == nil:
		return nil, nil
	}
	if text, err = db.decompress(ctx, body); err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	if !bytes.Equal(digest(text), script) {
		return nil, fmt.Errorf("transcript: %w: it differs from the one that was saved", ErrDamaged)
	}
	return text, nil
}
