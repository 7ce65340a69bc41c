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
	"sync"
	"time"

	"github.com/assay-eval/assay"
)

const historySQL = `SELECT coalesce(max(number), 0),
		(SELECT coalesce(max(round) + 1, 0) FROM attempts WHERE trial = ?1 AND level <> '')
	FROM attempts WHERE trial = ?1`

func insertSQL(table, columns string) string {
	n := strings.Count(columns, ",") + 1
	return "INSERT INTO " + table + " (" + columns + ") VALUES (?" + strings.Repeat(", ?", n-1) +
		")"
}

// A record is an attempt in the form of its rows.
type record struct {
	key        trialKey
	run        assay.RunID
	experiment string
	settles    bool
	round      int
	trial      []any  // the values of the layout's columns
	attempt    []any  // the same
	identity   sum    // of the attempt
	digest     []byte // of its transcript
	transcript []byte // compressed; nil without a transcript

	number  int   // of the attempt
	id, seq int64 // the row IDs of the attempt and its run
}

// Save stores an attempt, with its transcript unless that is nil, and sets a.Number to its
// place among the attempts of its trial, starting at 1. It has three outcomes:
//
//  1. nil: the attempt is on disk and survives a power failure;
//  2. [ErrSettled], [ErrInvalid] or [ErrUnknownRun]: this attempt is refused, no part of it is
//     stored, and other attempts can still be saved;
//  3. another error: if ctx ended, the attempt may or may not be stored. Otherwise it is not
//     stored, the store accepts no more writes, and the run has to end.
//
// If a finished attempt has to be kept, pass a ctx that outlives the signal to stop. Save keeps
// neither a nor t.
func (db *DB) Save(ctx context.Context, a *assay.Attempt, t *assay.Transcript) error {
	what := "save attempt at trial " + string(a.ID)
	r, err := db.encode(ctx, a, t)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var number int
	err = db.write(ctx, what, len(r.transcript)+1024, func(w *writer) (err error) {
		number, err = w.insert(r)
		return err
	})
	if err == nil {
		a.Number = number
		db.numbers.saved(r.key, number)
	}
	return err
}

// encode returns the rows of an attempt, with its transcript unless that is nil.
func (db *DB) encode(ctx context.Context, a *assay.Attempt, t *assay.Transcript) (*record, error) {
	buffer := texts.Get().(*bytes.Buffer)
	defer texts.Put(buffer)
	var text []byte
	if t != nil {
		if err := writeJSON(buffer, t); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		text = buffer.Bytes()
	}
	r, err := db.layout.encode(a, text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if t != nil {
		r.transcript, err = db.compress(ctx, text)
	}
	return r, err
}

// insert adds the rows of r and returns the attempt's number.
func (w *writer) insert(r *record) (int, error) {
	run, err := w.run(r.run)
	if err != nil {
		return 0, err
	}
	if run.experiment != r.experiment {
		return 0, fmt.Errorf("%w: run %s belongs to experiment %q, not %q",
			ErrInvalid, r.run, run.experiment, r.experiment)
	}

	// A trial that is new has no earlier attempts.
	added, err := w.change(w.layout.trials.insert, w.join([]any{r.key[:]}, r.trial)...)
	if err != nil {
		return 0, err
	}
	var number, next int
	if added == 0 {
		if err := w.get(historySQL, []any{r.key[:]}, &number, &next); err != nil {
			return 0, err
		}
	}
	if r.settles && r.round != next {
		return 0, ErrSettled
	}

	r.number, r.id, r.seq = number+1, w.last+1, run.seq
	return r.number, w.insertRows(r)
}

// join returns the values of a row in two parts. They are good until the next call.
func (w *writer) join(place, rest []any) []any {
	w.row = append(append(w.row[:0], place...), rest...)
	return w.row
}

// insertRows adds the rows of r, whose trial is stored, at the place that it has.
func (w *writer) insertRows(r *record) error {
	place := []any{r.id, r.number, r.seq, r.key[:]}
	if err := w.exec(w.layout.attempts.insert, w.join(place, r.attempt)...); err != nil {
		return err
	}
	seal := sealAttempt(r.identity, r.id, int64(r.number))
	err := w.exec(insertSeal, r.id, seal[:], r.digest)
	if err == nil && r.transcript != nil {
		err = w.exec(insertTranscript, r.id, r.transcript)
	}
	if err == nil {
		w.last = r.id
	}
	return err
}

// texts has buffers for the JSON of transcripts, which is only needed until it is compressed.
var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// encode does the part of a save that does not need the database, in the caller's goroutine. It
// does not compress the transcript's JSON, which is nil without a transcript.
func (l *layout) encode(a *assay.Attempt, transcript []byte) (*record, error) {
	r := &record{run: a.Run, experiment: a.Experiment, settles: a.Settles(), round: a.Round}
	var err error
	if r.key, err = parseTrialID(a.ID); err != nil {
		return nil, err
	}
	if err := check(a); err != nil {
		return nil, err
	}
	if r.trial, err = rowOf(l.trials.fields, a); err != nil {
		return nil, err
	}
	if r.attempt, err = rowOf(l.attempts.fields, a); err != nil {
		return nil, err
	}
	r.digest = digest(transcript)
	r.identity = l.attempts.identify(r.key, string(a.Run), r.attempt, r.digest)
	return r, nil
}

// check refuses the most important mistakes with a clearer message than the schema gives. It
// also rejects unknown values, because the schema cannot.
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
	counts := []int{
		o.Turns, o.ToolCalls, o.Assisted, o.Mistakes, o.Failures, o.Recovered, o.Wasted, o.Extra,
		o.LoopTurn, o.UnwantedEffects,
	}
	switch {
	case o.Ended != "" && !slices.Contains(assay.Ends, o.Ended):
		return fmt.Errorf("unknown end %q", o.Ended)
	case (o.Level == "") != (o.Ended == ""):
		return fmt.Errorf("level %q does not go with end %q", o.Level, o.Ended)
	case o.Loop != "" && !slices.Contains(assay.LoopKinds, o.Loop):
		return fmt.Errorf("unknown loop %q", o.Loop)
	case (o.Loop == "") != (o.LoopTurn == 0):
		return fmt.Errorf("loop %q does not go with turn %d", o.Loop, o.LoopTurn)
	case slices.Min(counts) < 0:
		return errors.New("a count is negative")
	case o.Harm != "" && !slices.Contains(assay.Harms, o.Harm):
		return fmt.Errorf("unknown harm %q", o.Harm)
	case o.Harm != "" && o.UnwantedEffects == 0:
		return fmt.Errorf("harm %s does not go without an unwanted effect", o.Harm)
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

func formatTime(t time.Time) (string, error) {
	b, err := t.UTC().MarshalText()
	return string(b), err
}

// writeJSON replaces the content of a buffer with a transcript's JSON.
func writeJSON(to *bytes.Buffer, t *assay.Transcript) error {
	to.Reset()
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	if err := e.Encode(t); err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	return nil
}

// A trialKey is a trial's ID as it is stored.
type trialKey [16]byte

func (k trialKey) id() assay.TrialID { return assay.TrialID(hex.EncodeToString(k[:])) }

// Scan implements [database/sql.Scanner].
func (k *trialKey) Scan(v any) error {
	key, err := cast[[]byte](v)
	copy(k[:], key)
	return err
}

func parseTrialID(id assay.TrialID) (trialKey, error) {
	var k trialKey
	if len(id) != 2*len(k) || strings.ToLower(string(id)) != string(id) {
		return k, fmt.Errorf("trial ID %q does not have 32 lower-case hex digits", id)
	}
	if _, err := hex.Decode(k[:], []byte(id)); err != nil {
		return k, fmt.Errorf("trial ID %q does not have 32 lower-case hex digits", id)
	}
	return k, nil
}
