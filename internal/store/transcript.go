package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/assay-eval/assay"
)

// Transcript returns the transcript of an attempt. If the store skips damage, a damaged transcript
// counts in [DB.SkippedRows].
func (db *DB) Transcript(
	ctx context.Context, trial assay.TrialID, number int,
) (assay.Transcript, error) {
	var t *assay.Transcript
	q := walk{Filter: Filter{Trial: trial, AsSaved: true, All: true}, bodies: true}
	err := db.walk(ctx, q, func(r row) (bool, error) {
		if r.attempt.Number != number {
			return true, nil
		}
		if t = r.transcript; r.damage != nil {
			_ = db.skip("transcript", r.damage, r.id)
		}
		return false, r.damage
	})
	switch {
	case err != nil:
		return assay.Transcript{}, err
	case t == nil:
		err := fmt.Errorf("%s: transcript: %w", nameAttempt(trial, number), ErrNotFound)
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
// them costs transcripts only. A row of dropped whose deletion is no number is a row of transcripts,
// whose page is in the wrong place.
func (db *DB) bodies(
	ctx context.Context, where string, args ...any,
) (map[int64][]byte, error) {
	query := "SELECT attempt, NULL FROM dropped WHERE typeof(deletion) = 'integer' AND " + where +
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
