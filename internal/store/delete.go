package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A Choice selects the attempts to delete. Empty fields select everything.
type Choice struct {
	Experiment string `json:"experiment,omitempty"`
	Model      string `json:"model,omitempty"`
	// Before selects attempts that ended before that time.
	Before time.Time `json:"before,omitzero"`
	// Levels select outcomes of these levels and no faults.
	Levels []assay.Level `json:"levels,omitempty"`
	// Where describes conditions that the caller has evaluated, for the record, and Only has the
	// attempts that satisfy them. Without Where, Only is ignored.
	Where []string `json:"where,omitempty"`
	Only  []Key    `json:"-"`
	// Transcripts deletes only the transcripts of the selected attempts.
	Transcripts bool `json:"transcripts_only,omitempty"`
}

// A Key identifies an attempt: its trial and its number.
type Key struct {
	Trial  assay.TrialID
	Number int
}

// Deleted counts the rows of a deletion.
type Deleted struct {
	Attempts    int `json:"attempts"`
	Outcomes    int `json:"outcomes"`
	Transcripts int `json:"transcripts"`
	// Bytes is the stored size of the transcripts. The file does not shrink: later rows use the
	// space, and a backup leaves it out.
	Bytes int64 `json:"bytes"`
	// CostUSD is what the attempts have cost, as far as it is known, with their simulated users.
	CostUSD float64 `json:"cost_usd"`
	// CostUnknown counts the attempts whose costs are not all known.
	CostUnknown int `json:"cost_unknown_attempts,omitempty"`
	// Trials counts trials that have no attempt left.
	Trials int `json:"trials"`
	Runs   int `json:"runs"`
	// Shared counts deleted outcomes of trials that runs of other experiments tried too. The
	// trials are pending again for these experiments. They are also pending for experiments
	// that plan them and never tried them because they were settled: see [DB.Losing].
	Shared int `json:"shared"`
}

// where returns the choice as a condition on attempts a, trials t and runs r.
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
		// Up to the seconds, the texts sort like the times.
		add("substr(a.finished_at, 1, 19) < substr(?, 1, 19)", at)
	}
	if len(c.Levels) > 0 {
		marks := strings.TrimSuffix(strings.Repeat("?, ", len(c.Levels)), ", ")
		add("a.level IN (" + marks + ")")
		for _, l := range c.Levels {
			args = append(args, string(l))
		}
	}
	if len(c.Where) > 0 {
		only := make([]string, len(c.Only))
		for i, k := range c.Only {
			only[i] = fmt.Sprint(k.Trial, " ", k.Number)
		}
		text, err := json.Marshal(only)
		if err != nil {
			return "", nil, err
		}
		add("lower(hex(a.trial)) || ' ' || a.number IN (SELECT value FROM json_each(?))", string(text))
	}
	return strings.Join(terms, " AND "), args, nil
}

const chosenFrom = ` FROM attempts a JOIN trials t ON t.id = a.trial JOIN runs r ON r.seq = a.run
	WHERE `

// Preview returns the counts of a [DB.Delete] without deleting.
func (db *DB) Preview(ctx context.Context, c Choice) (d Deleted, err error) {
	where, args, err := c.where()
	if err != nil {
		return d, err
	}
	priced, err := db.priced(ctx)
	if err != nil {
		return d, err
	}
	return c.count(ctx, db.reader, priced, "SELECT a.id"+chosenFrom+where, args)
}

// Losing returns the trials whose last outcome would be deleted. They would be pending again for
// every experiment that plans them, even if its runs never tried them.
func (db *DB) Losing(ctx context.Context, c Choice) (Set, error) {
	where, args, err := c.where()
	if err != nil || c.Transcripts {
		return Set{}, err
	}
	query := "SELECT a.trial" + chosenFrom + where + " AND a.level <> '' " +
		"EXCEPT SELECT trial FROM attempts WHERE level <> '' AND id NOT IN (SELECT a.id" +
		chosenFrom + where + ") ORDER BY 1"
	return db.keys(ctx, query, slices.Concat(args, args)...)
}

// count counts the rows that are deleted with the attempts that a query selects.
func (c Choice) count(
	ctx context.Context, q querier, by pricing, chosen string, args []any,
) (d Deleted, err error) {
	scan := func(query string, to ...any) {
		if err == nil {
			query = "WITH chosen AS MATERIALIZED (" + chosen + ") " + query
			err = q.QueryRowContext(ctx, query, args...).Scan(to...)
		}
	}
	scan("SELECT count(*), ifnull(sum(length(body)), 0) FROM transcripts WHERE attempt IN chosen",
		&d.Transcripts, &d.Bytes)
	if c.Transcripts {
		return d, err
	}
	scan(`SELECT count(*), ifnull(sum(level <> ''), 0), total(`+by.of("cost_usd")+`) + total(`+
		by.of("user_cost_usd")+`) + total(judge_cost_usd), ifnull(sum(a.unmetered OR judge_unpriced_tokens > 0
		OR `+by.of("unpriced_tokens")+` > 0 OR `+by.of("user_unpriced_tokens")+` > 0), 0)
		FROM attempts a`+by.join()+` WHERE a.id IN chosen`, &d.Attempts, &d.Outcomes, &d.CostUSD, &d.CostUnknown)
	d.CostUSD = assay.RoundUSD(d.CostUSD)
	scan(`SELECT count(*) FROM (SELECT trial FROM attempts WHERE id IN chosen
		EXCEPT SELECT trial FROM attempts WHERE id NOT IN chosen)`, &d.Trials)
	scan(`SELECT count(*) FROM attempts a JOIN runs r ON r.seq = a.run
		WHERE a.id IN chosen AND a.level <> '' AND EXISTS (
			SELECT 1 FROM attempts o JOIN runs p ON p.seq = o.run
			WHERE o.trial = a.trial AND p.experiment <> r.experiment AND o.id NOT IN chosen
		)`, &d.Shared)
	if c.wholeExperiment() && err == nil {
		query := "SELECT count(*) FROM runs WHERE experiment = ?"
		err = q.QueryRowContext(ctx, query, c.Experiment).Scan(&d.Runs)
	}
	return d, err
}

// wholeExperiment reports whether the choice is a whole experiment, including its runs.
func (c Choice) wholeExperiment() bool {
	return c.Experiment != "" && c.Model == "" && c.Before.IsZero() && len(c.Levels) == 0 &&
		len(c.Where) == 0 && !c.Transcripts
}

// Delete deletes everything that c selects. If it fails, all rows stay. It keeps a record, so that
// the missing rows do not look like damage. Snapshots from before are no longer known, unless
// only transcripts were deleted.
func (db *DB) Delete(ctx context.Context, c Choice, program string) (d Deleted, err error) {
	if c.Experiment == "" && c.Model == "" && c.Before.IsZero() && len(c.Levels) == 0 &&
		len(c.Where) == 0 {
		return d, fmt.Errorf("%w: nothing is selected", ErrInvalid)
	}
	where, args, err := c.where()
	if err != nil {
		return d, err
	}
	if ctx.Err() != nil {
		return d, context.Cause(ctx)
	}
	// Wait for the result even if ctx ends, because "the result is unknown" would not help a
	// user. The wait is short: delete stops when ctx ends.
	err = db.write(context.WithoutCancel(ctx), "delete", 0, func(w *writer) (err error) {
		d, err = w.delete(ctx, c, where, args, program)
		return err
	})
	if err != nil {
		return Deleted{}, err
	}
	return d, nil
}

// delete returns an error, which rolls everything back, if ctx ends before the last row is gone.
func (w *writer) delete(
	ctx context.Context, c Choice, where string, args []any, program string,
) (d Deleted, err error) {
	exec := func(query string, args ...any) {
		if err == nil {
			err = w.exec(query, args...)
		}
	}
	exec("CREATE TEMP TABLE chosen_attempts (id INTEGER PRIMARY KEY)")
	exec("INSERT INTO chosen_attempts SELECT a.id"+chosenFrom+where, args...)
	if err != nil {
		return d, err
	}
	d, err = c.count(w.ctx, w.conn, latestPrices, "SELECT id FROM chosen_attempts", nil)
	if err != nil || d == (Deleted{}) { // no record is needed
		exec("DROP TABLE chosen_attempts")
		return d, err
	}
	deletion, err := w.recordDeletion(c, d, program)
	if err != nil {
		return d, err
	}

	triggers, err := w.liftTriggers()
	if err != nil {
		return d, err
	}
	if c.Transcripts {
		exec("INSERT INTO dropped SELECT attempt, ? FROM transcripts WHERE "+ofChosen, deletion)
		exec("DELETE FROM transcripts WHERE " + ofChosen)
	} else {
		err = w.deleteRows(ctx, c)
	}
	for _, text := range triggers {
		exec(text)
	}

	exec("DROP TABLE chosen_attempts")
	if err == nil {
		err = w.learnLast()
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	clear(w.runs)
	return d, err
}

// ofChosen is a condition for rows of the selected attempts.
const ofChosen = "attempt IN (SELECT id FROM chosen_attempts)"

// A condition selects rows of a table that go with a deletion.
type condition struct{ table, where string }

// conditions returns the rows with seals that go with the selected attempts. Its argument is the
// experiment.
func (c Choice) conditions() []condition {
	all := []condition{
		{"scores", ofChosen},
		{"classifications", ofChosen},
		{"costs", ofChosen},
		{"attempts", "id IN (SELECT id FROM chosen_attempts)"},
	}
	if c.wholeExperiment() {
		const ofRuns = "seq IN (SELECT seq FROM runs WHERE experiment = ?1)"
		all = append(all,
			condition{"controls", "run IN (SELECT seq FROM runs WHERE experiment = ?1)"},
			condition{"libraries", `digest NOT IN
				(SELECT library_digest FROM runs WHERE experiment <> ?1)`},
			condition{"specs", ofRuns},
			condition{"ends", ofRuns},
			condition{"runs", "experiment = ?1"})
	}
	return all
}

// recordDeletion records a deletion by a user with the rows that are about to go, as stretches of
// IDs, and returns the record's row ID.
func (w *writer) recordDeletion(c Choice, d Deleted, program string) (int64, error) {
	record := struct {
		Choice
		Deleted Deleted          `json:"deleted"`
		Rows    map[string]spans `json:"rows,omitempty"`
	}{c, d, make(map[string]spans)}
	for _, t := range c.conditions() {
		if c.Transcripts {
			break
		}
		rows, err := collect(w.ctx, w.conn, `SELECT min(id), max(id)
			FROM (SELECT rowid AS id, rowid - row_number() OVER (ORDER BY rowid) AS stretch
				FROM `+t.table+` WHERE `+t.where+`)
			GROUP BY stretch ORDER BY 1`, []any{c.Experiment}, func(s *span) []any {
			return []any{&s.First, &s.Last}
		})
		if err != nil {
			return 0, err
		}
		if len(rows) > 0 {
			record.Rows[t.table] = rows
		}
	}
	what, err := json.Marshal(record)
	if err != nil {
		return 0, err
	}
	return w.add("deletions", time.Now(), program, string(what))
}

// liftTriggers drops the triggers that keep rows, and returns their texts.
func (w *writer) liftTriggers() (texts map[string]string, err error) {
	query := "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
	texts, err = table[string, string](w.ctx, w.conn, query)
	for name := range texts {
		if err == nil {
			err = w.exec("DROP TRIGGER " + name)
		}
	}
	return texts, err
}

// deleteRows deletes the selected attempts and everything that depends on them.
func (w *writer) deleteRows(ctx context.Context, c Choice) error {
	if err := w.lowerEnds(); err != nil {
		return err
	}
	for _, table := range []string{"transcripts", "dropped", "attempt_seals"} {
		if err := w.exec("DELETE FROM " + table + " WHERE " + ofChosen); err != nil {
			return err
		}
	}
	for _, t := range c.conditions() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		rows := " FROM " + t.table + " WHERE " + t.where
		seals := "DELETE FROM seals WHERE of = ?2 AND id IN (SELECT rowid" + rows + ")"
		if err := w.exec(seals, c.Experiment, t.table); err != nil {
			return err
		}
		if err := w.exec("DELETE"+rows, c.Experiment); err != nil {
			return err
		}
	}
	return w.exec("DELETE FROM trials WHERE id NOT IN (SELECT trial FROM attempts)")
}

// lowerEnds subtracts the selected attempts from the counts of the runs that have ended.
func (w *writer) lowerEnds() error {
	runs, err := values[int64](w.ctx, w.conn, `UPDATE ends SET attempts = max(0, attempts - n)
		FROM (SELECT run AS of, count(*) AS n FROM attempts
			WHERE id IN (SELECT id FROM chosen_attempts) GROUP BY run)
		WHERE seq = of RETURNING seq`)
	if err != nil {
		return err
	}
	for _, run := range runs {
		if err := w.exec("DELETE FROM seals WHERE of = 'ends' AND id = ?", run); err != nil {
			return err
		}
		if err := w.seal("ends", run); err != nil {
			return err
		}
	}
	return nil
}
