package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// A Filter chooses attempts. Its zero value chooses all.
type Filter struct {
	// Experiment chooses the attempts made for it. Trials that it shares with
	// another experiment may have been settled there.
	Experiment string
	Model      string
	Run        assay.RunID
	Trial      assay.TrialID
	// OnlySettled leaves out faults, OnlyFaults leaves out outcomes.
	OnlySettled bool
	OnlyFaults  bool
	// Snapshot leaves out what came after that state; see [DB.Snapshot].
	Snapshot string
	// AsSaved gives outcomes as they were saved, whatever [DB.Rescore] added.
	AsSaved bool
	// Since leaves out what that snapshot has: there remain attempts that came later
	// and, unless AsSaved is set, those whose outcome was judged again later.
	Since string
}

// An attempt with everything about it, as in the view results. The program spells it
// out: a damaged file may have lost the view, and these joins keep attempts whose
// trial or run is lost, so that somebody notices.
const (
	resultColumns = `lower(hex(a.trial)), t.model, t.variant, t.severity, t.difficulty, t.task_type, t.reliability, t.task, t.task_digest,
		t.repeat, t.seed, t.world, t.protocol, t.tools, t.turn_limit, t.sampling, t.token_limit, t.cost_limit,
		t.several_calls, t.persistence, t.burst, t.loops, a.number, r.experiment, r.id, a.program, a.templates, a.lane,
		a.served_model, a.level, a.ended, a.error_category, a.turns, a.tool_calls, a.required_tools, a.executed_tools,
		a.coverage, a.order_correct, a.assisted, a.adherence, a.given_adherence, a.mistakes, a.failures, a.recovered,
		a.wasted_calls, a.efficiency, a.extra_calls, a.loop, a.loop_turn, a.best_possible, a.pilot, a.score_version, a.fault,
		a.fault_detail, a.parked, a.requests, a.retried, a.input_tokens, a.output_tokens, a.cost_usd, a.queued_ms,
		a.working_ms, a.started_at, a.finished_at`
	resultTables = "attempts a LEFT JOIN trials t ON t.id = a.trial LEFT JOIN runs r ON r.seq = a.run"
	// bereftColumn tells of an attempt that is not whole for that reason.
	bereftColumn = "t.id IS NULL OR r.seq IS NULL"
)

// Columns beside those.
const (
	noColumn     = "NULL"
	bodyColumn   = "(SELECT body FROM transcripts WHERE transcripts.attempt = a.id)"
	latestColumn = "(SELECT body FROM scores WHERE scores.attempt = a.id AND scores.id <= ? ORDER BY scores.id DESC LIMIT 1)"
)

// page is how many attempts are read in one transaction. Transactions of
// readers keep the log from being folded into the file, so none of them lasts
// as long as a slow reader.
const page = 1000

// Attempts streams attempts in the order in which they were saved, as of the
// moment when the loop begins. An outcome is the one that [DB.Rescore] stored
// last for the attempt, or else as it was saved. Empty lists and maps are nil
// and times are UTC. After an error, which comes with a zero attempt, the
// sequence ends. Several goroutines read ahead, a few thousand attempts at most.
func (db *DB) Attempts(ctx context.Context, f Filter) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		err := db.walk(ctx, f, noColumn, page, func(a assay.Attempt, _ []byte) (bool, error) { return yield(a, nil), nil })
		if err != nil {
			yield(assay.Attempt{}, err)
		}
	}
}

// A row is an attempt with one more column.
type row struct {
	attempt assay.Attempt
	column  []byte
}

// walk visits attempts, each with one more column, until visit returns false
// or an error.
func (db *DB) walk(ctx context.Context, f Filter, column string, rows int64, visit func(assay.Attempt, []byte) (bool, error)) error {
	withBodies := column == bodyColumn
	before, err := db.deletions(ctx, withBodies)
	if err != nil {
		return err
	}
	at, err := db.state(ctx, f.Snapshot)
	if err != nil {
		return err
	}
	where, args, err := f.where(at)
	if err != nil {
		return err
	}
	if f.Since != "" {
		since, err := db.state(ctx, f.Since)
		if err != nil {
			return err
		}
		term, more := f.since(since, at)
		where, args = where+term, append(args, more...)
	}
	latest, front := noColumn, []any{}
	if at.scores > 0 && !f.AsSaved {
		latest, front = latestColumn, []any{at.scores}
	}
	text := "SELECT " + bereftColumn + ", " + latest + ", " + column + ", " + resultColumns + " FROM "
	where += " AND a.id BETWEEN ? AND ? ORDER BY a.id"
	each := func(r row) (bool, error) { return visit(r.attempt, r.column) }
	if f.Trial != "" { // whose attempts an index finds
		all, err := db.readRows(ctx, text+resultTables+" WHERE "+where, slices.Concat(front, args, []any{math.MinInt64, at.attempts}))
		for _, r := range all {
			if more, err := each(r); err != nil || !more {
				return err
			}
		}
		return err
	}
	return eachRow(ctx, db, at.attempts, rows, func(ctx context.Context, first, last int64) ([]row, error) {
		all, err := db.readRows(ctx, text+resultTables+" WHERE "+where, slices.Concat(front, args, []any{first, last}))
		if err == nil || first < last || db.damage == nil || ctx.Err() != nil {
			return all, err
		}
		// Perhaps the trial is there, and the index is hurt that should find it.
		var key trialKey
		var id []byte
		if db.reader.QueryRowContext(ctx, "SELECT trial FROM attempts NOT INDEXED WHERE id = ?", first).Scan(&id) == nil {
			copy(key[:], id)
		}
		if trial := db.damage.byTable.of(ctx, db, key); trial > 0 {
			return db.readRows(ctx, text+tablesByRow+" WHERE "+where, slices.Concat(front, []any{trial}, args, []any{first, last}))
		}
		return all, err
	}, each, func() error { return db.unchanged(ctx, before, withBodies) })
}

// since returns the filter's condition on what is new after a state, to follow others.
func (f Filter) since(old, at state) (term string, args []any) {
	if f.AsSaved || at.scores == old.scores {
		return " AND a.id > ?", []any{old.attempts}
	}
	return " AND (a.id > ? OR EXISTS (SELECT 1 FROM scores WHERE scores.attempt = a.id AND scores.id > ? AND scores.id <= ?))",
		[]any{old.attempts, old.scores, at.scores}
}

// eachRow visits what read returns of the attempts up to a row ID, until visit
// returns false or an error. What read returns beside an error comes before that. At
// the end it returns what end says.
func eachRow[T any](ctx context.Context, db *DB, last, rows int64, read func(ctx context.Context, first, last int64) ([]T, error),
	visit func(T) (bool, error), end func() error,
) error {
	type block struct {
		rows []T
		err  error
	}
	whole := true
	err := inBlocks(ctx, last, rows, db.seek, func(ctx context.Context, first, last int64) (b block) {
		b.rows, b.err = around(ctx, db, first, last, read)
		return b
	}, func(b block) (bool, error) {
		for _, r := range b.rows {
			if more, err := visit(r); err != nil || !more {
				whole = false
				return false, err
			}
		}
		return b.err == nil, b.err
	})
	if err != nil || !whole {
		return err
	}
	return end()
}

// seek returns the row ID of the first attempt from one on. Where it cannot be told,
// it is that of a seal, or else the one that was given.
func (db *DB) seek(ctx context.Context, from int64) (int64, bool) {
	for _, text := range []string{"SELECT min(id) FROM attempts WHERE id >= ?", "SELECT min(attempt) FROM attempt_seals WHERE attempt >= ?"} {
		var id sql.NullInt64
		if db.reader.QueryRowContext(ctx, text, from).Scan(&id) == nil {
			return id.Int64, id.Valid
		}
	}
	return max(from, 1), true
}

// around reads some rows. If the store passes over what cannot be read, it reads of
// rows of which some cannot the halves, down to one, which is skipped.
func around[T any](ctx context.Context, db *DB, first, last int64, read func(ctx context.Context, first, last int64) ([]T, error)) ([]T, error) {
	rows, err := read(ctx, first, last)
	if err == nil || db.damage == nil || ctx.Err() != nil {
		return rows, err
	}
	if first == last {
		db.damage.skip(first, err)
		return nil, nil
	}
	half := first + (last-first)/2
	l, errL := around(ctx, db, first, half, read)
	r, errR := around(ctx, db, half+1, last, read)
	return append(l, r...), errors.Join(errL, errR)
}

// damage is what readers went around.
type damage struct {
	mu      sync.Mutex
	gone    int            // attempts that have seals and are not there; guarded by mu
	skipped map[int64]bool // row IDs of attempts; guarded by mu
	runs    map[int64]bool // of runs; guarded by mu
	tell    func(error)    // called under mu
	byTable trialRows
}

// SkipDamage makes [DB.Attempts], [DB.Transcripts], [DB.Verdicts], [DB.Outcomes] and
// [DB.Settled] pass over attempts that cannot be read, and [DB.Experiments], [DB.Runs]
// and [DB.Plans] over such runs. tell is told of each once, whichever meets it, and by
// one goroutine at a time. It is called before the first of them.
func (db *DB) SkipDamage(tell func(error)) {
	db.damage = &damage{skipped: make(map[int64]bool), runs: make(map[int64]bool), tell: tell}
}

// Skipped returns how many attempts could not be read so far, with those that
// [DB.SkipGone] found.
func (db *DB) Skipped() int {
	if db.damage == nil {
		return 0
	}
	db.damage.mu.Lock()
	defer db.damage.mu.Unlock()
	return len(db.damage.skipped) + db.damage.gone
}

// SkipGone looks for attempts that have seals and are not there, as where a page of
// their table was cut off without an error, and counts them among those that could not
// be read. It reads the table once.
func (db *DB) SkipGone(ctx context.Context) error {
	boundary, err := db.unsealed(ctx, "attempt")
	if err != nil {
		return err
	}
	var gone int
	err = db.reader.QueryRowContext(ctx, `SELECT (SELECT count(*) FROM attempt_seals WHERE attempt > ?1)
		- (SELECT count(*) FROM attempts NOT INDEXED WHERE id > ?1)`, boundary).Scan(&gone)
	if isDamage(err) {
		gone, err = db.countGone(ctx, boundary)
	}
	if err != nil || gone <= 0 {
		return db.wrap(err)
	}
	db.damage.mu.Lock()
	defer db.damage.mu.Unlock()
	db.damage.gone = gone
	db.damage.tell(fmt.Errorf("%d attempts that were saved and are not there", gone))
	return nil
}

func (d *damage) skip(row int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.skipped[row] {
		d.skipped[row] = true
		d.tell(fmt.Errorf("the attempt with row ID %d: %w", row, err))
	}
}

// skipRun is skip for a run.
func (d *damage) skipRun(seq int64, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.runs[seq] {
		d.runs[seq] = true
		d.tell(fmt.Errorf("the run with row ID %d: %w", seq, err))
	}
}

// countGone counts sealed attempts beyond a row ID that readers do not meet, be it
// that they pass over them: a table whose upper pages are hurt can end early.
func (db *DB) countGone(ctx context.Context, boundary int64) (gone int, err error) {
	last := int64(0)
	err = db.reader.QueryRowContext(ctx, "SELECT count(*), ifnull(max(attempt), 0) FROM attempt_seals WHERE attempt > ?", boundary).Scan(&gone, &last)
	if isDamage(err) {
		return 0, nil // then nobody knows
	}
	if err != nil {
		return 0, err
	}
	before := db.Skipped()
	err = eachRow(ctx, db, last, page, func(ctx context.Context, first, last int64) (ids []int64, err error) {
		err = eachRaw(ctx, db.reader, "SELECT id FROM attempts NOT INDEXED WHERE id BETWEEN ? AND ? AND id > ?", []any{first, last, boundary}, func(row []any) (bool, error) {
			id, _ := row[0].(int64)
			ids = append(ids, id)
			return true, nil
		})
		return ids, err
	}, func(int64) (bool, error) { gone--; return true, nil }, func() error { return nil })
	return gone - (db.Skipped() - before), err
}

// lastAttempt returns the highest row ID of an attempt. Where attempts are damaged
// it is that of their seals.
func (db *DB) lastAttempt(ctx context.Context) (last int64, err error) {
	for _, text := range []string{"SELECT ifnull(max(id), 0) FROM attempts", "SELECT ifnull(max(attempt), 0) FROM attempt_seals"} {
		if err = db.reader.QueryRowContext(ctx, text).Scan(&last); err == nil || !isDamage(err) {
			break
		}
	}
	return last, db.wrap(err)
}

func (db *DB) readRows(ctx context.Context, text string, args []any) (all []row, err error) {
	rows, err := db.reader.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, db.readError(err)
	}
	defer rows.Close()
	var bereft bool
	var score sql.RawBytes
	known := make(lists)
	for rows.Next() {
		var r row
		r.attempt, err = known.scanAttempt(rows, &bereft, &score, &r.column)
		if bereft {
			return all, db.readError(fmt.Errorf("an attempt at trial %s: %w", r.attempt.ID, errBereft))
		}
		if err == nil && score != nil {
			r.attempt.Outcome, err = parseOutcome(score)
		}
		if err != nil {
			return all, db.readError(fmt.Errorf("%s: %w", nameAttempt(r.attempt.ID, r.attempt.Number), err))
		}
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return all, db.readError(err)
	}
	return all, nil
}

// where returns the filter's condition on what [resultTables] join, with the end of a
// state. What a lost trial or run would have said is not known, so that attempts that
// lack one fit.
func (f Filter) where(at state) (string, []any, error) {
	terms, args := []string{"a.id <= ?"}, []any{at.attempts}
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

// lists holds lists of tools that come again and again, by their JSON. Attempts
// share them.
type lists map[string][]string

func (l lists) of(text string) ([]string, error) {
	if text == "[]" {
		return nil, nil
	}
	list, ok := l[text]
	if !ok {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		list = slices.Clip(list)
		l[text] = list
	}
	return list, nil
}

// scanAttempt reads the columns in front, and then an attempt.
func (l lists) scanAttempt(rows *sql.Rows, front ...any) (a assay.Attempt, err error) {
	var sampling, required, executed, pilot, retried, started, finished string
	err = rows.Scan(append(front, &a.ID, &a.Model, &a.Variant, &a.Severity, &a.Difficulty, &a.TaskType, &a.Reliability,
		&a.Task, &a.TaskDigest, &a.Repeat, &a.Seed,
		&a.World, &a.Protocol, &a.Tools, &a.Setting.Turns, &sampling, &a.Setting.Tokens, &a.Setting.USD,
		&a.SeveralCalls, &a.Persistence, &a.Burst, &a.Loops,
		&a.Number, &a.Experiment, &a.Run, &a.Program, &a.Templates, &a.Lane, &a.ServedModel,
		&a.Level, &a.Ended, &a.ErrorCategory, &a.Outcome.Turns, &a.ToolCalls, &required, &executed,
		&a.Coverage, &a.OrderCorrect, &a.Assisted,
		&a.Adherence, &a.GivenAdherence, &a.Mistakes, &a.Failures, &a.Recovered, &a.Wasted, &a.Efficiency, &a.Extra,
		&a.Loop, &a.LoopTurn, &a.Best, &pilot, &a.ScoreVersion, &a.FaultKind, &a.FaultDetail, &a.Parked,
		&a.Requests, &retried, &a.InputTokens, &a.OutputTokens, &a.CostUSD, &a.QueuedMS, &a.WorkingMS,
		&started, &finished)...)
	if err != nil {
		return a, err
	}
	for _, f := range []struct {
		text, empty string
		to          any
	}{
		{sampling, "{}", &a.Sampling},
		{pilot, "", &a.Pilot},
		{retried, "{}", &a.Retried},
	} {
		if f.text == f.empty {
			continue
		}
		if err := json.Unmarshal([]byte(f.text), f.to); err != nil {
			return a, err
		}
	}
	a.RequiredTools, err = l.of(required)
	if err != nil {
		return a, err
	}
	if a.ExecutedTools, err = l.of(executed); err != nil {
		return a, err
	}
	if err := a.StartedAt.UnmarshalText([]byte(started)); err != nil {
		return a, err
	}
	return a, a.FinishedAt.UnmarshalText([]byte(finished))
}

func nameAttempt(trial assay.TrialID, number int) string {
	return fmt.Sprintf("attempt %d at trial %s", number, trial)
}

func (db *DB) readError(err error) error {
	if primary(err) == sqlite3.SQLITE_ERROR { // a table or a column that should be there is not
		return hinted(fmt.Errorf("store %s: %w: %w", db.path, ErrDamaged, err), doRescue)
	}
	if primary(err) != 0 {
		return explain(db.path, err)
	}
	return fmt.Errorf("read store %s: %w", db.path, err)
}
