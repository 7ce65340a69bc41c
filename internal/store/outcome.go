package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

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

// verdictColumns are in the order in which scanVerdict reads them.
const verdictColumns = `a.trial, r.id, a.templates, a.lane, a.served_model, a.level, a.ended, a.error_category, a.turns, a.tool_calls,
	a.coverage, a.order_correct, a.assisted, a.adherence, a.given_adherence, a.mistakes, a.failures, a.recovered,
	a.wasted_calls, a.efficiency, a.extra_calls, a.loop, a.loop_turn, a.best_possible, a.pilot, a.score_version, a.fault,
	a.requests, a.input_tokens, a.output_tokens, a.cost_usd, a.queued_ms, a.working_ms`

// Verdicts streams what [DB.Attempts] streams, in the same order, but for what
// tables of results do not need: of the trial there is the ID alone, and names of
// tools, times and details of faults are left out. It takes a third of the time.
// Of the filter Experiment, Model, Run, Trial and Since have no meaning here.
func (db *DB) Verdicts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		if err := db.streamVerdicts(ctx, f, yield); err != nil {
			yield(assay.Attempt{}, err)
		}
	}
}

func (db *DB) streamVerdicts(ctx context.Context, f Filter, yield func(assay.Attempt, error) bool) error {
	before, err := db.deletions(ctx, false)
	if err != nil {
		return err
	}
	at, err := db.state(ctx, f.Snapshot)
	if err != nil {
		return err
	}
	latest, args := noColumn, []any{}
	if at.scores > 0 && !f.AsSaved {
		latest, args = latestColumn, []any{at.scores}
	}
	text := "SELECT " + latest + ", " + verdictColumns + " FROM attempts a LEFT JOIN runs r ON r.seq = a.run WHERE a.id BETWEEN ? AND ? ORDER BY a.id"
	return eachRow(ctx, db, at.attempts, page, func(ctx context.Context, first, last int64) ([]assay.Attempt, error) {
		return db.readVerdicts(ctx, text, slices.Concat(args, []any{first, last}))
	}, func(a assay.Attempt) (bool, error) { return yield(a, nil), nil }, func() error { return db.unchanged(ctx, before, false) })
}

func (db *DB) readVerdicts(ctx context.Context, text string, args []any) (all []assay.Attempt, err error) {
	seen := make(words)
	err = eachRaw(ctx, db.reader, text, args, func(row []any) (bool, error) {
		a, err := scanVerdict(row[1:], seen)
		if a.Run == "" {
			err = errBereft
		}
		if err == nil {
			if score, ok := row[0].(string); ok {
				a.Outcome, err = parseOutcome([]byte(score))
				a.RequiredTools, a.ExecutedTools = nil, nil
			}
		}
		if err != nil {
			return false, fmt.Errorf("an attempt at trial %s: %w", a.ID, err)
		}
		all = append(all, a)
		return true, nil
	})
	return all, db.wrap(err)
}

// scanVerdict reads the values of verdictColumns.
func scanVerdict(row []any, seen words) (a assay.Attempt, err error) {
	next := 0
	bad := func() { err = errors.Join(err, fmt.Errorf("column %d holds %v", next, row[next-1])) }
	text := func() string {
		s, ok := row[next].(string)
		if next++; !ok {
			bad()
		}
		return seen.same(s)
	}
	whole := func() int {
		n, ok := row[next].(int64)
		if next++; !ok {
			bad()
		}
		return int(n)
	}
	real := func() float64 {
		v, ok := row[next].(float64)
		if next++; !ok {
			bad()
		}
		return v
	}
	key, _ := row[next].([]byte)
	a.ID = assay.TrialID(hex.EncodeToString(key))
	next++
	a.Run, a.Templates, a.Lane, a.ServedModel = assay.RunID(text()), text(), text(), text()
	a.Level, a.Ended, a.ErrorCategory = assay.Level(text()), assay.Ended(text()), text()
	a.Outcome.Turns, a.ToolCalls, a.Coverage, a.OrderCorrect, a.Assisted = whole(), whole(), real(), whole() != 0, whole()
	a.Adherence = real()
	if row[next] != nil {
		a.GivenAdherence = new(real())
	} else {
		next++
	}
	a.Mistakes, a.Failures, a.Recovered, a.Wasted, a.Efficiency, a.Extra = whole(), whole(), whole(), whole(), real(), whole()
	a.Outcome.Loop, a.LoopTurn, a.Best = assay.LoopKind(text()), whole(), real()
	if pilot := text(); pilot != "" {
		if failed := json.Unmarshal([]byte(pilot), &a.Pilot); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	a.ScoreVersion, a.FaultKind = text(), assay.FaultKind(text())
	a.Requests, a.InputTokens, a.OutputTokens, a.CostUSD, a.QueuedMS, a.WorkingMS = whole(), whole(), whole(), real(), int64(whole()), int64(whole())
	return a, err
}

func (db *DB) streamOutcomes(ctx context.Context, yield func(Outcome, error) bool) error {
	before, err := db.deletions(ctx, false)
	if err != nil {
		return err
	}
	now, err := db.state(ctx, "")
	if err != nil {
		return err
	}
	// In the order of id the table is read from its front to its end. The index
	// of settled attempts would look each of them up.
	text := "SELECT trial, level, error_category FROM attempts WHERE level <> '' AND id BETWEEN ?1 AND ?2 ORDER BY id"
	if now.scores > 0 {
		text = `SELECT a.trial, ifnull(s.level, a.level), ifnull(s.error_category, a.error_category)
			FROM attempts a LEFT JOIN scores s ON s.id = (SELECT max(id) FROM scores WHERE attempt = a.id AND id <= ?3)
			WHERE a.level <> '' AND a.id BETWEEN ?1 AND ?2 ORDER BY a.id`
	}
	return eachRow(ctx, db, now.attempts, 10*page, func(ctx context.Context, first, last int64) ([]Outcome, error) {
		return db.readOutcomes(ctx, text, first, last, now.scores)
	}, func(o Outcome) (bool, error) { return yield(o, nil), nil }, func() error { return db.unchanged(ctx, before, false) })
}

func (db *DB) readOutcomes(ctx context.Context, text string, args ...any) (all []Outcome, err error) {
	rows, err := db.reader.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, db.readError(err)
	}
	defer rows.Close()
	seen := make(words)
	var trial, level, category sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&trial, &level, &category); err != nil {
			return all, db.readError(err)
		}
		all = append(all, Outcome{assay.TrialID(hex.EncodeToString(trial)), assay.Level(seen.of(level)), seen.of(category)})
	}
	if err := rows.Err(); err != nil {
		return all, db.readError(err)
	}
	return all, nil
}

// words holds texts that come again and again, once each.
type words map[string]string

// same returns the first text that was like this one.
func (w words) same(text string) string {
	word, ok := w[text]
	if !ok {
		word = text
		w[word] = word
	}
	return word
}

func (w words) of(text []byte) string {
	word, ok := w[string(text)]
	if !ok {
		word = string(text)
		w[word] = word
	}
	return word
}
