package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// An Experiment is what was stored under one name.
type Experiment struct {
	Name string `json:"name"`
	// Spec is the experiment's file as JSON. It is null where its text was lost, and
	// recovery kept the rest of the run: see [Experiment.Lost].
	Spec    json.RawMessage `json:"spec"`
	Library Library         `json:"library"`
	// Planned counts the trials of the whole plan.
	Planned int `json:"planned"`
	// Serves has, for each model, the names that a response may bear.
	Serves map[string][]string `json:"serves,omitempty"`
	// Plans counts the different plans with which the runs of this name began: one
	// unless the file was edited, or stores with different plans were merged. See
	// [DB.Unplanned].
	Plans int `json:"plans,omitempty"`
	// CreatedAt and UpdatedAt are the starts of its first and its latest run.
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Lost tells whether the experiment's text is lost, so that nobody knows its plan.
func (e *Experiment) Lost() bool { return len(e.Spec) == 0 || string(e.Spec) == "null" }

// plan is the same for runs with the same plan.
func (e *Experiment) plan() string { return string(e.Spec) + e.Library.Name + e.Library.Digest }

// A Library says which task library an experiment ran on.
type Library struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// A Run is one process session that worked on an experiment.
type Run struct {
	ID         assay.RunID `json:"id"`
	Experiment string      `json:"experiment"`
	Program    string      `json:"program"`
	Host       string      `json:"host"`
	PID        int         `json:"pid"`
	StartedAt  time.Time   `json:"started_at"`
	// FinishedAt is zero, and Summary empty, for a run that has not ended or
	// was killed.
	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Summary    json.RawMessage `json:"summary,omitempty"`
}

// runKey is what a save has to know of its run.
type runKey struct {
	seq        int64
	experiment string
	// before is an attempt's row ID, or 0: the run's own are higher.
	before int64
}

// BeginRun stores the start of a run of an experiment, as both are now; the
// states that earlier runs stored remain. The experiment of r is e's name,
// whatever r says. BeginRun has to precede the run's saves.
func (db *DB) BeginRun(ctx context.Context, e Experiment, r Run) error {
	if len(e.Spec) == 0 {
		e.Spec = json.RawMessage("null")
	}
	serves := []byte("{}")
	started, err := formatTime(r.StartedAt)
	if err == nil && len(e.Serves) > 0 {
		serves, err = json.Marshal(e.Serves)
	}
	if err != nil {
		return fmt.Errorf("begin run %s: %w: %w", r.ID, ErrInvalid, err)
	}
	err = db.do(ctx, len(e.Spec), func(w *writer) error {
		if _, err := w.run(r.ID); err == nil {
			return ErrRunExists
		} else if !errors.Is(err, ErrUnknownRun) {
			return err
		}
		res, err := w.conn.ExecContext(w.ctx, insertNext("runs", "seq", `id, experiment, spec, library_path, library_name, library_digest,
			planned, program, host, pid, started_at, serves`), w.gone["run"],
			string(r.ID), e.Name, string(e.Spec), e.Library.Path, e.Library.Name, e.Library.Digest,
			e.Planned, r.Program, r.Host, r.PID, started, string(serves))
		if err := w.sealNew("run", res, err); err != nil {
			return err
		}
		k, err := w.run(r.ID)
		if err != nil {
			return err
		}
		k.before = w.last
		w.runs[r.ID] = k
		return db.lock.name(r.ID)
	})
	if err != nil {
		return fmt.Errorf("begin run %s: %w", r.ID, err)
	}
	return nil
}

// EndRun stores that a run ended now, with a summary for people, which may be
// empty. A run ends once.
func (db *DB) EndRun(ctx context.Context, id assay.RunID, summary json.RawMessage) error {
	if len(summary) == 0 {
		summary = json.RawMessage("null")
	}
	now, err := formatTime(time.Now())
	if err != nil {
		return fmt.Errorf("end run %s: %w", id, err)
	}
	err = db.do(ctx, len(summary), func(w *writer) error {
		k, err := w.run(id)
		if err != nil {
			return err
		}
		res, err := w.conn.ExecContext(w.ctx, "UPDATE runs SET finished_at = ?, summary = ? WHERE id = ? AND finished_at IS NULL",
			now, string(summary), string(id))
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrRunEnded, err)
		}
		if err := w.sealRow("run_end", k.seq); err != nil {
			return err
		}
		var n int
		err = w.conn.QueryRowContext(w.ctx, "SELECT count(*) FROM attempts WHERE run = ? AND id > ?", k.seq, k.before).Scan(&n)
		if err != nil {
			return err
		}
		return w.countRun(k.seq, n)
	})
	if err != nil {
		return fmt.Errorf("end run %s: %w", id, err)
	}
	return nil
}

// countRun stores how many attempts a run that has ended has. Of those that are cut off
// the store later, with all that is about them, nothing else would tell.
func (w *writer) countRun(seq int64, attempts int) error {
	res, err := w.conn.ExecContext(w.ctx, "INSERT INTO run_counts (run, attempts) VALUES (?, ?)", seq, attempts)
	return w.sealNew("run_count", res, err)
}

// run returns the key of a run that was begun.
func (w *writer) run(id assay.RunID) (runKey, error) {
	if k, ok := w.runs[id]; ok {
		return k, nil
	}
	var k runKey
	err := w.conn.QueryRowContext(w.ctx, "SELECT seq, experiment FROM runs WHERE id = ?", string(id)).Scan(&k.seq, &k.experiment)
	if errors.Is(err, sql.ErrNoRows) {
		return k, fmt.Errorf("%w %q", ErrUnknownRun, id)
	}
	if err == nil {
		w.runs[id] = k
	}
	return k, err
}

// Experiments returns what is stored, by name: of each experiment the state
// with which its latest run began.
func (db *DB) Experiments(ctx context.Context) ([]Experiment, error) {
	all, err := db.storedRuns(ctx, "")
	if err != nil {
		return nil, err
	}
	latest := make(map[string]*Experiment)
	type named struct{ name, plan string }
	plans := make(map[named]bool)
	for _, r := range all { // oldest first
		e := r.experiment
		old := latest[e.Name]
		e.CreatedAt = r.run.StartedAt
		if old != nil {
			e.CreatedAt, e.Plans = old.CreatedAt, old.Plans
		}
		if p := (named{e.Name, e.plan()}); !plans[p] && !e.Lost() {
			plans[p] = true
			e.Plans++
		}
		e.UpdatedAt = r.run.StartedAt
		latest[e.Name] = &e
	}
	experiments := make([]Experiment, 0, len(latest))
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		experiments = append(experiments, *latest[name])
	}
	return experiments, nil
}

// Unplanned counts the attempts that were made for an experiment at trials that are
// not planned, and those trials: what readers that go by the plan do not show, because
// an earlier run had another plan, or a run of another store that was merged.
func (db *DB) Unplanned(ctx context.Context, experiment string, planned func(assay.TrialID) bool) (attempts, trials int, err error) {
	seen := make(map[trialKey]bool)
	// In the order of the table: by the index of trials each would be looked up.
	err = eachRaw(ctx, db.reader, `SELECT trial FROM attempts NOT INDEXED WHERE run IN (SELECT seq FROM runs WHERE experiment = ?)`,
		[]any{experiment}, func(row []any) (bool, error) {
			var key trialKey
			id, _ := row[0].([]byte)
			copy(key[:], id)
			if planned(key.id()) {
				return true, nil
			}
			attempts++
			if !seen[key] {
				seen[key] = true
				trials++
			}
			return true, nil
		})
	return attempts, trials, db.wrap(err)
}

// Runs returns the runs of an experiment, or all for "", oldest first.
func (db *DB) Runs(ctx context.Context, experiment string) ([]Run, error) {
	all, err := db.storedRuns(ctx, experiment)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	runs := make([]Run, len(all))
	for i, r := range all {
		runs[i] = r.run
	}
	return runs, nil
}

// Plans returns each run's experiment as it was when the run began. A text that
// cannot be read leaves its field empty.
func (db *DB) Plans(ctx context.Context) (map[assay.RunID]Experiment, error) {
	all, err := db.storedRuns(ctx, "")
	if err != nil {
		return nil, err
	}
	plans := make(map[assay.RunID]Experiment, len(all))
	for _, r := range all {
		plans[r.run.ID] = r.experiment
	}
	return plans, nil
}

// A storedRun is a run with its experiment as it was when the run began.
type storedRun struct {
	run        Run
	experiment Experiment
}

// storedRuns returns the runs of an experiment, or all for "", oldest first.
func (db *DB) storedRuns(ctx context.Context, experiment string) (all []storedRun, err error) {
	err = eachRaw(ctx, db.reader, `SELECT seq, id, experiment, program, host, pid, started_at, finished_at, summary,
		spec, library_path, library_name, library_digest, planned, serves FROM runs WHERE ?1 IN ('', experiment) ORDER BY seq`,
		[]any{experiment}, func(row []any) (bool, error) {
			r, err := scanRun(row[1:])
			if err == nil {
				all = append(all, r)
				return true, nil
			}
			seq, _ := row[0].(int64)
			err = fmt.Errorf("run %v: %w: %w", row[1], ErrDamaged, err)
			if db.damage == nil {
				return false, hinted(err, doRescue)
			}
			db.damage.skipRun(seq, err)
			return true, nil
		})
	return all, db.wrap(err)
}

func scanRun(row []any) (s storedRun, err error) {
	next := 0
	bad := func(v any) {
		err = errors.Join(err, fmt.Errorf("column %d holds %v", next, v))
	}
	text := func() string {
		v := row[next]
		t, ok := v.(string)
		if next++; !ok && v != nil {
			bad(v)
		}
		return t
	}
	whole := func() int {
		v := row[next]
		n, ok := v.(int64)
		if next++; !ok {
			bad(v)
		}
		return int(n)
	}
	at := func(to *time.Time) {
		if t := text(); t != "" || to == &s.run.StartedAt {
			if failed := to.UnmarshalText([]byte(t)); failed != nil {
				bad(t)
			}
		}
	}
	r, e := &s.run, &s.experiment
	r.ID, r.Experiment, r.Program, r.Host, r.PID = assay.RunID(text()), text(), text(), text(), whole()
	at(&r.StartedAt)
	at(&r.FinishedAt)
	if summary := text(); !r.FinishedAt.IsZero() {
		r.Summary = json.RawMessage(summary)
	}
	e.Name, e.Spec = r.Experiment, json.RawMessage(text())
	e.Library = Library{text(), text(), text()}
	e.Planned = whole()
	if json.Unmarshal([]byte(text()), &e.Serves) != nil || len(e.Serves) == 0 {
		e.Serves = nil
	}
	return s, err
}

// Models returns the models of which there are attempts, sorted.
func (db *DB) Models(ctx context.Context) ([]string, error) {
	rows, err := db.reader.QueryContext(ctx, "SELECT DISTINCT model FROM trials ORDER BY model")
	return collect(db, rows, err, func(m *string) error { return rows.Scan(m) })
}

// Variants returns the variants of which there are attempts, sorted.
func (db *DB) Variants(ctx context.Context) ([]string, error) {
	rows, err := db.reader.QueryContext(ctx, "SELECT DISTINCT variant FROM trials ORDER BY variant")
	return collect(db, rows, err, func(v *string) error { return rows.Scan(v) })
}

// collect returns what scan makes of each row, and closes rows.
func collect[T any](db *DB, rows *sql.Rows, err error, scan func(*T) error) (all []T, _ error) {
	if err != nil {
		return nil, db.readError(err)
	}
	for rows.Next() {
		var v T
		if err := scan(&v); err != nil {
			return nil, errors.Join(db.readError(err), rows.Close())
		}
		all = append(all, v)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, db.readError(err)
	}
	return all, nil
}
