package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// A Filter chooses attempts. Its zero value chooses all.
type Filter struct {
	// Experiment chooses the attempts made for it. Trials that it shares with another
	// experiment may have been settled there.
	Experiment string
	Model      string
	Run        assay.RunID
	Trial      assay.TrialID
	// OnlySettled leaves out faults, OnlyFaults leaves out outcomes.
	OnlySettled bool
	OnlyFaults  bool
	// Superseded adds the outcomes that were superseded by those of later rounds.
	Superseded bool
	// Snapshot leaves out everything added after that state; see [DB.Snapshot].
	Snapshot string
	// AsSaved returns outcomes as they were saved and ignores [DB.Rescore].
	AsSaved bool
	// Since leaves out what that snapshot contains. It keeps attempts that were saved later
	// and, unless AsSaved is set, attempts that were rescored later.
	Since string
}

// An attempt with its trial and run, as in the view results. We do not read the view because
// a damaged file may have lost it, and because its inner joins would silently leave out
// attempts whose trial or run is missing.
var (
	resultFields  = slices.Concat(trialFields, attemptFields)
	resultColumns = "a.id, a.trial, a.number, t.id IS NOT NULL, r.experiment, r.id, " +
		columnList("t.", trialFields) + ", " + columnList("a.", attemptFields)
	resultTables = "attempts a LEFT JOIN trials t ON t.id = a.trial " +
		"LEFT JOIN runs r ON r.seq = a.run"
)

// page is how many attempts one transaction reads. SQLite cannot fold the log into the main
// file while a reader is in a transaction, so a transaction must not last as long as a slow
// consumer of the rows.
const page = 1000

// Attempts streams attempts in the order in which they were saved, as of the moment the loop
// begins. If [DB.Rescore] stored outcomes for an attempt, it has the latest one. Empty lists
// and maps are nil, and times are UTC. An error comes with a zero attempt and ends the
// sequence. Several goroutines read ahead by a few thousand attempts at most.
func (db *DB) Attempts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return stream(func(yield func(assay.Attempt, error) bool) error {
		return db.walk(ctx, walk{Filter: f, trials: true}, func(r row) (bool, error) {
			return yield(r.attempt, nil), nil
		})
	})
}

// Verdicts streams the same attempts as [DB.Attempts], in the same order, with only the fields
// that tables of results need. It leaves out the trial except for its ID, and every column
// marked as detail, such as times, which it reads only for the proof.
func (db *DB) Verdicts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return stream(func(yield func(assay.Attempt, error) bool) error {
		return db.walk(ctx, walk{Filter: f}, func(r row) (bool, error) {
			return yield(r.attempt, nil), nil
		})
	})
}

// A walk visits attempts in the order of their row IDs.
type walk struct {
	Filter
	from           int64 // the first row ID, unless it is 0
	trials, bodies bool  // whether it reads trials and transcripts
	proves         bool  // whether it only proves attempts, and visits none
}

// A row is an attempt, with its transcript's body and digest if walk reads them.
type row struct {
	id           int64
	attempt      assay.Attempt
	body, script []byte
}

// walk visits attempts until visit returns false or an error.
func (db *DB) walk(ctx context.Context, q walk, visit func(row) (bool, error)) error {
	at, end, err := db.begin(ctx, q.Snapshot, q.bodies)
	if err != nil {
		return err
	}
	return db.walkState(ctx, q, at, end, visit)
}

func (db *DB) walkState(
	ctx context.Context, q walk, at state, end func() error, visit func(row) (bool, error),
) error {
	where, args, err := q.where(at)
	if err != nil {
		return err
	}
	if !q.Superseded {
		term, more, err := db.current(ctx, at)
		if err != nil {
			return err
		}
		where, args = where+term, append(args, more...)
	}
	narrow := where != everything && q.Trial == ""
	if q.Since != "" {
		since, err := db.state(ctx, q.Since)
		if err != nil {
			return err
		}
		term, more := q.since(since, at)
		where, args = where+term, append(args, more...)
	}
	whole := where == everything && q.from == 0
	p, err := db.prove(ctx, q, at, narrow)
	if err != nil {
		return err
	}
	where += " AND a.id BETWEEN ? AND ?"
	read := func(ctx context.Context, first, last int64) ([]row, error) {
		return db.readRows(ctx, p, where, slices.Concat(args, []any{first, last}))
	}
	if q.Trial != "" { // an index finds its attempts, so blocks would only cost time
		all, err := read(ctx, math.MinInt64, at.attempts)
		for _, r := range all {
			if more, err := visit(r); err != nil || !more {
				return err
			}
		}
		return err
	}
	p.room = page
	if q.bodies {
		p.room /= 10
	}
	from := cmp.Or(q.from, math.MinInt64)
	return eachRow(ctx, db, from, at.attempts, p.room, read, visit, func() error {
		err := end()
		if err == nil && whole {
			db.damage.prove(at.attempts, q.trials)
		}
		return err
	})
}

// current returns a condition, to follow others, that leaves out the outcomes that were superseded.
// Few stores have any, so it is empty if this one has none.
func (db *DB) current(ctx context.Context, at state) (term string, args []any, err error) {
	var again bool
	query := "SELECT EXISTS (SELECT 1 FROM attempts WHERE round > 0 AND id <= ?)"
	err = db.reader.QueryRowContext(ctx, query, at.attempts).Scan(&again)
	if err != nil || !again {
		return "", nil, db.wrap(db.forgive("the rounds of attempts", err))
	}
	return ` AND NOT (a.level <> '' AND EXISTS (SELECT 1 FROM attempts o WHERE o.trial = a.trial
		AND o.level <> '' AND o.round > a.round AND o.id <= ?))`, []any{at.attempts}, nil
}

// since returns a condition, to follow others, for everything that is new after a state.
func (f Filter) since(old, at state) (term string, args []any) {
	if f.AsSaved || at.scores == old.scores {
		return " AND a.id > ?", []any{old.attempts}
	}
	return " AND (a.id > ? OR EXISTS (SELECT 1 FROM scores " +
			"WHERE scores.attempt = a.id AND scores.id > ? AND scores.id <= ?))",
		[]any{old.attempts, old.scores, at.scores}
}

// eachRow reads the attempts from one row ID to another in blocks and visits them until visit
// returns false or an error. If read returns rows with an error, the rows are visited first. After
// the last row, eachRow returns the result of end.
func eachRow[T any](
	ctx context.Context, db *DB, from, last, rows int64,
	read func(ctx context.Context, first, last int64) ([]T, error),
	visit func(T) (bool, error), end func() error,
) error {
	complete := true
	err := inBlocks(ctx, db, from, last, rows, read, func(b block[T]) (bool, error) {
		for _, r := range b.rows {
			if more, err := visit(r); err != nil || !more {
				complete = false
				return false, err
			}
		}
		err := b.err
		if err != nil && ctx.Err() == nil {
			err = db.skipRest(ctx, b.first, b.last, err)
		}
		return err == nil, err
	})
	if err != nil || !complete {
		return err
	}
	return end()
}

func (db *DB) readRows(
	ctx context.Context, p proof, where string, args []any,
) (all []row, err error) {
	in := newInterned()
	if !p.proves {
		all = make([]row, 0, p.room)
	}
	err = p.each(ctx, db, where, args, func(r *provedRow) error {
		if p.proves {
			return p.loadTrial(r, new(assay.Attempt), in)
		}
		all = append(all, row{id: r.id, script: r.script, body: r.body})
		err := p.load(r, &all[len(all)-1].attempt, in)
		if err != nil {
			all = all[:len(all)-1]
		}
		return err
	})
	return all, err
}

// errUnknownExperiment means that the row of an attempt's run was changed.
var errUnknownExperiment = hinted(fmt.Errorf("%w: its experiment is unknown, because the row of "+
	"its run is not as it was saved", ErrDamaged), doRescue)

// unprovedRuns returns the IDs of the runs whose rows are not as they were saved.
func (db *DB) unprovedRuns(ctx context.Context) (map[string]bool, error) {
	unproved, err := db.unproved(ctx, "run")
	if err != nil || len(unproved) == 0 {
		return nil, err
	}
	ids, err := table[int64, string](ctx, db.reader, "SELECT seq, id FROM runs")
	runs := make(map[string]bool)
	for seq := range unproved {
		runs[ids[seq]] = true
	}
	return runs, db.wrap(err)
}

// loadTrial sets the trial of a, if the walk reads it, and checks that it is the attempt's.
func (p proof) loadTrial(r *provedRow, a *assay.Attempt, in *interned) error {
	a.ID = r.key.id()
	if !p.trials {
		return nil
	}
	if r.trial[0] == nil {
		return errDangling
	}
	if err := loadRow(trialFields, a, r.trial, in); err != nil || p.known != nil {
		return err
	}
	if err := a.CheckID(); err != nil {
		return hinted(fmt.Errorf("%w: the row of its trial was changed: %w", ErrDamaged, err), doRescue)
	}
	return nil
}

// load sets a from a row.
func (p proof) load(r *provedRow, a *assay.Attempt, in *interned) error {
	a.Number, a.Run = int(r.number), assay.RunID(in.text(r.run))
	switch {
	case !p.unknown[r.run]:
		a.Experiment = in.text(r.experiment)
	case p.Experiment != "":
		return errUnknownExperiment
	}
	if err := p.loadTrial(r, a, in); err != nil {
		return err
	}
	for i, c := range attemptFields {
		if c.detail && !p.trials {
			continue
		}
		if err := c.load(a, r.attempt[i], in); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return r.outcome(a)
}

// loadResult sets a from a row of resultColumns, or of other fields, and returns the row ID. It
// names the trial and the number of the attempt even if it returns an error.
func loadResult(
	fields []column, values []any, a *assay.Attempt, in *interned,
) (id int64, err error) {
	id, _ = values[0].(int64)
	a.ID = trialIDOf(values[1])
	number, _ := values[2].(int64)
	a.Number = int(number)
	hasTrial, _ := values[3].(int64)
	experiment, _ := values[4].(string)
	run, ok := values[5].(string)
	if hasTrial == 0 || !ok {
		return id, errDangling
	}
	a.Experiment, a.Run = in.text(experiment), assay.RunID(in.text(run))
	return id, loadRow(fields, a, values[6:], in)
}

// everything is the condition of a filter that chooses all attempts of a state.
const everything = "a.id <= ?"

// where returns the filter as a condition on the tables in resultTables, up to the end of a
// state. An attempt fits every condition on its trial or run if that is missing, because its
// value is then unknown.
func (f Filter) where(at state) (string, []any, error) {
	terms, args := []string{everything}, []any{at.attempts}
	add := func(term string, arg ...any) { terms, args = append(terms, term), append(args, arg...) }
	if f.Experiment != "" {
		add("(r.experiment = ? OR r.seq IS NULL)", f.Experiment)
	}
	if f.Model != "" {
		add("(t.model = ? OR t.id IS NULL)", f.Model)
	}
	if f.Run != "" {
		add("(r.id = ? OR r.seq IS NULL)", string(f.Run))
	}
	if f.Trial != "" {
		key, err := parseTrialID(f.Trial)
		if err != nil {
			return "", nil, err
		}
		add("a.trial = ?", key[:])
	}
	if f.OnlySettled {
		add("a.level <> ''")
	}
	if f.OnlyFaults {
		add("a.fault <> ''")
	}
	return strings.Join(terms, " AND "), args, nil
}

func nameAttempt(trial assay.TrialID, number int) string {
	return fmt.Sprintf("attempt %d at trial %s", number, trial)
}

// readError explains an error of reading to the user.
func (db *DB) readError(err error) error {
	if primary(err) == sqlite3.SQLITE_ERROR { // a table or a column is missing
		return hinted(fmt.Errorf("store %s: %w: %w", db.path, ErrDamaged, err), doRescue)
	}
	if primary(err) != 0 {
		return explain(db.path, err)
	}
	return fmt.Errorf("read store %s: %w", db.path, err)
}

// wrap is readError for an error that may be nil.
func (db *DB) wrap(err error) error {
	if err == nil {
		return nil
	}
	return db.readError(err)
}
