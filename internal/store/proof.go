package store

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"

	"github.com/assay-eval/assay"
)

var (
	errUnproved      = damaged("", "it is not as it was saved")
	errNoSeal        = damaged("", "it has no seal: another program added it, or the seal is lost")
	errUnprovedScore = damaged("", "its latest score is not as it was saved, or cannot be found")
	errUnprovedCost  = damaged("", "its latest costs are not as they were saved, or cannot be found")
	// errUnknownExperiment means that the row of an attempt's run was changed.
	errUnknownExperiment = damaged("", "its experiment is unknown, because the row of its run is not "+
		"as it was saved")
	errDangling = damaged("", "its trial or its run is missing")
)

// A storedAttempt is an attempt as SQLite returns it, with everything that its seal covers. Its
// slices are good until the next one.
type storedAttempt struct {
	id, number      int64
	key             trialKey
	run, experiment string // empty if the run is missing
	sum             []byte // the seal; nil if it is missing
	script          []byte // the digest of the transcript that was saved
	attempt         []any  // the values of the layout's columns
	score           int64  // the row ID of its latest score, or 0
	outcome         any    // that score's body, or nil
	cost            int64  // the row ID of its latest costs, or 0
	costs           []any  // what they say, by costFields
	trial           []any  // the same of its trial, unless the query is bare
	layout          *layout
}

// An attemptQuery reads attempts. We do not read the view results because a damaged file may have
// lost it, and because its inner joins would silently leave out attempts whose trial or run is
// missing.
type attemptQuery struct {
	layout *layout
	bare   bool  // without trials, which take half of the time
	scores int64 // the latest score to read; 0 to read no scores
	costs  int64 // the same of costs
}

func (q attemptQuery) text() (query string, args []any) {
	columns := "a.id, a.number, a.trial, r.id, r.experiment, s.sum, s.script, " +
		q.layout.attempts.of("a")
	tables := " FROM attempts a LEFT JOIN runs r ON r.seq = a.run " +
		"LEFT JOIN attempt_seals s ON s.attempt = a.id"
	if q.scores > 0 {
		columns += ", c.id, c.body"
		tables += " LEFT JOIN scores c ON c.id = (SELECT max(id) FROM scores " +
			"WHERE scores.attempt = a.id AND scores.id <= ?)"
		args = append(args, q.scores)
	}
	if q.costs > 0 {
		columns += ", k.id, " + columnsOf("k", costReads)
		tables += " LEFT JOIN costs k ON k.id = (SELECT max(id) FROM costs " +
			"WHERE costs.attempt = a.id AND costs.id <= ?)"
		args = append(args, q.costs)
	}
	if !q.bare { // they need no seal, because their IDs are made of their content
		columns += ", " + q.layout.trials.of("t")
		tables += " LEFT JOIN trials t ON t.id = a.trial"
	}
	return "SELECT " + columns + tables, args
}

// read sets s to a row of the query.
func (q attemptQuery) read(s *storedAttempt, row []any) {
	*s = storedAttempt{layout: q.layout}
	s.id, _ = row[0].(int64)
	s.number, _ = row[1].(int64)
	if key, _ := row[2].([]byte); len(key) == len(s.key) {
		copy(s.key[:], key)
	}
	s.run, _ = row[3].(string)
	s.experiment, _ = row[4].(string)
	s.sum, _ = row[5].([]byte)
	s.script, _ = row[6].([]byte)
	n := len(q.layout.attempts.fields)
	s.attempt, row = row[7:][:n], row[7+n:]
	if q.scores > 0 {
		s.score, _ = row[0].(int64)
		s.outcome, row = row[1], row[2:]
	}
	if q.costs > 0 {
		s.cost, _ = row[0].(int64)
		n := len(columnNames(costReads))
		s.costs, row = row[1:][:n], row[1+n:]
	}
	if !q.bare {
		s.trial = row
	}
}

// eachAttempt visits the attempts that satisfy a condition in the order of their row IDs.
func (db *DB) eachAttempt(
	ctx context.Context, q attemptQuery, where string, args []any,
	visit func(*storedAttempt) (bool, error),
) error {
	q.layout = db.layout
	query, first := q.text()
	query += " WHERE " + where + " ORDER BY a.id"
	var s storedAttempt
	return db.wrap(eachRaw(ctx, db.reader, query, append(first, args...),
		func(row []any) (bool, error) {
			q.read(&s, row)
			return visit(&s)
		}))
}

// identity returns the sum that the attempt's seal covers.
func (s *storedAttempt) identity() sum {
	return s.layout.attempts.identify(s.key, s.run, s.attempt, s.script)
}

func (s *storedAttempt) name() string { return nameAttempt(s.key.id(), int(s.number)) }

// checkSeal returns an error unless the attempt is as it was saved.
func (s *storedAttempt) checkSeal() error {
	seal := sealAttempt(s.identity(), s.id, s.number)
	switch {
	case bytes.Equal(seal[:], s.sum):
		return nil
	case s.sum == nil:
		return errNoSeal
	}
	return errUnproved
}

// load sets a to the attempt as it was saved, without its trial if the query is bare.
func (s *storedAttempt) load(a *assay.Attempt, in *interned) error {
	a.ID, a.Number = s.key.id(), int(s.number)
	a.Experiment, a.Run = in.text(s.experiment), assay.RunID(in.text(s.run))
	if s.run == "" || s.trial != nil && s.trial[0] == nil {
		return errDangling
	}
	if s.trial != nil {
		trials := &s.layout.trials
		if name := trials.unknown(s.trial); name != "" {
			return fmt.Errorf("%w, which knows its %s", ErrNewer, name)
		}
		if err := loadRow(trials.fields, a, s.trial, in); err != nil {
			return err
		}
	}
	return loadRow(s.layout.attempts.fields, a, s.attempt, in)
}

// A proof is how readers read attempts and compare each of them with its seal.
type proof struct {
	walk
	query  attemptQuery
	at     storedState
	since  storedState // zero unless the walk leaves out what an earlier state has
	scores []revision  // the proved ones
	costs  []revision
	latest map[trialKey]int // the latest round of trials that were settled more than once
	// unknown has the runs whose rows are not proved. Their data about attempts are left out, and
	// so are the attempts if the walk is of one experiment, as they may not belong to it.
	unknown map[string]bool
}

// prove returns the proof of a walk. What decides which outcome counts is read from the tables
// themselves, because a damaged index may have lost rows without an error.
func (db *DB) prove(ctx context.Context, q walk, at storedState) (p proof, err error) {
	p.walk, p.at, p.query.bare = q, at, q.bare && q.Model == ""
	if q.Since != "" {
		if p.since, err = db.state(ctx, q.Since); err != nil {
			return p, err
		}
	}
	if !q.AsSaved {
		p.query.scores = at.scores
		if p.scores, err = db.scores.upTo(ctx, db, "scores", at.scores); err != nil {
			return p, err
		}
		p.query.costs = at.costs
		if p.costs, err = db.costs.upTo(ctx, db, "costs", at.costs); err != nil {
			return p, err
		}
	}
	if p.latest, err = db.latestRounds(ctx, q, at); err != nil {
		return p, err
	}
	p.unknown, err = db.unprovedRuns(ctx)
	return p, err
}

// latestRounds returns the latest rounds of the walk's trials that were settled more than once,
// which few stores have. Rows before the walk's first do not matter, because only a later row
// supersedes an outcome.
func (db *DB) latestRounds(
	ctx context.Context, q walk, at storedState,
) (map[trialKey]int, error) {
	query := "SELECT trial, round FROM attempts NOT INDEXED " +
		"WHERE round > 0 AND level <> '' AND id BETWEEN ? AND ? ORDER BY id"
	args := []any{cmp.Or(q.from, math.MinInt64), at.attempts}
	if key, err := parseTrialID(q.Trial); err == nil {
		query = "SELECT trial, round FROM attempts " +
			"WHERE round > 0 AND level <> '' AND id BETWEEN ? AND ? AND trial = ?"
		args = append(args, key[:])
	}
	latest := make(map[trialKey]int)
	err := each(ctx, db.reader, query, args, func(rows *sql.Rows) (bool, error) {
		var trial []byte
		var round int
		err := rows.Scan(&trial, &round)
		if len(trial) == len(trialKey{}) {
			key := trialKey(trial)
			latest[key] = max(latest[key], round)
		}
		return true, err
	})
	return latest, db.wrap(db.forgive("the rounds of attempts", err))
}

// A row is an attempt, with its transcript if the walk reads it.
type row struct {
	id         int64
	attempt    assay.Attempt
	transcript *assay.Transcript
	damage     error // of the transcript
}

// rows returns the attempts in a range that the walk chooses, and skips attempts that are not
// proved. SQL only knows columns that may have been changed, so each attempt is proved before it is
// left out.
func (p proof) rows(
	ctx context.Context, db *DB, bodies map[int64][]byte, where string, args []any,
) (all []row, err error) {
	in := newInterned()
	all = make([]row, 0, p.room())
	err = db.eachAttempt(ctx, p.query, where, args, func(s *storedAttempt) (bool, error) {
		r := row{id: s.id}
		if err := p.load(s, &r.attempt, in); err != nil {
			err = fmt.Errorf("the attempt with row ID %d: %s: %w", s.id, s.name(), err)
			return true, db.skip(ofAttempt, err, s.id)
		}
		r.attempt.Superseded = r.attempt.Settles() && r.attempt.Round < p.latest[s.key]
		known := p.Since != "" && s.id <= p.since.attempts && s.score <= p.since.scores && s.cost <= p.since.costs
		if known || !p.has(&r.attempt) {
			return true, nil
		}
		if p.bodies {
			r.transcript, err = db.transcriptOf(ctx, s.id, s.script, bodies)
			if errors.Is(err, ErrDamaged) {
				r.damage, err = fmt.Errorf("%s: %w", s.name(), err), nil
			}
		}
		all = append(all, r)
		return true, err
	})
	return all, err
}

// load sets a from an attempt that is proved.
func (p proof) load(s *storedAttempt, a *assay.Attempt, in *interned) error {
	if s.run == "" {
		return errDangling
	}
	if err := s.checkSeal(); err != nil {
		return err
	}
	if err := s.load(a, in); err != nil {
		return err
	}
	if !p.query.bare {
		if err := a.CheckID(); err != nil {
			return damaged("", "the row of its trial was changed: "+err.Error())
		}
	}
	if p.unknown[s.run] {
		if p.Experiment != "" {
			return errUnknownExperiment
		}
		a.Experiment = ""
	}
	if p.query.scores > 0 && s.score != latestOf(p.scores, s.id, p.at.scores) {
		return errUnprovedScore
	}
	if p.query.costs > 0 && s.cost != latestOf(p.costs, s.id, p.at.costs) {
		return errUnprovedCost
	}
	if s.cost > 0 {
		if err := reprice(a, s.costs, in); err != nil {
			return err
		}
	}
	if score, ok := s.outcome.(string); ok {
		var err error
		a.Outcome, err = parseOutcome([]byte(score))
		return err
	}
	return nil
}
