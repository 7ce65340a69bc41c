package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// Backup copies the store as it is now to a new file, also while a run writes to
// it. The copy appears whole or not at all. It returns the copy's snapshot.
func (db *DB) Backup(ctx context.Context, path string) (snapshot string, err error) {
	if _, err := os.Lstat(path); err == nil {
		return "", hinted(fmt.Errorf("%s %w", path, ErrExists), "nothing was written; name a file that is not there")
	}
	part := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"-part")
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("backup: %w", err)
	}
	defer func() {
		if gone := os.Remove(part); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}()
	if err := db.copyTo(ctx, part); err != nil {
		return "", explain(part, fmt.Errorf("backup: %w", err))
	}
	copied, err := OpenReadOnly(ctx, part)
	if err != nil {
		return "", fmt.Errorf("read the backup: %w", err)
	}
	snapshot, err = copied.Snapshot(ctx)
	if err = errors.Join(err, copied.Close()); err != nil {
		return "", fmt.Errorf("read the backup: %w", err)
	}
	return snapshot, place(part, path)
}

// place gives a file that is whole its name. Unlike a rename, a link never takes the
// place of a file that came up meanwhile; not every file system has links.
func place(part, path string) error {
	err := os.Link(part, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = os.Rename(part, path)
	}
	if err != nil {
		return fmt.Errorf("store: %w", err)
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
	// tried too: these owe them again.
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
	err = db.do(ctx, 0, func(w *writer) (err error) {
		d, err = w.delete(c, where, args, program)
		return err
	})
	if err != nil {
		return Deleted{}, fmt.Errorf("delete: %w", err)
	}
	return d, nil
}

func (w *writer) delete(c Choice, where string, args []any, program string) (d Deleted, err error) {
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
	if d, err = c.count(w.ctx, w.conn, "SELECT id FROM chosen_attempts", nil); err != nil {
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
		err = w.dropTranscripts(deletion)
	} else {
		err = w.deleteRows(c, deletion)
	}
	for _, text := range triggers {
		exec(text)
	}
	exec("DROP TABLE chosen_attempts")
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
func (w *writer) dropTranscripts(deletion int64) error {
	type drop struct {
		id     int64
		digest []byte
	}
	dec, err := w.decoder()
	if err != nil {
		return err
	}
	for {
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
}

// deleteRows deletes the chosen attempts with all that hangs on them.
func (w *writer) deleteRows(c Choice, deletion int64) error {
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
		tables = append(tables, table{"lane_limits", "id", "", runs}, table{"controls", "id", "", runs}, table{"runs", "seq", "run", "experiment = ?1"})
	}
	for _, t := range tables {
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
	for _, s := range gone {
		if _, err := w.conn.ExecContext(w.ctx, "INSERT INTO deleted (deletion, of, first, last) VALUES (?, ?, ?, ?)", deletion, of, s.first, s.last); err != nil {
			return err
		}
		if _, err := w.conn.ExecContext(w.ctx, "DELETE FROM seals WHERE (of = ?1 OR of LIKE ?1 || '\\_%' ESCAPE '\\') AND id BETWEEN ?2 AND ?3", of, s.first, s.last); err != nil {
			return err
		}
	}
	return nil
}
