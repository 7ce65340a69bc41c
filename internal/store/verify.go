package store

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// A Problem is something in a store that should not be.
type Problem struct {
	// Check is the law that is broken, in a word.
	Check string `json:"check"`
	// Where names the rows, and What says what is wrong with them.
	Where string `json:"where"`
	What  string `json:"what"`
	// Do says what helps.
	Do string `json:"do"`
	// Damage says that the store is not as it was written. What is no damage was
	// written so, and is wrong by what the program knows beside the store.
	Damage bool `json:"damage"`
}

func (p Problem) String() string { return p.Check + ": " + p.Where + ": " + p.What }

// What helps against damage.
const (
	doRecover = "go back to a backup, or copy what is whole with \"assay recover\""
	doRestore = "go back to a backup; nobody can tell what was there"
)

// Proof says what [DB.Verify] looked at.
type Proof struct {
	Trials, Attempts, Outcomes, Transcripts int
	// Unsealed attempts are older than seals: a change that leaves them
	// plausible would not be found.
	Unsealed int
	// Dropped transcripts and Deleted attempts went because a user said so.
	Dropped, Deleted int
}

// Verify proves the store by all that it knows of itself, and tells found of
// every problem, in one goroutine: the file and its schema, each row against its
// seal, each trial against its content, that attempts are without gaps and
// trials settled once, and that both ways to count agree. inspect looks at what an
// attempt says; it is called by several goroutines. progress is told now and
// then how many of how many attempts were looked at. Verify changes nothing. Its
// error says that it could not look, not that it found something.
func (db *DB) Verify(ctx context.Context, inspect func(*Stored) []Problem, found func(Problem), progress func(done, of int)) (Proof, error) {
	v := &verifier{
		db: db, ctx: ctx, inspect: inspect, found: found, progress: progress,
		trials: make(map[trialKey]*progressOf), cells: make(map[assay.Cell]int),
	}
	for _, step := range []func() error{v.file, v.schema, v.begin, v.attempts, v.ends, v.rows, v.counts} {
		err := step()
		if err != nil && ctx.Err() == nil && isDamage(err) {
			v.report("file", "a table", "cannot be read: "+firstLine(err), doRecover)
			err = nil
		}
		if err != nil {
			return v.proof, err
		}
	}
	return v.proof, nil
}

type verifier struct {
	db       *DB
	ctx      context.Context
	inspect  func(*Stored) []Problem
	found    func(Problem)
	progress func(done, of int)
	keep     func(*checked) // nil for nobody
	proof    Proof

	last, unsealed int64 // of attempts
	deleted        spans // of attempts
	next           int64 // the attempt that is due
	trials         map[trialKey]*progressOf
	cells          map[assay.Cell]int // outcomes
}

// progressOf is what was seen of a trial.
type progressOf struct {
	number  int // of its latest attempt
	settled bool
}

func (v *verifier) report(check, where, what, do string) {
	v.found(Problem{check, where, what, do, true})
}

// markPath is the file that says that a store is damaged.
func markPath(path string) string { return path + ".damaged" }

// MarkDamaged leaves a file beside the store with the damage that [DB.Verify] found, or
// takes it away where there is none. While it is there nobody opens the store for
// writing, and nothing that hangs on what is damaged can come into it.
func (db *DB) MarkDamaged(problems []Problem) error {
	problems = slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool { return !p.Damage })
	if len(problems) == 0 {
		if err := os.Remove(markPath(db.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("store %s: %w", db.path, err)
		}
		return nil
	}
	text, err := json.MarshalIndent(problems, "", "  ")
	if err == nil {
		err = os.WriteFile(markPath(db.path), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("mark store %s as damaged: %w", db.path, err)
	}
	return nil
}

// MarkedDamaged tells whether [DB.MarkDamaged] left its file.
func (db *DB) MarkedDamaged() bool {
	_, err := os.Stat(markPath(db.path))
	return err == nil
}

// isDamage tells whether err is of a damaged file. Where a table cannot be found
// any more SQLite calls that a mistake in the query.
func isDamage(err error) bool {
	err = explain("", err)
	return errors.Is(err, ErrDamaged) || errors.Is(err, ErrDisk) || primary(err) == sqlite3.SQLITE_ERROR
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// file looks at the pages of the file.
func (v *verifier) file() error {
	switch has, tells, err := sizes(v.ctx, v.db.reader, v.db.path); {
	case err != nil:
		return err
	case has != tells:
		v.report("file", v.db.path, fmt.Sprintf("has %d bytes, but its header tells of %d", has, tells), doRecover)
	}
	for _, pragma := range []string{"integrity_check(100)", "foreign_key_check"} {
		err := eachRaw(v.ctx, v.db.reader, "PRAGMA "+pragma, nil, func(row []any) (bool, error) {
			if text := fmt.Sprint(row[0]); text != "ok" {
				if len(row) > 1 { // of foreign_key_check
					text = fmt.Sprintf("row %v refers to a row of %v that is not there", row[1], row[2])
					v.report("reference", "table "+fmt.Sprint(row[0]), text, doRecover)
				} else {
					v.report("file", "its pages", text, doRecover)
				}
			}
			return true, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sizes returns the bytes that the main file has and those that its header tells
// of. While a log waits to be folded in they say nothing, and both are 0.
func sizes(ctx context.Context, db querier, path string) (has, tells int64, err error) {
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return 0, 0, nil
	}
	err = eachRaw(ctx, db, "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", nil, func(row []any) (bool, error) {
		tells, _ = row[0].(int64)
		return true, nil
	})
	if err != nil {
		return 0, 0, explain(path, err)
	}
	fi, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return fi.Size(), tells, nil
}

// schema compares the store's tables with those of a new store.
func (v *verifier) schema() error {
	wrong, err := schemaDiffers(v.ctx, v.db.reader)
	for _, w := range wrong {
		v.report("schema", w.name, w.what, "the file was changed by another program; "+doRecover)
	}
	return err
}

type schemaFault struct{ name, what string }

// freshSchema is what the migrations make, once.
var freshSchema = sync.OnceValues(func() (map[string]string, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	defer db.Close()
	for _, name := range migrationNames() {
		text, err := migrations.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if _, err := db.Exec(string(text)); err != nil {
			return nil, err
		}
	}
	return schemaOf(context.Background(), db)
})

func schemaOf(ctx context.Context, db querier) (map[string]string, error) {
	texts := make(map[string]string)
	err := eachRaw(ctx, db, "SELECT type || ' ' || name, ifnull(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_stat%'", nil, func(row []any) (bool, error) {
		texts[fmt.Sprint(row[0])] = fmt.Sprint(row[1])
		return true, nil
	})
	return texts, err
}

func schemaDiffers(ctx context.Context, db querier) (wrong []schemaFault, err error) {
	want, err := freshSchema()
	if err != nil {
		return nil, err
	}
	is, err := schemaOf(ctx, db)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch text, ok := is[name]; {
		case !ok:
			wrong = append(wrong, schemaFault{name, "is missing"})
		case text != want[name]:
			wrong = append(wrong, schemaFault{name, "is not as assay made it"})
		}
	}
	// Indexes and views of the user's own do no harm; a trigger may.
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if _, ok := want[name]; !ok && strings.HasPrefix(name, "trigger ") {
			wrong = append(wrong, schemaFault{name, "is not of assay"})
		}
	}
	return wrong, nil
}

// begin finds out which attempts there should be.
func (v *verifier) begin() (err error) {
	if v.last, err = v.db.lastAttempt(v.ctx); err != nil {
		return err
	}
	row := v.db.reader.QueryRowContext(v.ctx, `SELECT max(?, (SELECT ifnull(max(attempt), 0) FROM attempt_seals)),
		ifnull((SELECT last FROM unsealed WHERE of = 'attempt'), 0), (SELECT count(*) FROM dropped)`, v.last)
	if err := row.Scan(&v.last, &v.unsealed, &v.proof.Dropped); err != nil {
		return v.db.readError(err)
	}
	v.next = 1
	if v.deleted, err = v.db.deletedRows(v.ctx, "attempt"); err != nil {
		return err
	}
	v.proof.Deleted = int(v.deleted.size())
	return nil
}

// A block is a stretch of attempts and what was found in it.
type block struct {
	first, last int64
	rows        []checked
	problems    []Problem // of the reading itself
	err         error
}

// A checked attempt was compared with its seal.
type checked struct {
	id         int64
	key        trialKey
	run        assay.RunID
	number     int
	cell       assay.Cell
	settles    bool
	transcript bool
	unsealed   bool
	unreadable bool // and nothing but its id is known
	sum        sum
	finished   int64 // in nanoseconds of Unix
	problems   []Problem
}

// attempts looks at all attempts, with several readers.
func (v *verifier) attempts() error {
	err := inBlocks(v.ctx, v.last, page, v.read, func(b block) (bool, error) {
		if b.err != nil {
			return false, b.err
		}
		v.take(b)
		v.progress(int(b.last), int(v.last))
		return true, nil
	})
	if err == nil {
		v.gap(v.last + 1)
	}
	return err
}

// gap tells of the attempts between the one that was due and id.
func (v *verifier) gap(id int64) {
	for _, lost := range v.deleted.without(v.next, id-1) {
		what := fmt.Sprintf("%d attempts are missing", lost.last-lost.first+1)
		v.report("complete", fmt.Sprintf("attempts with row IDs %d to %d", lost.first, lost.last), what, doRestore)
	}
	v.next = id + 1
}

func (v *verifier) take(b block) {
	for _, p := range b.problems {
		v.found(p)
	}
	for _, c := range b.rows {
		if c.id > v.next {
			v.gap(c.id)
		}
		v.next = c.id + 1
		if v.keep != nil {
			v.keep(&c)
		}
		if c.unreadable {
			continue
		}
		v.proof.Attempts++
		t := v.trials[c.key]
		if t == nil {
			t = new(progressOf)
			v.trials[c.key] = t
		}
		name := nameAttempt(c.key.id(), c.number)
		if c.number <= t.number || c.number > t.number+1 && v.proof.Deleted == 0 {
			v.report("numbers", name, fmt.Sprintf("comes after number %d of its trial", t.number), doRestore)
		}
		t.number = max(t.number, c.number)
		if c.settles {
			v.proof.Outcomes++
			v.cells[c.cell]++
			if t.settled {
				v.report("settled once", name, "is a second outcome of its trial", doRestore)
			}
			t.settled = true
		}
		if c.transcript {
			v.proof.Transcripts++
		}
		if c.unsealed {
			v.proof.Unsealed++
		}
		for _, p := range c.problems {
			v.found(p)
		}
	}
}

const sealedSQL = `SELECT a.id, a.trial, r.id, a.number, s.sum, d.digest, x.body, `

// read checks a stretch of attempts. Where a part of it cannot be read, it goes
// on with the halves, down to one row.
func (v *verifier) read(ctx context.Context, first, last int64) (b block) {
	b = block{first: first, last: last}
	rows, err := v.check(ctx, first, last)
	switch {
	case err == nil:
		b.rows = rows
	case !isDamage(err) || ctx.Err() != nil:
		b.err = err
	case first == last:
		b.problems = []Problem{{"file", fmt.Sprintf("attempt with row ID %d", first), "cannot be read: " + firstLine(err), doRecover, true}}
		b.rows = []checked{{id: first, unreadable: true}}
	default:
		half := (first + last) / 2
		l, r := v.read(ctx, first, half), v.read(ctx, half+1, last)
		b.rows, b.problems = append(l.rows, r.rows...), append(l.problems, r.problems...)
		b.err = errors.Join(l.err, r.err)
	}
	return b
}

func (v *verifier) check(ctx context.Context, first, last int64) (all []checked, err error) {
	text := sealedSQL + "a." + strings.Join(attemptNames(), ", a.") + ` FROM attempts a NOT INDEXED
		LEFT JOIN runs r ON r.seq = a.run LEFT JOIN attempt_seals s ON s.attempt = a.id
		LEFT JOIN dropped d ON d.attempt = a.id LEFT JOIN transcripts x ON x.attempt = a.id
		WHERE a.id BETWEEN ? AND ? ORDER BY a.id`
	bodies := make(map[int64]*assay.Transcript)
	err = eachRaw(ctx, v.db.reader, text, []any{first, last}, func(row []any) (bool, error) {
		c, t := v.seal(ctx, row)
		if t != nil {
			bodies[c.id] = t
		}
		all = append(all, c)
		return true, nil
	})
	if err != nil {
		return nil, v.db.readError(err)
	}
	return all, v.content(ctx, first, last, all, bodies)
}

// seal compares a row with its seal and reads its transcript.
func (v *verifier) seal(ctx context.Context, row []any) (c checked, t *assay.Transcript) {
	id, _ := row[0].(int64)
	key, _ := row[1].([]byte)
	run, _ := row[2].(string)
	number, _ := row[3].(int64)
	c = checked{id: id, run: assay.RunID(run), number: int(number)}
	copy(c.key[:], key)
	name := nameAttempt(c.key.id(), c.number)
	complain := func(check, what, do string) {
		c.problems = append(c.problems, Problem{check, name, what, do, true})
	}
	script, _ := row[5].([]byte) // of a transcript that was dropped
	if body, ok := row[6].([]byte); ok {
		text, err := v.db.decompress(ctx, body)
		if err != nil {
			complain("transcript", "its transcript cannot be read: "+firstLine(err), doRecover)
			return c, nil
		}
		c.transcript, script, t = true, digest(text), new(assay.Transcript)
		if err := json.Unmarshal(text, t); err != nil {
			complain("transcript", "its transcript cannot be read: "+firstLine(err), doRecover)
			t = nil
		}
	}
	c.sum = identify(c.key, run, row[7:], script)
	want, ok := row[4].([]byte)
	if !ok {
		c.unsealed = id <= v.unsealed
		if !c.unsealed {
			complain("seal", "it has no seal: another program added it, or the seal is lost", doRecover)
		}
		return c, t
	}
	if is := sealAttempt(c.sum, id, number); !bytes.Equal(is[:], want) {
		what := "it is not what was saved"
		if script == nil {
			what += ", or its transcript is lost"
		}
		complain("seal", what, doRecover)
	}
	return c, t
}

// content reads the same attempts as everybody does, and looks at what they say.
func (v *verifier) content(ctx context.Context, first, last int64, all []checked, bodies map[int64]*assay.Transcript) error {
	seen := 0
	text := "SELECT id, " + resultColumns + " FROM results WHERE id BETWEEN ? AND ? ORDER BY id"
	rows, err := v.db.reader.QueryContext(ctx, text, first, last)
	if err != nil {
		return v.db.readError(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		a, err := make(lists).scanAttempt(rows, &id)
		for seen < len(all) && all[seen].id < id {
			all[seen].problems = append(all[seen].problems, Problem{"reference", nameAttempt(all[seen].key.id(), all[seen].number), "its trial or its run is missing", doRestore, true})
			seen++
		}
		if seen == len(all) {
			break // saved since
		}
		c := &all[seen]
		seen++
		name := nameAttempt(c.key.id(), c.number)
		if err != nil {
			c.problems = append(c.problems, Problem{"row", name, "cannot be read: " + firstLine(err), doRecover, true})
			continue
		}
		c.cell, c.settles, c.finished = a.Cell, a.Settles(), a.FinishedAt.UnixNano()
		if err := a.CheckID(); err != nil {
			c.problems = append(c.problems, Problem{"identity", name, "its trial's row was changed: " + err.Error(), doRestore, true})
		}
		if err := check(&a); err != nil {
			c.problems = append(c.problems, Problem{"row", name, err.Error(), doRecover, true})
		}
		c.problems = append(c.problems, v.inspect(&Stored{a, bodies[id]})...)
	}
	for ; seen < len(all); seen++ {
		all[seen].problems = append(all[seen].problems, Problem{"reference", nameAttempt(all[seen].key.id(), all[seen].number), "its trial or its run is missing", doRestore, true})
	}
	if err := rows.Err(); err != nil {
		return v.db.readError(err)
	}
	return nil
}

// ends looks for what belongs to attempts that are not there.
func (v *verifier) ends() error {
	for _, q := range []struct{ text, check, what string }{
		{"SELECT count(*) FROM trials WHERE id NOT IN (SELECT trial FROM attempts NOT INDEXED)", "complete", "trials have no attempt"},
		{"SELECT count(*) FROM transcripts WHERE attempt NOT IN (SELECT id FROM attempts)", "reference", "transcripts belong to no attempt"},
		{"SELECT count(*) FROM scores WHERE attempt NOT IN (SELECT id FROM attempts WHERE level <> '')", "reference", "later verdicts are of no outcome"},
		{"SELECT count(*) FROM classifications WHERE attempt NOT IN (SELECT id FROM attempts WHERE level <> '')", "reference", "opinions are on no outcome"},
	} {
		var n int
		if err := v.db.reader.QueryRowContext(v.ctx, q.text).Scan(&n); err != nil {
			return v.db.readError(err)
		}
		if n > 0 {
			v.report(q.check, "the store", fmt.Sprintf("%d %s", n, q.what), doRestore)
		}
	}
	return nil
}

// rows compares the rows of the other tables with their seals.
func (v *verifier) rows() error {
	for _, of := range slices.Sorted(maps.Keys(sealed)) {
		if err := v.rowsOf(of); err != nil {
			return err
		}
	}
	return nil
}

func (v *verifier) rowsOf(of string) error {
	t := sealed[of]
	deleted, err := v.db.deletedRows(v.ctx, of)
	if err != nil {
		return err
	}
	next := int64(1)
	err = v.db.eachSealed(v.ctx, of, func(r sealedRow) (bool, error) {
		if of == wholeRow(of) {
			for _, lost := range deleted.without(next, r.id-1) {
				v.report("complete", fmt.Sprintf("rows %d to %d of %s", lost.first, lost.last, t.table), "are missing", doRestore)
			}
		}
		next = r.id + 1
		if r.broken != "" {
			v.report("seal", fmt.Sprintf("row %d of %s", r.id, t.table), r.broken, doRecover)
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	var orphans int
	err = v.db.reader.QueryRowContext(v.ctx, "SELECT count(*) FROM seals WHERE of = ? AND id NOT IN (SELECT "+t.id+" FROM "+t.table+")", of).Scan(&orphans)
	if err != nil {
		return v.db.readError(err)
	}
	if orphans > 0 && of == wholeRow(of) {
		v.report("complete", "table "+t.table, fmt.Sprintf("%d rows are missing, and their seals are there", orphans), doRestore)
	}
	return nil
}

// counts compares the outcomes of each cell, as attempts say, with its settled
// trials, as the index of settled attempts says.
func (v *verifier) counts() error {
	cells := make(map[assay.Cell]int)
	var indexed bool
	err := v.db.reader.QueryRowContext(v.ctx, "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'attempts_settled')").Scan(&indexed)
	if err != nil || !indexed { // which is a problem of the schema
		return v.db.wrap(err)
	}
	err = eachRaw(v.ctx, v.db.reader, `SELECT model, variant, severity, difficulty, task_type, reliability, count(*) FROM trials
		WHERE id IN (SELECT trial FROM attempts INDEXED BY attempts_settled WHERE level <> '' AND id <= ?)
		GROUP BY 1, 2, 3, 4, 5, 6`, []any{v.last}, func(row []any) (bool, error) {
		var c assay.Cell
		for i, to := range []*string{&c.Model, &c.Variant, &c.Severity, &c.Difficulty, &c.TaskType} {
			*to, _ = row[i].(string)
		}
		c.Reliability, _ = row[5].(float64)
		n, _ := row[6].(int64)
		cells[c] = int(n)
		return true, nil
	})
	if err != nil {
		return v.db.readError(err)
	}
	for c, n := range v.cells {
		if cells[c] != n {
			v.report("counts", cellName(c), fmt.Sprintf("%d outcomes, but %d settled trials", n, cells[c]), doRecover)
		}
	}
	for c, n := range cells {
		if _, ok := v.cells[c]; !ok {
			v.report("counts", cellName(c), fmt.Sprintf("no outcome, but %d settled trials", n), doRecover)
		}
	}
	return v.db.reader.QueryRowContext(v.ctx, "SELECT count(*) FROM trials").Scan(&v.proof.Trials)
}

func cellName(c assay.Cell) string {
	return strings.Join([]string{"cell", c.Model, c.Variant, c.Severity, c.Difficulty, c.TaskType, assay.FormatReliability(c.Reliability)}, " ")
}

// A span is a stretch of row IDs, both ends included.
type span struct{ first, last int64 }

// spans are in order and do not touch.
type spans []span

func (s spans) size() (n int64) {
	for _, r := range s {
		n += r.last - r.first + 1
	}
	return n
}

// without returns the parts of a stretch that s does not have.
func (s spans) without(first, last int64) (rest []span) {
	for _, r := range s {
		if r.last < first {
			continue
		}
		if r.first > last {
			break
		}
		if r.first > first {
			rest = append(rest, span{first, r.first - 1})
		}
		first = r.last + 1
	}
	if first <= last {
		rest = append(rest, span{first, last})
	}
	return rest
}

// deletedRows returns the IDs of the rows that users had deleted.
func (db *DB) deletedRows(ctx context.Context, of string) (s spans, err error) {
	err = eachRaw(ctx, db.reader, "SELECT first, last FROM deleted WHERE of = ? ORDER BY first", []any{of}, func(row []any) (bool, error) {
		first, _ := row[0].(int64)
		last, _ := row[1].(int64)
		s = append(s, span{first, last})
		return true, nil
	})
	if err != nil {
		return nil, db.readError(err)
	}
	return s, nil
}
