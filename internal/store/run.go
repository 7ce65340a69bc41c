package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// An Experiment is what was stored under one name.
type Experiment struct {
	Name string `json:"name"`
	// Spec is the experiment's file as JSON.
	Spec    json.RawMessage `json:"spec"`
	Library Library         `json:"library"`
	// Planned counts the trials of the whole plan.
	Planned int `json:"planned"`
	// Serves has, for each model, the names that a response may bear.
	Serves map[string][]string `json:"serves,omitempty"`
	// CreatedAt and UpdatedAt are the starts of its first and its latest run.
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

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
		res, err := w.conn.ExecContext(w.ctx, `INSERT INTO runs (id, experiment, spec, library_path, library_name, library_digest,
			planned, program, host, pid, started_at, serves) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			string(r.ID), e.Name, string(e.Spec), e.Library.Path, e.Library.Name, e.Library.Digest,
			e.Planned, r.Program, r.Host, r.PID, started, string(serves))
		if err := w.sealNew("run", res, err); err != nil {
			return err
		}
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
		return w.sealRow("run_end", k.seq)
	})
	if err != nil {
		return fmt.Errorf("end run %s: %w", id, err)
	}
	return nil
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
	rows, err := db.reader.QueryContext(ctx, `SELECT experiment, spec, library_path, library_name, library_digest, planned, started_at,
		(SELECT started_at FROM runs f WHERE f.experiment = r.experiment ORDER BY seq LIMIT 1)
		FROM runs r WHERE seq IN (SELECT max(seq) FROM runs GROUP BY experiment) ORDER BY experiment`)
	return collect(db, rows, err, func(e *Experiment) error {
		var spec, updated, created string
		err := rows.Scan(&e.Name, &spec, &e.Library.Path, &e.Library.Name, &e.Library.Digest, &e.Planned, &updated, &created)
		e.Spec = json.RawMessage(spec)
		return errors.Join(err, e.UpdatedAt.UnmarshalText([]byte(updated)), e.CreatedAt.UnmarshalText([]byte(created)))
	})
}

// Runs returns the runs of an experiment, or all for "", oldest first.
func (db *DB) Runs(ctx context.Context, experiment string) ([]Run, error) {
	rows, err := db.reader.QueryContext(ctx, `SELECT id, experiment, program, host, pid, started_at, finished_at, summary
		FROM runs WHERE ?1 IN ('', experiment) ORDER BY seq`, experiment)
	return collect(db, rows, err, func(r *Run) error {
		var started string
		var finished, summary sql.NullString
		if err := rows.Scan(&r.ID, &r.Experiment, &r.Program, &r.Host, &r.PID, &started, &finished, &summary); err != nil {
			return err
		}
		if finished.Valid {
			r.Summary = json.RawMessage(summary.String)
			if err := r.FinishedAt.UnmarshalText([]byte(finished.String)); err != nil {
				return err
			}
		}
		return r.StartedAt.UnmarshalText([]byte(started))
	})
}

// Plans returns each run's experiment as it was when the run began. A text that
// cannot be read leaves its field empty.
func (db *DB) Plans(ctx context.Context) (map[assay.RunID]Experiment, error) {
	type planned struct {
		run        assay.RunID
		experiment Experiment
	}
	rows, err := db.reader.QueryContext(ctx, "SELECT id, experiment, spec, library_path, library_name, library_digest, planned, serves FROM runs")
	all, err := collect(db, rows, err, func(p *planned) error {
		var spec, serves string
		e := &p.experiment
		err := rows.Scan(&p.run, &e.Name, &spec, &e.Library.Path, &e.Library.Name, &e.Library.Digest, &e.Planned, &serves)
		e.Spec = json.RawMessage(spec)
		if json.Unmarshal([]byte(serves), &e.Serves) != nil {
			e.Serves = nil
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	plans := make(map[assay.RunID]Experiment, len(all))
	for _, p := range all {
		plans[p.run] = p.experiment
	}
	return plans, nil
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
