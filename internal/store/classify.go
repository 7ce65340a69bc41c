package store

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/assay-eval/assay"
)

// A Classification is a model's opinion on why an attempt did not fully succeed. It is stored
// next to the verdict of the rules.
type Classification struct {
	Trial  assay.TrialID `json:"trial"`
	Number int           `json:"attempt"`
	Model  string        `json:"model"`
	// Prompt is the version of the prompt.
	Prompt   string `json:"prompt"`
	Category string `json:"category"`
	// Confidence is the one that the model stated, in [0,1].
	Confidence float64 `json:"confidence"`
	Reason     string  `json:"reason"`
	// RuleCategory is the category by the rules at that time.
	RuleCategory string    `json:"rule_category"`
	At           time.Time `json:"classified_at"`
	InputTokens  int       `json:"input_tokens"`
	OutputTokens int       `json:"output_tokens"`
	CostUSD      float64   `json:"cost_usd"`
	// Raw is the text of the reply.
	Raw string `json:"raw"`
}

const classificationColumns = `attempt, model, prompt, category, confidence, reason, rule_category,
	classified_at, input_tokens, output_tokens, cost_usd, raw`

// Classify stores an opinion on an attempt that has an outcome. The opinion is on disk when
// Classify returns. A model has only one opinion for each version of the prompt, so a second
// one is [ErrInvalid]. It also returns the errors of [DB.Save], and [ErrNotFound] for an
// unknown attempt.
func (db *DB) Classify(ctx context.Context, c Classification) error {
	what := "save classification of " + nameAttempt(c.Trial, c.Number)
	return db.write(ctx, what, len(c.Raw)+len(c.Reason)+200, func(w *writer) error {
		id, err := w.findAttempt(c.Trial, c.Number)
		if err != nil {
			return err
		}
		_, err = w.add("classifications", id, c.Model, c.Prompt, c.Category, c.Confidence,
			c.Reason, c.RuleCategory, c.At, c.InputTokens, c.OutputTokens, c.CostUSD, c.Raw)
		return err
	})
}

// Classifications streams the opinions on attempts of an experiment, unless that is empty, and of a
// trial, unless that is empty, in the order in which they were saved. An error comes with a zero
// value and ends the sequence.
func (db *DB) Classifications(
	ctx context.Context, experiment string, trial assay.TrialID,
) iter.Seq2[Classification, error] {
	return stream(func(yield func(Classification, error) bool) error {
		unproved, err := db.unproved(ctx, "classifications")
		if err != nil {
			return err
		}
		const query = `SELECT c.id, lower(hex(a.trial)), a.number, c.model, prompt, category,
				confidence, reason, rule_category, classified_at, c.input_tokens, c.output_tokens,
				c.cost_usd, raw
			FROM classifications c CROSS JOIN attempts a ON a.id = c.attempt
				CROSS JOIN runs r ON r.seq = a.run
			WHERE ?1 IN ('', r.experiment) AND ?2 IN ('', lower(hex(a.trial)))
			ORDER BY c.id`
		args := []any{experiment, string(trial)}
		return db.wrap(each(ctx, db.reader, query, args, func(rows *sql.Rows) (bool, error) {
			var c Classification
			var id int64
			err := rows.Scan(&id, &c.Trial, &c.Number, &c.Model, &c.Prompt, &c.Category, &c.Confidence,
				&c.Reason, &c.RuleCategory, timeScanner{&c.At}, &c.InputTokens, &c.OutputTokens,
				&c.CostUSD, &c.Raw)
			if unproved[id] {
				return true, nil
			}
			return err == nil && yield(c, nil), err
		}))
	})
}

// Classified returns the trials whose outcome a model has classified with a version of the
// prompt. A trial has at most one outcome.
func (db *DB) Classified(ctx context.Context, model, prompt string) (Set, error) {
	return db.keys(ctx, `SELECT trial FROM classifications c
		CROSS JOIN attempts a ON a.id = c.attempt
		WHERE model = ? AND prompt = ? ORDER BY trial`, model, prompt)
}
