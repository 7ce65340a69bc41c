package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// A Problem is something in a store that should not be there, or is missing.
type Problem struct {
	// Check names the law that is broken.
	Check string `json:"check"`
	// Where names the rows, and What describes the problem.
	Where string `json:"where"`
	What  string `json:"what"`
	// Do is advice to the user: the code of a hint, or words.
	Do string `json:"do"`
	// Damage means that the store is not as it was written. Other problems were written that
	// way, and contradict something the program knows from elsewhere.
	Damage bool `json:"damage"`
}

// Worded returns a problem of the store at a path with the words of its advice.
func (p Problem) Worded(words assay.Words, path string) Problem {
	p.Do = cmp.Or(words(assay.Hint(p.Do), assay.StorePath(path), path), p.Do)
	return p
}

func (p Problem) String() string { return p.Check + ": " + p.Where + ": " + p.What }

// Advice against damage.
const (
	doRecover = string(assay.HintRecover)
	doRestore = "go back to a backup; the original cannot be known"
)

// Proof counts the rows that [DB.Verify] checked.
type Proof struct {
	Trials, Attempts, Outcomes, Transcripts int
	// Dropped transcripts and Deleted attempts were deleted by a user.
	Dropped, Deleted int
	// Lost counts transcripts that were missing when a recovery kept their attempts.
	Lost int
	// Unfinished counts the attempts in the journal, Replies their replies, and Torn the bytes at its end
	// that a power cut has left, and that say nothing that was acted on.
	Unfinished, Replies int
	Torn                int64
}

// Verify checks the store for consistency: the file and its schema, each row against its seal, each
// trial against its ID, that no attempts are missing, and that trials are settled once in each
// round.
//
// It calls found for every problem, in one goroutine, and progress from time to time with how
// many attempts it has looked at. inspect checks the content of an attempt; several goroutines
// call it. Verify does not change the store. An error means that it could not look. [ErrChanged]
// means that rows were deleted meanwhile. Ignore the problems found so far, and call it again.
func (db *DB) Verify(
	ctx context.Context, inspect func(*Stored) []Problem, found func(Problem),
	progress func(done, of int),
) (Proof, error) {
	v := newVerifier(ctx, db)
	v.inspect, v.found, v.progress = inspect, found, progress
	before, err := db.deletions(ctx)
	if err != nil && !isDamage(err) {
		return v.proof, err
	}
	for _, step := range []func() error{
		v.file, v.schema, v.begin, v.journal, v.attempts, v.runCounts, v.orphans, v.rows,
	} {
		err := step()
		if err != nil && ctx.Err() == nil && isDamage(err) {
			v.report("file", "a table", "cannot be read: "+firstLine(err), doRecover)
			err = nil
		}
		if err != nil {
			return v.proof, err
		}
	}
	if err := db.unchanged(ctx, before); !isDamage(err) {
		return v.proof, err
	}
	return v.proof, nil
}

// A verifier is one pass over a store.
type verifier struct {
	db       *DB
	ctx      context.Context
	inspect  func(*Stored) []Problem
	found    func(Problem)
	progress func(done, of int)
	keep     func(*checked) // called for each attempt unless nil
	proof    Proof

	last    int64                     // the highest row ID of an attempt
	deleted map[string]spans          // by table
	next    int64                     // the row ID expected next
	missing int64                     // attempts without a row that were not deleted
	trials  map[trialKey]*trialRecord // as far as they were read
	atEnd   map[string]int            // attempts that a run had when it ended
	actual  map[string]int            // attempts that a run has
}

// A trialRecord is how far a trial has got.
type trialRecord struct {
	number int // of its latest attempt
	rounds int // one more than the round of its latest outcome
}

func newVerifier(ctx context.Context, db *DB) *verifier {
	return &verifier{
		db: db, ctx: ctx, next: 1,
		trials: make(map[trialKey]*trialRecord),
		actual: make(map[string]int),
	}
}

func (v *verifier) report(check, where, what, do string) {
	v.found(Problem{check, where, what, do, true})
}

// isDamage reports whether err comes from a damaged file. If a table is missing, SQLite calls
// that an error in the query.
func isDamage(err error) bool {
	err = explain("", err)
	return errors.Is(err, ErrDamaged) || errors.Is(err, ErrDisk) ||
		primary(err) == sqlite3.SQLITE_ERROR
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// file checks the pages of the file.
func (v *verifier) file() error {
	err := eachRaw(v.ctx, v.db.reader, "PRAGMA integrity_check(100)", nil,
		func(row []any) (bool, error) {
			if text := fmt.Sprint(row[0]); text != "ok" {
				v.report("file", "its pages", text, doRecover)
			}
			return true, nil
		})
	if err != nil {
		return err
	}
	return eachRaw(v.ctx, v.db.reader, "PRAGMA foreign_key_check", nil,
		func(row []any) (bool, error) {
			text := fmt.Sprintf("row %v refers to a missing row of %v", row[1], row[2])
			v.report("reference", "table "+fmt.Sprint(row[0]), text, doRecover)
			return true, nil
		})
}

// schema compares the store's tables with the tables of a new store.
func (v *verifier) schema() error {
	wrong, err := schemaDiffers(v.ctx, v.db.reader)
	for _, w := range wrong {
		v.report("schema", w.name, w.what, string(assay.HintForeign))
	}
	return err
}

// begin finds out which attempts there should be. It reports tables that cannot be read, and
// goes on without them.
func (v *verifier) begin() (err error) {
	var sealed, dropped, lost int64
	side := func(table string, failed error) {
		if isDamage(failed) && v.ctx.Err() == nil {
			v.report("file", "table "+table, "cannot be read: "+firstLine(failed), doRecover)
		} else if err == nil {
			err = failed
		}
	}
	number := func(table, query string, to *int64) {
		side(table, v.db.reader.QueryRowContext(v.ctx, query).Scan(to))
	}
	var failed error
	// First, so that the attempts of the runs that have ended are among those read below.
	query := "SELECT run, attempts FROM ends"
	v.atEnd, failed = table[string, int](v.ctx, v.db.reader, query)
	side("ends", failed)
	v.last, failed = v.db.lastAttempt(v.ctx)
	side("attempts", failed)
	number("attempt_seals", "SELECT ifnull(max(attempt), 0) FROM attempt_seals", &sealed)
	number("dropped", "SELECT count(*) FROM dropped WHERE typeof(deletion) = 'integer'", &dropped)
	number("deletions", `SELECT count(*) FROM dropped
		WHERE deletion IN (SELECT id FROM deletions WHERE what ->> 'lost' <> '')`, &lost)
	v.deleted, failed = v.db.deletedRows(v.ctx)
	side("deletions", failed)
	v.last = max(v.last, sealed)
	v.proof.Lost, v.proof.Dropped = int(lost), int(dropped-lost)
	v.proof.Deleted = int(v.deleted["attempts"].size())
	return v.db.wrap(err)
}

// attempts checks all attempts, with several readers. Blocks are small, because a page that
// cannot be read costs the rest of its block.
func (v *verifier) attempts() error {
	take := func(b rowBlock[checked]) (bool, error) {
		if b.err != nil && (!isDamage(b.err) || v.ctx.Err() != nil) {
			return false, b.err
		}
		v.take(b)
		v.progress(int(b.last), int(v.last))
		return true, nil
	}
	err := inBlocks(v.ctx, v.db, math.MinInt64, v.last, page/10, v.read, take)
	if err == nil {
		v.gap(v.last + 1)
	}
	return err
}

// take reports the problems of a block and counts its attempts.
func (v *verifier) take(b rowBlock[checked]) {
	for _, c := range b.rows {
		if c.id > v.next {
			v.gap(c.id)
		}
		v.next = max(v.next, c.id+1)
		if v.keep != nil {
			v.keep(&c)
		}
		v.count(&c)
		for _, p := range c.problems {
			v.found(p)
		}
	}
	if b.err != nil {
		where := fmt.Sprintf("attempts with row IDs %d to %d", max(v.next, b.first), b.last)
		v.report("file", where, "cannot be read: "+firstLine(b.err), doRecover)
	}
}

// gap reports the attempts that are missing between the expected row ID and id.
func (v *verifier) gap(id int64) {
	for _, lost := range v.deleted["attempts"].without(v.next, id-1) {
		n := lost.Last - lost.First + 1
		v.missing += n
		where := fmt.Sprintf("attempts with row IDs %d to %d", lost.First, lost.Last)
		v.report("complete", where, fmt.Sprintf("%d attempts are missing", n), doRestore)
	}
	v.next = id + 1
}

// count adds an attempt to the counts, and checks its place in its trial.
func (v *verifier) count(c *checked) {
	v.proof.Attempts++
	v.actual[string(c.run)]++
	t := v.trials[c.key]
	if t == nil {
		t = new(trialRecord)
		v.trials[c.key] = t
		v.proof.Trials++
	}
	name := nameAttempt(c.key.id(), c.number)
	if c.number <= t.number || c.number > t.number+1 && v.proof.Deleted == 0 {
		v.report("numbers", name, fmt.Sprintf("follows number %d of its trial", t.number),
			doRestore)
	}
	t.number = max(t.number, c.number)

	if c.settles {
		v.proof.Outcomes++
		if c.round < t.rounds {
			v.report("settled once", name, "is a second outcome of its trial", doRestore)
		}
		t.rounds = c.round + 1
	}
	if c.transcript {
		v.proof.Transcripts++
	}
}

// runCounts compares the attempts of each run with their number when the run ended. If a store
// was cut off together with everything about the lost attempts, only that number shows it.
func (v *verifier) runCounts() error {
	total := 0
	for _, run := range slices.Sorted(maps.Keys(v.atEnd)) {
		if n := v.atEnd[run] - v.actual[run]; n > 0 {
			total += n
			what := fmt.Sprintf("%d of its %d attempts are missing", n, v.atEnd[run])
			v.report("complete", "run "+run, what, doRestore)
		}
	}
	v.missing = max(v.missing, int64(total))
	return nil
}

// orphans looks for rows that go without the rows that they need, where no foreign key shows it.
func (v *verifier) orphans() error {
	for _, q := range []struct{ check, what, from string }{
		{
			"complete", "trials have no attempt",
			"trials WHERE id NOT IN (SELECT trial FROM attempts NOT INDEXED)",
		},
		{"complete", "runs have no experiment", "runs WHERE seq NOT IN (SELECT seq FROM specs)"},
		{"reference", "seals have no attempt", "attempt_seals WHERE attempt < 1"},
		{
			"reference", "transcripts exist that are recorded as deleted",
			"dropped WHERE attempt IN (SELECT attempt FROM transcripts)",
		},
	} {
		var n int
		query := "SELECT count(*) FROM " + q.from
		if err := v.db.reader.QueryRowContext(v.ctx, query).Scan(&n); err != nil {
			return v.db.wrap(err)
		}
		if n > 0 {
			v.report(q.check, "the store", fmt.Sprintf("%d %s", n, q.what), doRestore)
		}
	}
	return nil
}
