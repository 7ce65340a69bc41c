package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/assay-eval/assay"
)

// A Filter chooses attempts. Its zero value chooses all.
type Filter struct {
	// Experiment chooses the attempts made for it. Trials that it shares with
	// another experiment may have been settled there.
	Experiment string
	Run        assay.RunID
	Trial      assay.TrialID
	// OnlySettled leaves out faults, OnlyFaults leaves out outcomes.
	OnlySettled bool
	OnlyFaults  bool
	// Snapshot leaves out what came after that state; see [DB.Snapshot].
	Snapshot string
}

const resultColumns = `trial, model, variant, severity, difficulty, task_type, reliability, task, task_digest, repeat, seed,
	world, protocol, tools, turn_limit, sampling, token_limit, cost_limit, attempt, experiment, run, program, templates, lane, served_model,
	level, ended, error_category, turns, tool_calls, required_tools, executed_tools,
	coverage, order_correct, assisted, score_version, fault, fault_detail, parked,
	requests, retried, input_tokens, output_tokens, cost_usd, queued_ms, working_ms, started_at, finished_at`

// Attempts streams attempts in the order in which they were saved, as of the
// moment when the loop begins. Empty lists and maps are nil and times are UTC.
// After an error, which comes with a zero attempt, the sequence ends.
func (db *DB) Attempts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		if err := db.stream(ctx, f, yield); err != nil {
			yield(assay.Attempt{}, err)
		}
	}
}

func (db *DB) stream(ctx context.Context, f Filter, yield func(assay.Attempt, error) bool) error {
	where, args, err := db.where(ctx, f)
	if err != nil {
		return err
	}
	rows, err := db.reader.QueryContext(ctx, "SELECT "+resultColumns+" FROM results"+where+" ORDER BY id", args...)
	if err != nil {
		return db.readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanAttempt(rows)
		if err != nil {
			return db.readError(err)
		}
		if !yield(a, nil) {
			return nil
		}
	}
	if err := rows.Err(); err != nil {
		return db.readError(err)
	}
	return nil
}

func (db *DB) where(ctx context.Context, f Filter) (string, []any, error) {
	var terms []string
	var args []any
	add := func(term string, arg ...any) { terms, args = append(terms, term), append(args, arg...) }
	if f.Experiment != "" {
		add("experiment = ?", f.Experiment)
	}
	if f.Run != "" {
		add("run = ?", string(f.Run))
	}
	if f.Trial != "" {
		key, err := parseTrialID(f.Trial)
		if err != nil {
			return "", nil, err
		}
		add("trial_key = ?", key[:])
	}
	if f.OnlySettled {
		add("level <> ''")
	}
	if f.OnlyFaults {
		add("fault <> ''")
	}
	if f.Snapshot != "" {
		last, err := db.snapshotEnd(ctx, f.Snapshot)
		if err != nil {
			return "", nil, err
		}
		add("id <= ?", last)
	}
	if len(terms) == 0 {
		return "", nil, nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args, nil
}

func scanAttempt(rows *sql.Rows) (a assay.Attempt, err error) {
	var sampling, required, executed, retried, started, finished string
	err = rows.Scan(&a.ID, &a.Model, &a.Variant, &a.Severity, &a.Difficulty, &a.TaskType, &a.Reliability,
		&a.Task, &a.TaskDigest, &a.Repeat, &a.Seed,
		&a.World, &a.Protocol, &a.Tools, &a.Setting.Turns, &sampling, &a.Setting.Tokens, &a.Setting.USD,
		&a.Number, &a.Experiment, &a.Run, &a.Program, &a.Templates, &a.Lane, &a.ServedModel,
		&a.Level, &a.Ended, &a.ErrorCategory, &a.Outcome.Turns, &a.ToolCalls, &required, &executed,
		&a.Coverage, &a.OrderCorrect, &a.Assisted, &a.ScoreVersion, &a.FaultKind, &a.FaultDetail, &a.Parked,
		&a.Requests, &retried, &a.InputTokens, &a.OutputTokens, &a.CostUSD, &a.QueuedMS, &a.WorkingMS,
		&started, &finished)
	if err != nil {
		return assay.Attempt{}, err
	}
	for _, f := range []struct {
		text, empty string
		to          any
	}{
		{sampling, "{}", &a.Sampling},
		{required, "[]", &a.RequiredTools},
		{executed, "[]", &a.ExecutedTools},
		{retried, "{}", &a.Retried},
	} {
		if f.text == f.empty {
			continue
		}
		if err := json.Unmarshal([]byte(f.text), f.to); err != nil {
			return assay.Attempt{}, fmt.Errorf("trial %s, attempt %d: %w", a.ID, a.Number, err)
		}
	}
	if err := errors.Join(a.StartedAt.UnmarshalText([]byte(started)), a.FinishedAt.UnmarshalText([]byte(finished))); err != nil {
		return assay.Attempt{}, fmt.Errorf("trial %s, attempt %d: %w", a.ID, a.Number, err)
	}
	return a, nil
}

// Snapshot names the present state: the number of attempts and a digest of the
// last one. As attempts are only added, it names the same attempts for ever.
func (db *DB) Snapshot(ctx context.Context) (string, error) {
	var last sql.NullInt64
	if err := db.reader.QueryRowContext(ctx, "SELECT max(id) FROM attempts").Scan(&last); err != nil {
		return "", db.readError(err)
	}
	if !last.Valid {
		return emptySnapshot, nil
	}
	return db.snapshotAt(ctx, last.Int64)
}

const emptySnapshot = "0"

func (db *DB) snapshotAt(ctx context.Context, id int64) (string, error) {
	var trial, attempt, run, finished string
	err := db.reader.QueryRowContext(ctx, "SELECT trial, attempt, run, finished_at FROM results WHERE id = ?", id).
		Scan(&trial, &attempt, &run, &finished)
	if err != nil {
		return "", db.readError(err)
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{trial, attempt, run, finished}, "\x00")))
	return fmt.Sprintf("%d-%s", id, hex.EncodeToString(sum[:6])), nil
}

// snapshotEnd returns the row with which a snapshot ends.
func (db *DB) snapshotEnd(ctx context.Context, snapshot string) (int64, error) {
	if snapshot == emptySnapshot {
		return 0, nil
	}
	var id int64
	var digest string
	if _, err := fmt.Sscanf(snapshot, "%d-%s", &id, &digest); err != nil {
		return 0, fmt.Errorf("%q: %w", snapshot, ErrUnknownSnapshot)
	}
	is, err := db.snapshotAt(ctx, id)
	if errors.Is(err, sql.ErrNoRows) || err == nil && is != snapshot {
		return 0, fmt.Errorf("%q: %w", snapshot, ErrUnknownSnapshot)
	}
	return id, err
}

// Transcript returns the transcript of an attempt. Number 0 means the attempt
// that settled the trial or, while none did, the latest.
func (db *DB) Transcript(ctx context.Context, trial assay.TrialID, number int) (assay.Transcript, error) {
	key, err := parseTrialID(trial)
	if err != nil {
		return assay.Transcript{}, err
	}
	var body []byte
	err = db.reader.QueryRowContext(ctx, `SELECT body FROM attempts LEFT JOIN transcripts ON attempt = id
		WHERE trial = ?1 AND ?2 IN (0, number) ORDER BY level <> '' DESC, number DESC LIMIT 1`, key[:], number).Scan(&body)
	what := fmt.Sprintf("trial %s", trial)
	if number != 0 {
		what = fmt.Sprintf("attempt %d at trial %s", number, trial)
	}
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return assay.Transcript{}, fmt.Errorf("%s: %w", what, ErrNotFound)
	case err != nil:
		return assay.Transcript{}, db.readError(err)
	case body == nil:
		return assay.Transcript{}, fmt.Errorf("%s: transcript: %w", what, ErrNotFound)
	}
	text, err := db.decompress(ctx, body)
	if err != nil {
		return assay.Transcript{}, fmt.Errorf("%s: transcript: %w", what, err)
	}
	var t assay.Transcript
	if err := json.Unmarshal(text, &t); err != nil {
		return assay.Transcript{}, fmt.Errorf("%s: transcript: %w", what, damagedBody(err))
	}
	return t, nil
}

func (db *DB) readError(err error) error {
	if primary(err) != 0 {
		return explain(db.path, err)
	}
	return fmt.Errorf("read store %s: %w", db.path, err)
}
