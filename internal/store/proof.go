package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/assay-eval/assay"
)

// errUnproved means that a row differs from what its seal covers.
var errUnproved = hinted(fmt.Errorf("%w: it is not as it was saved", ErrDamaged), doRescue)

// What a query for attempts reads first: everything that their seals cover.
var (
	proofColumns = "a.id, a.number, a.trial, r.id, r.experiment, s.sum, s.script, " +
		columnList("a.", attemptFields)
	proofTables = " FROM attempts a LEFT JOIN runs r ON r.seq = a.run " +
		"LEFT JOIN attempt_seals s ON s.attempt = a.id"
)

// The columns that can follow: the latest score of an attempt, its trial and its transcript. Trials
// need no seal, because their IDs are made of their content.
var (
	latestColumns = ", c.id, c.body"
	latestTables  = " LEFT JOIN scores c ON c.id = (SELECT max(id) FROM scores " +
		"WHERE scores.attempt = a.id AND scores.id <= ?)"
	trialColumns = ", " + columnList("t.", trialFields)
	trialTables  = " LEFT JOIN trials t ON t.id = a.trial"
	bodyColumn   = ", (SELECT body FROM transcripts WHERE transcripts.attempt = a.id)"
)

// A proof is a query for attempts that compares each of them with its seal.
type proof struct {
	walk
	query  string // without its conditions
	args   []any
	scores bool           // whether it reads scores
	broken map[int64]bool // the scores that are not proved
	// unknown has the runs whose rows are not proved. What they say of attempts is left out, and if
	// the walk is of one experiment, the attempts are too, because they may belong to another one.
	unknown map[string]bool
	// known is not nil if an earlier walk has proved all attempts. It has those that it skipped.
	known map[int64]bool
	room  int64 // how many rows to reserve memory for
}

// prove returns the query of a walk. If the walk is narrow, SQL leaves out attempts because of
// columns that may have been changed, so all attempts of its state are proved first. A store does
// that only once, and only if it skips damage.
func (db *DB) prove(
	ctx context.Context, q walk, at state, narrow bool,
) (p proof, err error) {
	p.walk = q
	if !q.AsSaved {
		if p.broken, err = db.unprovedScores(ctx, at.scores); err != nil {
			return p, err
		}
	}
	if p.unknown, err = db.unprovedRuns(ctx); err != nil {
		return p, err
	}
	if narrow && !db.damage.hasProved(at.attempts, q.Model != "") {
		all := Filter{AsSaved: true, Superseded: true}
		err := db.walkState(ctx, walk{Filter: all, trials: q.trials, proves: true}, at, func() error { return nil },
			func(row) (bool, error) { return true, nil })
		if err != nil {
			return p, err
		}
	}
	if db.damage != nil && db.damage.hasProved(at.attempts, q.trials) {
		p.known = db.damage.known()
	}
	columns, tables := proofColumns, proofTables
	if p.scores = at.scores > 0 && !q.AsSaved; p.scores {
		columns, tables, p.args = columns+latestColumns, tables+latestTables, []any{at.scores}
	}
	if q.trials || q.Model != "" {
		tables += trialTables
	}
	if q.trials {
		columns += trialColumns
	}
	if q.bodies {
		columns += bodyColumn
	}
	p.query = "SELECT " + columns + tables
	return p, nil
}

// scoreProof remembers which scores up to a row ID are not proved, so that a command that reads
// attempts several times proves their scores once.
type scoreProof struct {
	mu     sync.Mutex
	last   int64
	broken map[int64]bool // nil before the first proof
}

func (db *DB) unprovedScores(ctx context.Context, last int64) (map[int64]bool, error) {
	db.scores.mu.Lock()
	defer db.scores.mu.Unlock()
	if db.scores.broken != nil && db.scores.last >= last {
		return db.scores.broken, nil
	}
	broken, err := db.unproved(ctx, "score")
	if err == nil {
		db.scores.last, db.scores.broken = last, broken
	}
	return broken, err
}

// A provedRow is an attempt that is as it was saved. Its slices are good until the next one.
type provedRow struct {
	id, number      int64
	key             trialKey
	run, experiment string
	sum             []byte // its seal
	script          []byte // the digest of its transcript
	attempt         []any  // the values of attemptFields
	score           any    // the body of its latest score, or nil
	trial           []any  // the values of trialFields
	body            []byte // its transcript
}

// each visits the attempts in a range of row IDs, or skips those that are not proved or that visit
// returns an error for.
func (p proof) each(
	ctx context.Context, db *DB, where string, args []any, visit func(*provedRow) error,
) error {
	var r provedRow
	query := p.query + " WHERE " + where + " ORDER BY a.id"
	return db.wrap(eachRaw(ctx, db.reader, query, slices.Concat(p.args, args),
		func(row []any) (bool, error) {
			err := p.read(&r, row)
			if p.known[r.id] {
				return true, nil
			}
			if err == nil && p.known == nil {
				err = r.checkSeal()
			}
			if err == nil {
				err = visit(&r)
			}
			if err != nil {
				name := nameAttempt(trialIDOf(row[2]), int(r.number))
				return true, db.skip(r.id, fmt.Errorf("%s: %w", name, err))
			}
			return true, nil
		}))
}

func (p proof) read(r *provedRow, row []any) error {
	r.id, _ = row[0].(int64)
	r.number, _ = row[1].(int64)
	key, _ := row[2].([]byte)
	run, ok := row[3].(string)
	if !ok {
		return errDangling
	}
	r.run, r.score = run, nil
	r.experiment, _ = row[4].(string)
	r.sum, _ = row[5].([]byte)
	r.script, _ = row[6].([]byte)
	r.attempt, row = row[7:][:len(attemptFields)], row[7+len(attemptFields):]
	if copy(r.key[:], key) != len(key) || len(key) != len(r.key) {
		return errUnproved
	}
	var score int64
	if p.scores {
		score, _ = row[0].(int64)
		r.score, row = row[1], row[2:]
	}
	if p.trials {
		r.trial, row = row[:len(trialFields)], row[len(trialFields):]
	}
	if p.bodies {
		r.body, _ = row[0].([]byte)
	}
	if p.broken[score] {
		return hinted(fmt.Errorf("%w: its latest score is not as it was saved", ErrDamaged), doRescue)
	}
	return nil
}

// checkSeal returns an error unless the attempt is as it was saved.
func (r *provedRow) checkSeal() error {
	seal := sealAttempt(identify(r.key, r.run, r.attempt, r.script), r.id, r.number)
	switch {
	case bytes.Equal(seal[:], r.sum):
		return nil
	case r.sum == nil:
		return hinted(fmt.Errorf("%w: it has no seal: another program added it, or the seal is lost",
			ErrDamaged), doRescue)
	}
	return errUnproved
}

// unproved returns the row IDs of the rows of a kind that are not as they were saved, or that are
// missing. Unless the store skips damage, it is an error if there are any.
func (db *DB) unproved(ctx context.Context, of string) (map[int64]bool, error) {
	broken := make(map[int64]bool)
	skip := func(id int64, name, why string) error {
		broken[id] = true
		err := fmt.Errorf("%s: %w: it %s", name, ErrDamaged, why)
		if db.damage == nil {
			return hinted(err, doRescue)
		}
		db.damage.skipRow(of, id, err)
		return nil
	}
	name := func(id int64) string { return fmt.Sprintf("row %d of %s", id, sealed[of].table) }
	err := db.eachSealed(ctx, of, func(r sealedRow) (bool, error) {
		switch {
		case r.broken == "":
			return true, nil
		case wholeRow(of) == "run":
			return true, skip(r.id, fmt.Sprintf("run %v", r.row[0]), r.broken)
		}
		return true, skip(r.id, name(r.id), r.broken)
	})
	if err != nil || of != wholeRow(of) {
		return broken, err
	}
	missing, err := db.missingRows(ctx, of)
	for _, id := range missing {
		err = errors.Join(err, skip(id, name(id), "was saved and is missing"))
	}
	return broken, err
}

// missingRows returns the IDs of the rows of a kind that have a seal and are missing.
func (db *DB) missingRows(ctx context.Context, of string) ([]int64, error) {
	query := "SELECT id FROM seals WHERE of = ? AND id NOT IN (SELECT " + sealed[of].id + " FROM " +
		sealed[of].table + ") ORDER BY id"
	ids, err := values[int64](ctx, db.reader, query, of)
	return ids, db.wrap(err)
}

// outcome replaces the outcome of an attempt by that of its latest score.
func (r *provedRow) outcome(a *assay.Attempt) (err error) {
	if score, ok := r.score.(string); ok {
		a.Outcome, err = parseOutcome([]byte(score))
	}
	return err
}
