package store

import (
	"cmp"
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

// An Experiment is the state of an experiment when a run of it began.
type Experiment struct {
	Name string `json:"name"`
	// Spec is the experiment's file as JSON. It is null if the text was lost and recovery kept
	// the rest of the run: see [Experiment.Lost].
	Spec    json.RawMessage `json:"spec"`
	Library Library         `json:"library"`
	// Planned counts the trials of the whole plan.
	Planned int `json:"planned"`
	// Serves lists, for each model, the model names that a response may have.
	Serves map[string][]string `json:"serves,omitempty"`
	// Prices are the prices that were in force, as JSON by model.
	Prices json.RawMessage `json:"prices,omitempty"`
	// Plans counts the different plans with which runs of this name began. There is more than
	// one if the file was edited, or if stores with different plans were merged: see
	// [DB.Unplanned].
	Plans int `json:"plans,omitempty"`
	// Run is the latest run.
	Run assay.RunID `json:"-"`
	// CreatedAt is when its first run began, and UpdatedAt when its latest did.
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Lost reports whether the experiment's text, and with it the plan, is lost.
func (e *Experiment) Lost() bool { return len(e.Spec) == 0 || string(e.Spec) == "null" }

// plan returns a text that is equal for runs with the same plan.
func (e *Experiment) plan() string { return string(e.Spec) + e.Library.Name + e.Library.Digest }

// A Library identifies the task library of an experiment.
type Library struct {
	Path   string `json:"path"`
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// A Run is one session of a process that worked on an experiment.
type Run struct {
	ID         assay.RunID `json:"id"`
	Experiment string      `json:"experiment"`
	Program    string      `json:"program"`
	Host       string      `json:"host"`
	PID        int         `json:"pid"`
	StartedAt  time.Time   `json:"started_at"`
	// FinishedAt is zero, and Summary empty, if the run has not ended or was killed.
	FinishedAt time.Time       `json:"finished_at,omitzero"`
	Summary    json.RawMessage `json:"summary,omitempty"`
}

// A runKey has the facts about a run that a save needs.
type runKey struct {
	seq        int64
	experiment string
	// before is a row ID; the run's own attempts have higher ones.
	before int64
}

// BeginRun stores the start of a run and the present state of its experiment. States that
// earlier runs stored remain. The run's experiment is e.Name, and r.Experiment is ignored. Call
// BeginRun before the run's saves.
func (db *DB) BeginRun(ctx context.Context, e Experiment, r Run) error {
	if len(e.Spec) == 0 {
		e.Spec = json.RawMessage("null")
	}
	serves := []byte("{}")
	if len(e.Serves) > 0 {
		var err error
		if serves, err = json.Marshal(e.Serves); err != nil {
			return fmt.Errorf("begin run %s: %w: %w", r.ID, ErrInvalid, err)
		}
	}
	row := []any{
		string(r.ID), e.Name, e.Library.Path, e.Library.Name, e.Library.Digest, e.Planned,
		r.Program, r.Host, r.PID, r.StartedAt, string(e.Spec), string(serves),
		cmp.Or(string(e.Prices), "{}"), nil, nil,
	}
	what := fmt.Sprintf("begin run %s", r.ID)
	return db.write(ctx, what, len(e.Spec), func(w *writer) error {
		if _, err := w.run(r.ID); err == nil {
			return ErrRunExists
		} else if !errors.Is(err, ErrUnknownRun) {
			return err
		}
		seq, err := w.addRun(row)
		if err != nil {
			return err
		}
		w.runs[r.ID] = runKey{seq, e.Name, w.last}
		return db.lock.name(r.ID)
	})
}

// runColumns are the columns of a run. Its first ten identify it: see [sealed].
const runColumns = `id, experiment, library_path, library_name, library_digest, planned, program,
	host, pid, started_at, spec, serves, prices, finished_at, summary`

// addRun adds the row of a run with the values of runColumns, and returns its row ID.
func (w *writer) addRun(row []any) (seq int64, err error) {
	insert := insertNext("runs", "seq", runColumns)
	if err := w.exec(insert, append([]any{w.gone["run"]}, row...)...); err != nil {
		return 0, err
	}
	if err := w.get("SELECT last_insert_rowid()", nil, &seq); err != nil {
		return 0, err
	}
	return seq, errors.Join(w.sealRow("run", seq), w.sealRow("run_spec", seq))
}

// EndRun stores that a run ended now, with a summary for people, which may be empty. A run can
// end only once.
func (db *DB) EndRun(ctx context.Context, id assay.RunID, summary json.RawMessage) error {
	if len(summary) == 0 {
		summary = json.RawMessage("null")
	}
	what := fmt.Sprintf("end run %s", id)
	return db.write(ctx, what, len(summary), func(w *writer) error { return w.endRun(id, summary) })
}

func (w *writer) endRun(id assay.RunID, summary json.RawMessage) error {
	k, err := w.run(id)
	if err != nil {
		return err
	}
	var n int
	query := "SELECT count(*) FROM runs WHERE seq = ? AND finished_at IS NOT NULL"
	if err := w.get(query, []any{k.seq}, &n); err != nil {
		return err
	}
	if n > 0 {
		return ErrRunEnded
	}
	err = w.exec("UPDATE runs SET finished_at = ?, summary = ? WHERE seq = ?",
		time.Now(), string(summary), k.seq)
	if err != nil {
		return err
	}
	if err := w.sealRow("run_end", k.seq); err != nil {
		return err
	}
	query = "SELECT count(*) FROM attempts WHERE run = ? AND id > ?"
	if err := w.get(query, []any{k.seq, k.before}, &n); err != nil {
		return err
	}
	return w.countRun(k.seq, n)
}

// countRun stores how many attempts a finished run has. Without this count, attempts lost to
// truncation would leave no trace.
func (w *writer) countRun(seq int64, attempts int) error {
	if err := w.exec(insertSQL("run_counts", "run, attempts"), seq, attempts); err != nil {
		return err
	}
	return w.sealRow("run_count", seq)
}

// run returns the key of a run that has begun.
func (w *writer) run(id assay.RunID) (runKey, error) {
	if k, ok := w.runs[id]; ok {
		return k, nil
	}
	var k runKey
	query := "SELECT seq, experiment FROM runs WHERE id = ?"
	err := w.get(query, []any{string(id)}, &k.seq, &k.experiment)
	if errors.Is(err, sql.ErrNoRows) {
		return k, fmt.Errorf("%w %q", ErrUnknownRun, id)
	}
	if err == nil {
		w.runs[id] = k
	}
	return k, err
}

// Experiments returns the experiments by name, each in the state with which its latest run
// began.
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
		e.Run, e.UpdatedAt = r.run.ID, r.run.StartedAt
		latest[e.Name] = &e
	}
	experiments := make([]Experiment, 0, len(latest))
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		experiments = append(experiments, *latest[name])
	}
	return experiments, nil
}

// Unplanned counts the attempts that were made for an experiment at trials that are not in its
// plan, and these trials. Readers that go by the plan do not show them. They exist if an earlier
// run, or a run of a store that was merged, had another plan.
func (db *DB) Unplanned(
	ctx context.Context, experiment string, planned func(assay.TrialID) bool,
) (attempts, trials int, err error) {
	seen := make(map[assay.TrialID]bool)
	// Without an index, SQLite reads the table in order. With it, it would look up each row.
	query := `SELECT trial FROM attempts NOT INDEXED
		WHERE run IN (SELECT seq FROM runs WHERE experiment = ?)`
	err = eachRaw(ctx, db.reader, query, []any{experiment}, func(row []any) (bool, error) {
		if id := trialIDOf(row[0]); !planned(id) {
			attempts++
			seen[id] = true
		}
		return true, nil
	})
	return attempts, len(seen), db.wrap(err)
}

// Runs returns the runs of an experiment, oldest first. If the experiment is empty, it returns
// all runs.
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

// Plans returns each run's experiment as it was when the run began.
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

// storedRuns is [DB.Runs] with the experiments. It leaves out a run, the text of its experiment, or
// its end if it is not proved.
func (db *DB) storedRuns(ctx context.Context, experiment string) (all []storedRun, err error) {
	unproved := make(map[string]map[int64]bool)
	for _, of := range []string{"run", "run_spec", "run_end"} {
		if unproved[of], err = db.unproved(ctx, of); err != nil {
			return nil, err
		}
	}
	query := "SELECT seq, " + runColumns + " FROM runs WHERE ?1 IN ('', experiment) ORDER BY seq"
	visit := func(rows *sql.Rows) (bool, error) {
		var r storedRun
		seq, err := r.scan(rows)
		if unproved["run"][seq] || err != nil && unproved["run_end"][seq] {
			return true, nil
		}
		if err != nil {
			err = fmt.Errorf("run %s: %w: %w", r.run.ID, ErrDamaged, err)
			if err := db.skip("run", err, seq); err != nil {
				return false, hinted(err, doRescue)
			}
			return true, nil
		}
		if e := &r.experiment; unproved["run_spec"][seq] {
			e.Spec, e.Serves, e.Prices = json.RawMessage("null"), nil, nil
		}
		if unproved["run_end"][seq] {
			r.run.FinishedAt, r.run.Summary = time.Time{}, nil
		}
		all = append(all, r)
		return true, nil
	}
	return all, db.wrap(each(ctx, db.reader, query, []any{experiment}, visit))
}

// scan reads a row of [DB.storedRuns] and returns its row ID.
func (s *storedRun) scan(rows *sql.Rows) (seq int64, err error) {
	r, e := &s.run, &s.experiment
	var summary, serves, prices []byte
	err = rows.Scan(&seq, &r.ID, &r.Experiment, &e.Library.Path, &e.Library.Name,
		&e.Library.Digest, &e.Planned, &r.Program, &r.Host, &r.PID, timeScanner{&r.StartedAt},
		(*[]byte)(&e.Spec), &serves, &prices, timeScanner{&r.FinishedAt}, &summary)
	if !r.FinishedAt.IsZero() {
		r.Summary = summary
	}
	e.Name = r.Experiment
	if json.Unmarshal(serves, &e.Serves) != nil || len(e.Serves) == 0 {
		e.Serves = nil
	}
	if string(prices) != "{}" {
		e.Prices = prices
	}
	return seq, err
}

// Models returns the models that have attempts, sorted.
func (db *DB) Models(ctx context.Context) ([]string, error) {
	query := "SELECT DISTINCT model FROM trials ORDER BY model"
	all, err := values[string](ctx, db.reader, query)
	return all, db.wrap(err)
}

// Used reports whether an attempt was made on a lane.
func (db *DB) Used(ctx context.Context, lane string) (used bool, err error) {
	const query = "SELECT EXISTS (SELECT 1 FROM attempts WHERE lane = ?)"
	return used, db.wrap(db.reader.QueryRowContext(ctx, query, lane).Scan(&used))
}

// Variants returns the variants that have attempts, sorted.
func (db *DB) Variants(ctx context.Context) ([]string, error) {
	query := "SELECT DISTINCT variant FROM trials ORDER BY variant"
	all, err := values[string](ctx, db.reader, query)
	return all, db.wrap(err)
}
