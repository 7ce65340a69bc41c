package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// Backup copies the store as it is now to a new file, also while a run writes to
// it. The copy appears whole or not at all, and is as private as the store. It returns
// the copy's snapshot. A store that is known to be damaged is [ErrDamaged]: nothing
// would keep a run from writing to the copy.
func (db *DB) Backup(ctx context.Context, path string) (snapshot string, err error) {
	mode, err := strictest(db.path)
	if err != nil {
		return "", err
	}
	t, err := newTarget(path, mode)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	// Before, to say so at once, and after, for somebody may have found out meanwhile.
	if err := db.refuseDamaged(ctx); err != nil {
		return "", err
	}
	if err := db.copyTo(ctx, t.part); err != nil {
		return "", explain(db.path, fmt.Errorf("backup: %w", err))
	}
	if err := db.refuseDamaged(ctx); err != nil {
		return "", err
	}
	copied, err := OpenReadOnly(ctx, t.part)
	if err != nil {
		return "", fmt.Errorf("read the backup: %w", err)
	}
	snapshot, err = copied.Snapshot(ctx)
	if err = errors.Join(err, copied.Close()); err != nil {
		return "", fmt.Errorf("read the backup: %w", err)
	}
	return snapshot, t.place()
}

func (db *DB) refuseDamaged(ctx context.Context) error {
	if err := refuseDamaged(ctx, db.reader, db.path); err != nil {
		return explain(db.path, fmt.Errorf("backup: %w", err))
	}
	return nil
}

// copyTo needs a connection that may write, if not to the store.
func (db *DB) copyTo(ctx context.Context, path string) error {
	conn, err := sql.Open("sqlite", dsn(db.path, "mode=ro", readCache))
	if err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, "VACUUM INTO ?", path)
	return errors.Join(err, conn.Close(), flush(path))
}

func flush(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A Choice says what to delete. What is empty chooses all.
type Choice struct {
	Experiment string `json:"experiment,omitempty"`
	Model      string `json:"model,omitempty"`
	// Before chooses attempts that ended before then.
	Before time.Time `json:"before,omitzero"`
	// Levels choose outcomes, and only these.
	Levels []assay.Level `json:"levels,omitempty"`
	// Transcripts takes away the transcripts of what is chosen, and leaves the
	// attempts.
	Transcripts bool `json:"transcripts_only,omitempty"`
}

// Deleted counts what goes, or went.
type Deleted struct {
	Attempts    int `json:"attempts"`
	Outcomes    int `json:"outcomes"`
	Transcripts int `json:"transcripts"`
	// Bytes are those of the transcripts as stored. The file does not shrink:
	// later rows take their place, and a backup leaves them out.
	Bytes int64 `json:"bytes"`
	// Trials are those of which nothing is left.
	Trials int `json:"trials"`
	Runs   int `json:"runs"`
	// Shared counts outcomes that go and whose trials runs of other experiments
	// tried too. These owe them again, and so do those of which no run tried a trial
	// because it was settled: see [DB.Losing].
	Shared int `json:"shared"`
}

// attempts returns the choice as a condition on attempts a, trials t and runs r.
func (c Choice) where() (string, []any, error) {
	terms, args := []string{"TRUE"}, []any{}
	add := func(term string, arg ...any) { terms, args = append(terms, term), append(args, arg...) }
	if c.Experiment != "" {
		add("r.experiment = ?", c.Experiment)
	}
	if c.Model != "" {
		add("t.model = ?", c.Model)
	}
	if !c.Before.IsZero() {
		at, err := formatTime(c.Before)
		if err != nil {
			return "", nil, err
		}
		// Texts of times compare as times to the second.
		add("substr(a.finished_at, 1, 19) < substr(?, 1, 19)", at)
	}
	if len(c.Levels) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(c.Levels)), ", ")
		add("a.level IN (" + marks + ")")
		for _, l := range c.Levels {
			args = append(args, string(l))
		}
	}
	return strings.Join(terms, " AND "), args, nil
}

const chosenFrom = " FROM attempts a JOIN trials t ON t.id = a.trial JOIN runs r ON r.seq = a.run WHERE "

// Preview counts what [DB.Delete] would delete.
func (db *DB) Preview(ctx context.Context, c Choice) (d Deleted, err error) {
	where, args, err := c.where()
	if err != nil {
		return d, err
	}
	return c.count(ctx, db.reader, "SELECT a.id"+chosenFrom+where, args)
}

// Losing returns the trials whose outcome goes with what is chosen. Experiments that
// plan them owe them then, whether one of their runs tried them or not.
func (db *DB) Losing(ctx context.Context, c Choice) (Set, error) {
	where, args, err := c.where()
	if err != nil || c.Transcripts {
		return Set{}, err
	}
	rows, err := db.reader.QueryContext(ctx, "SELECT a.trial"+chosenFrom+where+" AND a.level <> '' ORDER BY a.trial", args...)
	keys, err := db.collectKeys(rows, err)
	return Set{keys}, err
}

// count counts what goes with the attempts that a query chooses.
func (c Choice) count(ctx context.Context, q querier, chosen string, args []any) (d Deleted, err error) {
	scan := func(text string, to ...*int) {
		if err != nil {
			return
		}
		err = eachRaw(ctx, q, "WITH chosen AS MATERIALIZED ("+chosen+") "+text, args, func(row []any) (bool, error) {
			for i := range to {
				n, _ := row[i].(int64)
				*to[i] = int(n)
			}
			return true, nil
		})
	}
	var bytes int
	scan("SELECT count(*), ifnull(sum(length(body)), 0) FROM transcripts WHERE attempt IN chosen", &d.Transcripts, &bytes)
	d.Bytes = int64(bytes)
	if c.Transcripts {
		return d, err
	}
	scan("SELECT count(*), ifnull(sum(level <> ''), 0) FROM attempts WHERE id IN chosen", &d.Attempts, &d.Outcomes)
	scan(`SELECT count(*) FROM (SELECT trial FROM attempts WHERE id IN chosen EXCEPT SELECT trial FROM attempts WHERE id NOT IN chosen)`, &d.Trials)
	scan(`SELECT count(*) FROM attempts a JOIN runs r ON r.seq = a.run WHERE a.id IN chosen AND a.level <> ''
		AND EXISTS (SELECT 1 FROM attempts o JOIN runs p ON p.seq = o.run WHERE o.trial = a.trial AND p.experiment <> r.experiment AND o.id NOT IN chosen)`, &d.Shared)
	if c.wholeExperiment() && err == nil {
		err = eachRaw(ctx, q, "SELECT count(*) FROM runs WHERE experiment = ?", []any{c.Experiment}, func(row []any) (bool, error) {
			n, _ := row[0].(int64)
			d.Runs = int(n)
			return true, nil
		})
	}
	return d, err
}

// wholeExperiment tells whether the choice is all of an experiment, its runs too.
func (c Choice) wholeExperiment() bool {
	return c.Experiment != "" && c.Model == "" && c.Before.IsZero() && len(c.Levels) == 0 && !c.Transcripts
}

// Delete deletes what is chosen, all or nothing, and keeps a record that it did,
// so that nobody takes what is missing for a loss. Snapshots from before name
// nothing any more, unless only transcripts went.
func (db *DB) Delete(ctx context.Context, c Choice, program string) (d Deleted, err error) {
	if c.Experiment == "" && c.Model == "" && c.Before.IsZero() && len(c.Levels) == 0 {
		return d, fmt.Errorf("%w: nothing is chosen", ErrInvalid)
	}
	where, args, err := c.where()
	if err != nil {
		return d, err
	}
	if ctx.Err() != nil {
		return d, context.Cause(ctx)
	}
	// Whoever is told that nothing is known of the outcome would say it to a user who
	// can do nothing about it. It takes a moment.
	err = db.do(context.WithoutCancel(ctx), 0, func(w *writer) (err error) {
		d, err = w.delete(ctx, c, where, args, program)
		return err
	})
	if err != nil {
		return Deleted{}, fmt.Errorf("delete: %w", err)
	}
	return d, nil
}

// delete goes back on all of it if ctx ends before the last row is gone.
func (w *writer) delete(ctx context.Context, c Choice, where string, args []any, program string) (d Deleted, err error) {
	exec := func(text string, args ...any) {
		if err == nil {
			_, err = w.conn.ExecContext(w.ctx, text, args...)
		}
	}
	exec("CREATE TEMP TABLE chosen_attempts (id INTEGER PRIMARY KEY)")
	exec("INSERT INTO chosen_attempts SELECT a.id"+chosenFrom+where, args...)
	if err != nil {
		return d, err
	}
	d, err = c.count(w.ctx, w.conn, "SELECT id FROM chosen_attempts", nil)
	if err != nil || d == (Deleted{}) { // of nothing there is nothing to record
		exec("DROP TABLE chosen_attempts")
		return d, err
	}
	deletion, err := w.record(c, d, program)
	if err != nil {
		return d, err
	}
	triggers, err := w.liftTriggers()
	if err != nil {
		return d, err
	}
	if c.Transcripts {
		err = w.dropTranscripts(ctx, deletion)
	} else {
		err = w.deleteRows(ctx, c, deletion)
	}
	for _, text := range triggers {
		exec(text)
	}
	exec("DROP TABLE chosen_attempts")
	if err == nil {
		err = w.learnGone()
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	clear(w.runs)
	return d, err
}

// record keeps that something was deleted, and what.
func (w *writer) record(c Choice, d Deleted, program string) (int64, error) {
	what, err := json.Marshal(struct {
		Choice
		Deleted Deleted `json:"deleted"`
	}{c, d})
	if err != nil {
		return 0, err
	}
	return w.deletion(what, program, false)
}

// liftTriggers takes away the triggers that keep rows from being deleted, and
// returns their texts.
func (w *writer) liftTriggers() (texts []string, err error) {
	var names []string
	err = eachRaw(w.ctx, w.conn, "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND name LIKE '%\\_stay' ESCAPE '\\'", nil, func(row []any) (bool, error) {
		names, texts = append(names, fmt.Sprint(row[0])), append(texts, fmt.Sprint(row[1]))
		return true, nil
	})
	for _, name := range names {
		if err == nil {
			_, err = w.conn.ExecContext(w.ctx, "DROP TRIGGER "+name)
		}
	}
	return texts, err
}

// dropTranscripts deletes transcripts and keeps their digests, without which the
// seals of their attempts would prove nothing.
func (w *writer) dropTranscripts(ctx context.Context, deletion int64) error {
	type drop struct {
		id     int64
		digest []byte
	}
	dec, err := w.decoder()
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		var drops []drop
		err := eachRaw(w.ctx, w.conn, "SELECT attempt, body FROM transcripts WHERE attempt IN (SELECT id FROM chosen_attempts) LIMIT 1000", nil, func(row []any) (bool, error) {
			id, _ := row[0].(int64)
			body, _ := row[1].([]byte)
			text, err := dec.DecodeAll(body, nil)
			if err != nil {
				return false, damagedBody(err)
			}
			drops = append(drops, drop{id, digest(text)})
			return true, nil
		})
		if err != nil || len(drops) == 0 {
			return err
		}
		for _, d := range drops {
			if _, err := w.conn.ExecContext(w.ctx, "INSERT INTO dropped (attempt, deletion, digest) VALUES (?, ?, ?)", d.id, deletion, d.digest); err != nil {
				return err
			}
			if _, err := w.conn.ExecContext(w.ctx, "DELETE FROM transcripts WHERE attempt = ?", d.id); err != nil {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// deleteRows deletes the chosen attempts with all that hangs on them.
func (w *writer) deleteRows(ctx context.Context, c Choice, deletion int64) error {
	if err := w.discount(); err != nil {
		return err
	}
	type table struct{ name, id, of, where string }
	tables := []table{
		{"scores", "id", "score", "attempt IN (SELECT id FROM chosen_attempts)"},
		{"classifications", "id", "classification", "attempt IN (SELECT id FROM chosen_attempts)"},
		{"transcripts", "attempt", "", "attempt IN (SELECT id FROM chosen_attempts)"},
		{"dropped", "attempt", "", "attempt IN (SELECT id FROM chosen_attempts)"},
		{"attempt_seals", "attempt", "", "attempt IN (SELECT id FROM chosen_attempts)"},
		{"attempts", "id", "attempt", "id IN (SELECT id FROM chosen_attempts)"},
		{"trials", "id", "", "id NOT IN (SELECT trial FROM attempts)"},
	}
	var args []any
	if c.wholeExperiment() {
		args = []any{c.Experiment}
		runs := "run IN (SELECT seq FROM runs WHERE experiment = ?1)"
		tables = append(tables, table{"lane_limits", "id", "", runs}, table{"controls", "id", "", runs}, table{"run_counts", "run", "", runs}, table{"runs", "seq", "run", "experiment = ?1"})
	}
	for _, t := range tables {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var bound []any
		if strings.Contains(t.where, "?1") {
			bound = args
		}
		if t.of != "" {
			if err := w.recordRows(deletion, t.of, "SELECT "+t.id+" FROM "+t.name+" WHERE "+t.where+" ORDER BY 1", bound); err != nil {
				return err
			}
		}
		if _, err := w.conn.ExecContext(w.ctx, "DELETE FROM "+t.name+" WHERE "+t.where, bound...); err != nil {
			return err
		}
	}
	return w.sealDeleted(deletion)
}

// discount lowers the counts of the runs whose attempts are chosen.
func (w *writer) discount() error {
	counts := make(map[int64]int)
	err := eachRaw(w.ctx, w.conn, `SELECT c.run, max(0, c.attempts - count(*)) FROM run_counts c JOIN attempts a ON a.run = c.run
		WHERE a.id IN (SELECT id FROM chosen_attempts) GROUP BY c.run, c.attempts`, nil, func(row []any) (bool, error) {
		run, _ := row[0].(int64)
		n, _ := row[1].(int64)
		counts[run] = int(n)
		return true, nil
	})
	if err != nil {
		return err
	}
	for run, n := range counts {
		for _, text := range []string{"DELETE FROM run_counts WHERE run = ?", "DELETE FROM seals WHERE of = 'run_count' AND id = ?"} {
			if _, err := w.conn.ExecContext(w.ctx, text, run); err != nil {
				return err
			}
		}
		if err := w.countRun(run, n); err != nil {
			return err
		}
	}
	return nil
}

// recordRows keeps the IDs of rows that go, and takes away their seals.
func (w *writer) recordRows(deletion int64, of, ids string, args []any) error {
	var gone spans
	err := eachRaw(w.ctx, w.conn, ids, args, func(row []any) (bool, error) {
		id, _ := row[0].(int64)
		if n := len(gone); n > 0 && gone[n-1].last == id-1 {
			gone[n-1].last = id
		} else {
			gone = append(gone, span{id, id})
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	known, err := deletedRows(w.ctx, w.conn, of)
	if err != nil {
		return err
	}
	for _, s := range gone {
		// Stores of before have rows with the IDs of others that were deleted.
		for _, s := range known.without(s.first, s.last) {
			if _, err := w.conn.ExecContext(w.ctx, "INSERT INTO deleted (deletion, of, first, last) VALUES (?, ?, ?, ?)", deletion, of, s.first, s.last); err != nil {
				return err
			}
		}
		if _, err := w.conn.ExecContext(w.ctx, "DELETE FROM seals WHERE (of = ?1 OR of LIKE ?1 || '\\_%' ESCAPE '\\') AND id BETWEEN ?2 AND ?3", of, s.first, s.last); err != nil {
			return err
		}
	}
	return nil
}
