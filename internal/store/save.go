package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

const (
	historySQL = `SELECT coalesce(max(number), 0), EXISTS (SELECT 1 FROM attempts WHERE trial = ?1 AND level <> '')
		FROM attempts WHERE trial = ?1`

	trialColumns = `id, model, variant, severity, difficulty, task_type, reliability,
		task, task_digest, repeat, seed, world, protocol, tools, turn_limit, sampling,
		token_limit, cost_limit, several_calls, persistence, burst, loops`

	// The first four are known to the writer only.
	attemptColumns = `id, number, run, trial, program, templates, lane, served_model,
		level, ended, error_category, turns, tool_calls, required_tools, executed_tools,
		coverage, order_correct, assisted, adherence, given_adherence, mistakes, failures, recovered,
		wasted_calls, efficiency, extra_calls, loop, loop_turn, best_possible, pilot,
		score_version, fault, fault_detail, parked, requests, retried, input_tokens, output_tokens,
		cost_usd, queued_ms, working_ms, started_at, finished_at`
)

func insertSQL(table, columns string) string {
	n := strings.Count(columns, ",") + 1
	return "INSERT INTO " + table + " (" + columns + ") VALUES (?" + strings.Repeat(", ?", n-1) + ")"
}

// A record is an attempt in the form of its rows.
type record struct {
	key        trialKey
	run        assay.RunID
	experiment string
	settles    bool
	trial      []any  // in the order of trialColumns
	attempt    []any  // in the order of attemptColumns, from program on
	identity   sum    // of the attempt
	script     []byte // the digest of its transcript
	transcript []byte // its JSON from encode, and what Save makes of that
}

// Save stores an attempt, with its transcript unless that is nil, and sets
// a.Number to its place among the attempts of its trial, from 1. It has three
// outcomes:
//
//  1. nil: the attempt is on disk and survives the loss of power;
//  2. an error that is [ErrSettled], [ErrInvalid] or [ErrUnknownRun]: this
//     attempt is refused, nothing of it is stored, and others are welcome;
//  3. another error. When ctx ended, the attempt may or may not be stored. Else
//     it is not stored, the store is done for, and the run has to end.
//
// A caller that wants a finished attempt kept passes a ctx that outlives the
// signal to stop. Save keeps neither a nor t.
func (db *DB) Save(ctx context.Context, a *assay.Attempt, t *assay.Transcript) error {
	r, err := encode(a, t)
	if err != nil {
		return fmt.Errorf("save attempt at trial %s: %w: %w", a.ID, ErrInvalid, err)
	}
	if r.transcript != nil {
		if r.transcript, err = db.compress(ctx, r.transcript); err != nil {
			return fmt.Errorf("save attempt at trial %s: %w", a.ID, err)
		}
	}
	var number int
	err = db.do(ctx, len(r.transcript)+1024, func(w *writer) (err error) {
		number, err = w.insert(r)
		return err
	})
	if err != nil {
		return fmt.Errorf("save attempt at trial %s: %w", a.ID, err)
	}
	a.Number = number
	return nil
}

// insert adds the rows of r and returns the attempt's number.
func (w *writer) insert(r *record) (int, error) {
	run, err := w.run(r.run)
	if err != nil {
		return 0, err
	}
	if run.experiment != r.experiment {
		return 0, fmt.Errorf("%w: run %s is of experiment %q, not %q", ErrInvalid, r.run, run.experiment, r.experiment)
	}
	var number int
	var settled bool
	if err := w.stmt.history.QueryRowContext(w.ctx, r.key[:]).Scan(&number, &settled); err != nil {
		return 0, err
	}
	if settled && r.settles {
		return 0, ErrSettled
	}
	if number == 0 {
		if err := w.exec(w.stmt.trial, r.trial...); err != nil {
			return 0, err
		}
	}
	number++
	id := w.last + 1
	if err := w.exec(w.stmt.attempt, append([]any{id, number, run.seq, r.key[:]}, r.attempt...)...); err != nil {
		return 0, err
	}
	seal := sealAttempt(r.identity, id, int64(number))
	if err := w.exec(w.stmt.seal, id, seal[:], r.script); err != nil {
		return 0, err
	}
	if r.transcript != nil {
		if err := w.exec(w.stmt.transcript, id, r.transcript); err != nil {
			return 0, err
		}
	}
	w.last = id
	return number, nil
}

// encode does the work of a save that needs no database, in the goroutine of
// the caller. Compression is left to do.
func encode(a *assay.Attempt, t *assay.Transcript) (*record, error) {
	r := &record{run: a.Run, experiment: a.Experiment, settles: a.Settles()}
	var err error
	if r.key, err = parseTrialID(a.ID); err != nil {
		return nil, err
	}
	if err := check(a); err != nil {
		return nil, err
	}
	if r.trial, err = trialRow(r.key, &a.Trial); err != nil {
		return nil, err
	}
	if r.attempt, err = attemptRow(a); err != nil {
		return nil, err
	}
	if t != nil {
		if r.transcript, err = transcriptJSON(t); err != nil {
			return nil, err
		}
	}
	r.script = digest(r.transcript)
	r.identity = identify(r.key, string(a.Run), r.attempt, r.script)
	return r, nil
}

// check says in words what the schema would refuse, for the mistakes that
// matter most, and refuses words that nobody knows, which the schema cannot.
func check(a *assay.Attempt) error {
	if a.Seed > math.MaxInt64 {
		return fmt.Errorf("seed %d is too large", a.Seed)
	}
	if err := a.Check(); err != nil {
		return err
	}
	return checkOutcome(&a.Outcome)
}

func checkOutcome(o *assay.Outcome) error {
	switch {
	case o.Ended != "" && !known(o.Ended):
		return fmt.Errorf("unknown end %q", o.Ended)
	case (o.Level == "") != (o.Ended == ""):
		return fmt.Errorf("level %q does not go with end %q", o.Level, o.Ended)
	case o.Loop != "" && !slices.Contains(assay.LoopKinds, o.Loop):
		return fmt.Errorf("unknown loop %q", o.Loop)
	case (o.Loop == "") != (o.LoopTurn == 0):
		return fmt.Errorf("loop %q does not go with turn %d", o.Loop, o.LoopTurn)
	case min(o.Turns, o.ToolCalls, o.Assisted, o.Mistakes, o.Failures, o.Recovered, o.Wasted, o.Extra, o.LoopTurn) < 0:
		return errors.New("a count is negative")
	}
	if o.Pilot == nil {
		return nil
	}
	for _, level := range []assay.Level{o.Pilot.Executor, o.Pilot.Paper, o.Pilot.Batch} {
		if !slices.Contains(assay.Levels, level) {
			return fmt.Errorf("unknown level %q in pilot", level)
		}
	}
	return nil
}

func known(end assay.Ended) bool {
	switch end {
	case assay.Finished, assay.TurnLimit, assay.FailureStreak, assay.CallLimit, assay.Loop,
		assay.TokenLimit, assay.CostLimit:
		return true
	}
	return false
}

func trialRow(key trialKey, t *assay.Trial) ([]any, error) {
	sampling, err := json.Marshal(t.Sampling)
	if err != nil {
		return nil, err
	}
	return []any{
		key[:], t.Model, t.Variant, t.Severity, t.Difficulty, t.TaskType, t.Reliability,
		string(t.Task), t.TaskDigest, t.Repeat, int64(t.Seed), t.World, t.Protocol, t.Tools, t.Turns, string(sampling),
		t.Tokens, t.USD, t.SeveralCalls, t.Persistence, t.Burst, t.Loops,
	}, nil
}

func attemptRow(a *assay.Attempt) ([]any, error) {
	required, err := list(a.RequiredTools)
	if err != nil {
		return nil, err
	}
	executed, err := list(a.ExecutedTools)
	if err != nil {
		return nil, err
	}
	retried := []byte("{}")
	if len(a.Retried) > 0 {
		if retried, err = json.Marshal(a.Retried); err != nil {
			return nil, err
		}
	}
	pilot := []byte{}
	if a.Pilot != nil {
		if pilot, err = json.Marshal(a.Pilot); err != nil {
			return nil, err
		}
	}
	started, err := formatTime(a.StartedAt)
	if err != nil {
		return nil, err
	}
	finished, err := formatTime(a.FinishedAt)
	if err != nil {
		return nil, err
	}
	return []any{
		a.Program, a.Templates, a.Lane, a.ServedModel,
		string(a.Level), string(a.Ended), a.ErrorCategory, a.Outcome.Turns, a.ToolCalls, required, executed,
		a.Coverage, flag(a.OrderCorrect), a.Assisted, a.Adherence, a.GivenAdherence, a.Mistakes, a.Failures, a.Recovered,
		a.Wasted, a.Efficiency, a.Extra, string(a.Loop), a.LoopTurn, a.Best, string(pilot),
		a.ScoreVersion, string(a.FaultKind), a.FaultDetail, flag(a.Parked),
		a.Requests, string(retried), a.InputTokens, a.OutputTokens, a.CostUSD, a.QueuedMS, a.WorkingMS,
		started, finished,
	}, nil
}

func list(names []string) (string, error) {
	if len(names) == 0 {
		return "[]", nil
	}
	b, err := json.Marshal(names)
	return string(b), err
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func formatTime(t time.Time) (string, error) {
	b, err := t.UTC().MarshalText()
	return string(b), err
}

func transcriptJSON(t *assay.Transcript) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return nil, fmt.Errorf("transcript: %w", err)
	}
	return b.Bytes(), nil
}

// A trialKey is a trial's ID as it is stored.
type trialKey [16]byte

func (k trialKey) id() assay.TrialID { return assay.TrialID(hex.EncodeToString(k[:])) }

func parseTrialID(id assay.TrialID) (trialKey, error) {
	var k trialKey
	if len(id) != 2*len(k) || strings.ToLower(string(id)) != string(id) {
		return k, fmt.Errorf("trial ID %q is not 32 lower-case hex digits", id)
	}
	if _, err := hex.Decode(k[:], []byte(id)); err != nil {
		return k, fmt.Errorf("trial ID %q is not 32 lower-case hex digits", id)
	}
	return k, nil
}
