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
	// FinishedAt is zero, and Summary empty, if the run has not ended, was killed, or could not write
	// its end.
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
	if len(e.Prices) == 0 {
		e.Prices = json.RawMessage("{}")
	}
	what := fmt.Sprintf("begin run %s", r.ID)
	r.Experiment = e.Name
	begun := storedRun{
		r, e.Library.Path, e.Library.Name, e.Library.Digest, e.Planned, e.Spec, e.Serves, e.Prices,
	}
	row, err := rowOf(slices.Concat(runFields, specFields), &begun)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrInvalid, err)
	}
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

// The columns of the tables runs, specs and ends without the ones that name the run, and without
// the number of attempts, which is not in a Run.
const (
	runColumns = `id, experiment, library_path, library_name, library_digest, planned, program,
		host, pid, started_at`
	specColumns = "spec, serves, prices"
	endColumns  = "finished_at, summary"
)

var (
	runFields  = fieldsOf[storedRun](runColumns)
	specFields = fieldsOf[storedRun](specColumns)
	endFields  = fieldsOf[storedRun](endColumns)
)

// addRun adds a run with the values of runColumns and specColumns, and returns its row ID.
func (w *writer) addRun(row []any) (seq int64, err error) {
	run, spec := row[:len(runFields)], row[len(runFields):]
	if seq, err = w.add("runs", run...); err != nil {
		return 0, err
	}
	_, err = w.addAt(seq, "specs", append([]any{row[0]}, spec...)...)
	return seq, err
}

// EndRun stores that a run ended now, with a summary for people, which may be empty. A run can
// end only once.
func (db *DB) EndRun(ctx context.Context, id assay.RunID, summary json.RawMessage) error {
	if len(summary) == 0 {
		summary = json.RawMessage("null")
	}
	what := fmt.Sprintf("end run %s", id)
	return db.write(ctx, what, len(summary), func(w *writer) error {
		k, err := w.run(id)
		if err != nil {
			return err
		}
		var ended, attempts int
		query := `SELECT (SELECT count(*) FROM ends WHERE seq = ?1),
			(SELECT count(*) FROM attempts WHERE run = ?1 AND id > ?2)`
		if err := w.get(query, []any{k.seq, k.before}, &ended, &attempts); err != nil {
			return err
		}
		if ended > 0 {
			return ErrRunEnded
		}
		_, err = w.addAt(k.seq, "ends", string(id), time.Now(), string(summary), attempts)
		return err
	})
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
		e := r.experiment()
		old := latest[e.Name]
		e.CreatedAt = r.StartedAt
		if old != nil {
			e.CreatedAt, e.Plans = old.CreatedAt, old.Plans
		}
		if p := (named{e.Name, e.plan()}); !plans[p] && !e.Lost() {
			plans[p] = true
			e.Plans++
		}
		e.Run, e.UpdatedAt = r.ID, r.StartedAt
		latest[e.Name] = &e
	}
	experiments := make([]Experiment, 0, len(latest))
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		experiments = append(experiments, *latest[name])
	}
	return experiments, nil
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
		runs[i] = r.Run
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
		plans[r.ID] = r.experiment()
	}
	return plans, nil
}

// A storedRun is a run with its experiment as it was when the run began.
type storedRun struct {
	Run
	LibraryPath   string              `json:"library_path"`
	LibraryName   string              `json:"library_name"`
	LibraryDigest string              `json:"library_digest"`
	Planned       int                 `json:"planned"`
	Spec          json.RawMessage     `json:"spec"`
	Serves        map[string][]string `json:"serves"`
	Prices        json.RawMessage     `json:"prices"`
}

func (r *storedRun) experiment() Experiment {
	e := Experiment{
		Name:    r.Experiment,
		Spec:    r.Spec,
		Library: Library{r.LibraryPath, r.LibraryName, r.LibraryDigest},
		Planned: r.Planned,
		Serves:  r.Serves,
	}
	if string(r.Prices) != "{}" {
		e.Prices = r.Prices
	}
	return e
}

// storedRuns is [DB.Runs] with the experiments. It leaves out a run, the text of its experiment, or
// its end if it is not proved.
func (db *DB) storedRuns(ctx context.Context, experiment string) (all []*storedRun, err error) {
	in := newInterned()
	runs := make(map[int64]*storedRun)
	_, err = db.eachProved(ctx, "runs", func(seq int64, row []any) error {
		r := &storedRun{Spec: json.RawMessage("null")}
		if err := loadRow(runFields, r, row, in); err != nil {
			return err
		}
		runs[seq] = r
		if experiment == "" || r.Experiment == experiment {
			all = append(all, r)
		}
		return nil
	})
	for _, part := range []struct {
		table  string
		fields []field
	}{{"specs", specFields}, {"ends", endFields}} {
		if err != nil {
			return nil, err
		}
		_, err = db.eachProved(ctx, part.table, func(seq int64, row []any) error {
			if runs[seq] == nil {
				return nil
			}
			return loadRow(part.fields, runs[seq], row[1:][:len(part.fields)], in)
		})
	}
	return all, err
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
