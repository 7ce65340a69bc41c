package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// A Classification is the opinion of a model on why an attempt did not fully
// succeed, beside that of the rules.
type Classification struct {
	Trial  assay.TrialID `json:"trial"`
	Number int           `json:"attempt"`
	Model  string        `json:"model"`
	// Prompt is the version of what the model was asked.
	Prompt   string `json:"prompt"`
	Category string `json:"category"`
	// Confidence is the model's own, in [0,1].
	Confidence float64 `json:"confidence"`
	Reason     string  `json:"reason"`
	// RuleCategory is what the rules said when the model was asked.
	RuleCategory string    `json:"rule_category"`
	At           time.Time `json:"classified_at"`
	InputTokens  int       `json:"input_tokens"`
	OutputTokens int       `json:"output_tokens"`
	CostUSD      float64   `json:"cost_usd"`
	// Raw is the text of the reply.
	Raw string `json:"raw"`
}

// Classify stores an opinion on an attempt that has an outcome. It is on disk
// when Classify returns. A model has one opinion for one version of the prompt:
// another is [ErrInvalid]. Its errors are those of [DB.Save] and, for an attempt
// that is not there, [ErrNotFound].
func (db *DB) Classify(ctx context.Context, c Classification) error {
	what := "save classification of " + nameAttempt(c.Trial, c.Number)
	key, invalid := parseTrialID(c.Trial)
	at, late := formatTime(c.At)
	if err := errors.Join(invalid, late); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalid, err)
	}
	err := db.do(ctx, len(c.Raw)+len(c.Reason)+200, func(w *writer) error {
		id, err := w.findAttempt(key, c.Number)
		if err != nil {
			return err
		}
		res, err := w.conn.ExecContext(w.ctx, insertNext("classifications", "id", classificationColumns), w.gone["classification"], id, c.Model, c.Prompt, c.Category,
			c.Confidence, c.Reason, c.RuleCategory, at, c.InputTokens, c.OutputTokens, c.CostUSD, c.Raw)
		return w.sealNew("classification", res, err)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

const classificationColumns = `attempt, model, prompt, category, confidence, reason, rule_category,
	classified_at, input_tokens, output_tokens, cost_usd, raw`

// Classifications streams the opinions on the attempts that f chooses, in the
// order in which they were saved. After an error, which comes with a zero
// value, the sequence ends.
func (db *DB) Classifications(ctx context.Context, f Filter) iter.Seq2[Classification, error] {
	return func(yield func(Classification, error) bool) {
		if err := db.streamClassifications(ctx, f, yield); err != nil {
			yield(Classification{}, err)
		}
	}
}

func (db *DB) streamClassifications(ctx context.Context, f Filter, yield func(Classification, error) bool) error {
	at, err := db.state(ctx, f.Snapshot)
	if err != nil {
		return err
	}
	where, args, err := f.where(at)
	if err != nil {
		return err
	}
	rows, err := db.reader.QueryContext(ctx, `SELECT lower(hex(a.trial)), a.number, c.model, prompt, category, confidence, reason,
			rule_category, classified_at, c.input_tokens, c.output_tokens, c.cost_usd, raw
		FROM classifications c CROSS JOIN attempts a ON a.id = c.attempt CROSS JOIN trials t ON t.id = a.trial
		CROSS JOIN runs r ON r.seq = a.run WHERE `+where+` ORDER BY c.id`, args...)
	if err != nil {
		return db.readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var c Classification
		var at string
		err := rows.Scan(&c.Trial, &c.Number, &c.Model, &c.Prompt, &c.Category, &c.Confidence, &c.Reason,
			&c.RuleCategory, &at, &c.InputTokens, &c.OutputTokens, &c.CostUSD, &c.Raw)
		if err = errors.Join(err, c.At.UnmarshalText([]byte(at))); err != nil {
			return db.readError(err)
		}
		if !yield(c, nil) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return db.readError(err)
	}
	return nil
}

// Classified returns the trials on whose outcome a model has an opinion by a
// version of the prompt. A trial has one outcome at most.
func (db *DB) Classified(ctx context.Context, model, prompt string) (Set, error) {
	rows, err := db.reader.QueryContext(ctx, `SELECT trial FROM classifications c CROSS JOIN attempts a ON a.id = c.attempt
		WHERE model = ? AND prompt = ?`, model, prompt)
	keys, err := db.collectKeys(rows, err)
	slices.SortFunc(keys, func(a, b trialKey) int { return bytes.Compare(a[:], b[:]) })
	return Set{keys}, err
}
