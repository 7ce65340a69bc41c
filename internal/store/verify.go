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
	// Lost transcripts were those of attempts that a recovery kept without them.
	Lost int
}

// Verify proves the store by all that it knows of itself, and tells found of
// every problem, in one goroutine: the file and its schema, each row against its
// seal, each trial against its content, that attempts are without gaps and
// trials settled once, and that both ways to count agree. inspect looks at what an
// attempt says; it is called by several goroutines. progress is told now and
// then how many of how many attempts were looked at. Verify changes nothing. Its
// error says that it could not look, not that it found something. [ErrChanged] says
// that rows were deleted meanwhile: what was found says nothing, and a second look will.
func (db *DB) Verify(ctx context.Context, inspect func(*Stored) []Problem, found func(Problem), progress func(done, of int)) (Proof, error) {
	v := &verifier{
		db: db, ctx: ctx, inspect: inspect, found: found, progress: progress,
		trials: make(map[trialKey]*progressOf), cells: make(map[assay.Cell]int),
	}
	before, err := db.deletions(ctx, true)
	if err != nil && !isDamage(err) {
		return v.proof, err
	}
	for _, step := range []func() error{v.file, v.schema, v.begin, v.attempts, v.cut, v.ends, v.rows, v.ledger, v.counts} {
		err := step()
		if err != nil && ctx.Err() == nil && isDamage(err) {
			v.report("file", "a table", "cannot be read: "+firstLine(err), doRecover)
			err = nil
		}
		if err != nil {
			return v.proof, err
		}
	}
	if err := db.unchanged(ctx, before, true); !isDamage(err) {
		return v.proof, err
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
	blind          bool  // what was deleted is not known
	next           int64 // the attempt that is due
	missing        int64 // attempts that should be there
	unreadable     int   // attempts of which nothing is known but that they are there
	trials         map[trialKey]*progressOf
	cells          map[assay.Cell]int // outcomes
	ended          map[string]int     // how many attempts a run had when it ended
	has            map[string]int     // and how many it has
	text           string             // of the query for rows and their seals
	byTable        trialRows
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
		if !db.MarkedDamaged() { // perhaps where nothing can be removed
			return nil
		}
		if err := os.Remove(markPath(db.path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("store %s is whole, but its mark stays: %w", db.path, err)
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

// MarkPath is the file that [DB.MarkDamaged] leaves. It is beside the store itself,
// also where a link leads there.
func (db *DB) MarkPath() string { return markPath(db.path) }

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
	logged := func() bool {
		log, err := os.Stat(path + "-wal")
		return err == nil && log.Size() > 0
	}
	if logged() {
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
	if err != nil || logged() { // as it is since a moment ago
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
	if err != nil {
		return err
	}
	if text, err := wrongFormat(v.ctx, v.db.reader); text != "" || err != nil {
		v.report("schema", "the file", text, "the file was changed by another program; "+doRecover)
		return err
	}
	return nil
}

// wrongFormat says what is wrong with the number of the store's format, if something is.
func wrongFormat(ctx context.Context, db querier) (text string, err error) {
	err = eachRaw(ctx, db, "PRAGMA user_version", nil, func(row []any) (bool, error) {
		if n, _ := row[0].(int64); n != int64(len(migrationNames())) {
			text = fmt.Sprintf("its header says format %d, and its tables are of format %d", n, len(migrationNames()))
		}
		return true, nil
	})
	return text, err
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

// begin finds out which attempts there should be. What is hurt beside them is told, and
// the attempts are looked at without it.
func (v *verifier) begin() (err error) {
	v.next, v.ended, v.has = 1, make(map[string]int), make(map[string]int)
	number := func(to *int64, text string) func() error {
		return func() error { return v.db.reader.QueryRowContext(v.ctx, text).Scan(to) }
	}
	var sealed, dropped, lost int64
	for _, side := range []struct {
		table string
		read  func() error
	}{
		// First: attempts that a run has when it ends are there when the last is read.
		{"run_counts", v.readEnds},
		{"attempts", func() (err error) { v.last, err = v.db.lastAttempt(v.ctx); return err }},
		{"attempt_seals", number(&sealed, "SELECT ifnull(max(attempt), 0) FROM attempt_seals")},
		{"unsealed", number(&v.unsealed, "SELECT ifnull((SELECT last FROM unsealed WHERE of = 'attempt'), 0)")},
		{"dropped", number(&dropped, "SELECT count(*) FROM dropped")},
		{"deletions", number(&lost, "SELECT count(*) FROM dropped WHERE deletion IN (SELECT id FROM deletions WHERE what ->> 'lost' <> '')")},
		{"deleted", func() (err error) {
			v.deleted, err = deletedRows(v.ctx, v.db.reader, "attempt")
			v.blind = err != nil
			return err
		}},
	} {
		if err := side.read(); err != nil {
			if v.ctx.Err() != nil || !isDamage(err) {
				return v.db.wrap(err)
			}
			v.report("file", "table "+side.table, "cannot be read: "+firstLine(v.db.wrap(err)), doRecover)
		}
	}
	if v.unsealed, err = v.db.unsealed(v.ctx, "attempt"); err != nil {
		return err
	}
	v.last = max(v.last, sealed)
	v.proof.Lost = int(lost)
	v.proof.Dropped = int(dropped - lost)
	v.proof.Deleted = int(v.deleted.size())
	v.text = sealedText(v.db.readableTables(v.ctx))
	return nil
}

// readEnds reads how many attempts runs had when they ended.
func (v *verifier) readEnds() error {
	return eachRaw(v.ctx, v.db.reader, "SELECT r.id, c.attempts FROM run_counts c JOIN runs r ON r.seq = c.run", nil, func(row []any) (bool, error) {
		run, _ := row[0].(string)
		n, _ := row[1].(int64)
		v.ended[run] = int(n)
		return true, nil
	})
}

// readableTables tells of which tables beside the attempts at least the root is there.
func (db *DB) readableTables(ctx context.Context) map[string]bool {
	readable := make(map[string]bool)
	for _, table := range []string{"runs", "attempt_seals", "dropped", "transcripts"} {
		readable[table] = db.readable(ctx, "SELECT 1 FROM "+table+" NOT INDEXED LIMIT 1")
	}
	return readable
}

// attempts looks at all attempts, with several readers.
func (v *verifier) attempts() error {
	err := inBlocks(v.ctx, v.last, page, v.db.seek, v.read, func(b block) (bool, error) {
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
		if v.blind {
			break
		}
		v.missing += lost.last - lost.first + 1
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
		v.next = max(v.next, c.id+1)
		if v.keep != nil {
			v.keep(&c)
		}
		if c.unreadable {
			v.unreadable++
			continue
		}
		v.proof.Attempts++
		v.has[string(c.run)]++
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

// cut looks for attempts that a run had when it ended. Where a store is cut off, with all
// that is about them, no other row tells of them.
func (v *verifier) cut() error {
	total := -v.unreadable // whose run nobody knows, and which were told of
	for run, n := range v.ended {
		total += max(0, n-v.has[run])
	}
	v.missing = max(v.missing, int64(total))
	for _, run := range slices.Sorted(maps.Keys(v.ended)) {
		if n := v.ended[run] - v.has[run]; n > 0 && total > 0 {
			v.report("complete", "run "+run, fmt.Sprintf("%d of the %d attempts that it had are missing", n, v.ended[run]), doRestore)
		}
	}
	err := eachRaw(v.ctx, v.db.reader, `SELECT id FROM runs WHERE finished_at IS NOT NULL AND seq NOT IN (SELECT run FROM run_counts)
		AND seq > ifnull((SELECT last FROM unsealed WHERE of = 'run_count'), 0)`, nil, func(row []any) (bool, error) {
		v.report("complete", fmt.Sprintf("run %v", row[0]), "has ended, and how many attempts it had is missing", doRestore)
		return true, nil
	})
	return v.db.wrap(err)
}

// ends looks for what belongs to attempts that are not there.
func (v *verifier) ends() error {
	for _, q := range []struct{ text, check, what string }{
		{"SELECT count(*) FROM trials WHERE id NOT IN (SELECT trial FROM attempts NOT INDEXED)", "complete", "trials have no attempt"},
		{"SELECT count(*) FROM transcripts WHERE attempt NOT IN (SELECT id FROM attempts)", "reference", "transcripts belong to no attempt"},
		{"SELECT count(*) FROM attempt_seals WHERE attempt < 1", "reference", "seals belong to no attempt"},
		{"SELECT count(*) FROM dropped WHERE attempt IN (SELECT attempt FROM transcripts)", "reference", "transcripts are there that were deleted"},
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
	deleted, err := deletedRows(v.ctx, v.db.reader, of)
	if err != nil {
		return v.db.readError(err)
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
	if orphans > 0 && (of == wholeRow(of) || of == "run_count") {
		v.report("complete", "table "+t.table, fmt.Sprintf("%d rows are missing, and their seals are there", orphans), doRestore)
	}
	return nil
}

// ledger compares with their seals the rows that say which others may be missing, or
// without a seal.
func (v *verifier) ledger() error {
	is, err := deletedSums(v.ctx, v.db.reader)
	if err != nil {
		return v.db.readError(err)
	}
	err = eachRaw(v.ctx, v.db.reader, "SELECT id, sum FROM seals WHERE of = 'deleted'", nil, func(row []any) (bool, error) {
		id, _ := row[0].(int64)
		want, _ := row[1].([]byte)
		if s, ok := is[id]; !ok || !bytes.Equal(s[:], want) {
			v.report("seal", fmt.Sprintf("the rows that deletion %d took away", id), "are not what was saved", doRestore)
		}
		delete(is, id)
		return true, nil
	})
	for _, id := range slices.Sorted(maps.Keys(is)) {
		v.report("seal", fmt.Sprintf("the rows that deletion %d took away", id), "have no seal: another program added them", doRestore)
	}
	proved, failed := v.db.unsealedProved(v.ctx)
	if failed == nil && !proved {
		v.report("seal", "table unsealed", "is not what was saved", doRestore)
	}
	return v.db.wrap(errors.Join(err, failed))
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
