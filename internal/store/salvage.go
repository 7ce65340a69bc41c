package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/assay-eval/assay"
)

// A salvage copies the rows of a damaged store that SQLite can read into a new file, which has all
// tables and indexes. It leaves the proof of the rows to [Recover].
type salvage struct {
	ctx  context.Context
	from *sql.Tx // one state of the damaged store
	to   *sql.Tx
	lose func(where string, err error) error
}

// salvage returns a store in dir with the rows of the file at path that SQLite can read.
func (b *rebuilder) salvage(path, dir string) (to *DB, err error) {
	path, err = resolve(path)
	if err != nil {
		return nil, err
	}
	name, refused := findReadable(b.ctx, path)
	header := []error{ErrNotStore, ErrNewer, ErrOlder} // it may be damaged
	if isDamage(refused) || slices.ContainsFunc(header, func(of error) bool {
		return errors.Is(refused, of)
	}) {
		name = readDSN(path)
	} else if refused != nil {
		return nil, refused
	}
	from, err := newDB(b.ctx, path, name+"&_pragma=writable_schema(1)", nil) // a damaged schema does no harm
	if err != nil {
		return nil, err
	}
	to, err = newSalvage(b.ctx, filepath.Join(dir, fmt.Sprint(len(b.sources), ".db")), from.layout)
	if err == nil && refused == nil {
		err = b.checkFile(from)
	}
	if err == nil {
		err = b.salvageTables(from, to)
	}
	if err == nil && (refused != nil || len(b.sum.LostList) > 0) {
		err = confirm(b.ctx, to, path, refused)
	}
	err = errors.Join(err, from.Close())
	if err == nil {
		to.path = path
	} else if to != nil {
		err, to = errors.Join(err, to.Close()), nil
	}
	return to, err
}

// confirm returns an error unless there is a run. If the store could not be opened, for the reason
// refused, the seal of a run has to prove that the rows are those of a store.
func confirm(ctx context.Context, s *DB, path string, refused error) error {
	found := false
	err := s.eachSealed(ctx, "runs", func(r sealedRow) (bool, error) {
		found = refused == nil || r.broken == ""
		return !found, nil
	})
	switch {
	case err != nil || found:
		return err
	case refused == nil || isDamage(refused):
		return coded(fmt.Errorf("store %s: %w: no run in it can be read", path, ErrDamaged),
			assay.HintNoRuns, path, path)
	}
	return coded(refused, assay.HintPerhaps, path, path)
}

// checkFile reports the problems that SQLite finds in a file.
func (b *rebuilder) checkFile(s *DB) (failed error) {
	v := newVerifier(b.ctx, s)
	v.found = func(p Problem) {
		if p.Check == "file" {
			p.Do = string(assay.HintShell)
		}
		if failed == nil {
			failed = b.lose(s, p)
		}
	}
	err := v.file()
	if isDamage(err) && b.ctx.Err() == nil {
		v.report("file", s.path, firstLine(err), doRestore)
		return failed
	}
	return errors.Join(failed, err)
}

// newSalvage makes the new file. In it, only indexes and the types of columns are checked.
func newSalvage(ctx context.Context, path string, l *layout) (*DB, error) {
	db, err := newDB(ctx, path, dsn(path, "mode=rwc", "journal_mode(MEMORY)", "synchronous(OFF)",
		"ignore_check_constraints(1)", readCache), l)
	if err != nil {
		return nil, err
	}
	_, err = db.reader.ExecContext(ctx, tables)
	for _, trigger := range []string{"scores_of_outcomes", "classifications_of_outcomes"} {
		if err == nil {
			_, err = db.reader.ExecContext(ctx, "DROP TRIGGER "+trigger)
		}
	}
	if err == nil {
		_, err = widen(ctx, db.reader, newLayout(nil, nil), l)
	}
	return db, err
}

// salvageTables copies the rows of all tables.
func (b *rebuilder) salvageTables(from, to *DB) error {
	names, err := values[string](b.ctx, to.reader, `SELECT name FROM sqlite_schema
		WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		return err
	}
	lose := func(where string, err error) error {
		what := "cannot be read: " + firstLine(err)
		return b.lose(from, Problem{"file", where, what, string(assay.HintShell), true})
	}
	source, err := from.reader.BeginTx(b.ctx, nil)
	if isDamage(err) && b.ctx.Err() == nil {
		return lose(from.path, err)
	}
	if err != nil {
		return from.wrap(err)
	}
	defer source.Rollback()
	target, err := to.reader.BeginTx(b.ctx, nil)
	if err != nil {
		return err
	}
	defer target.Rollback()
	s := salvage{b.ctx, source, target, lose}
	for i, name := range names {
		b.progress("reading tables of "+from.path, i, len(names))
		if lacks, err := from.lacks(b.ctx, name); err == nil && lacks {
			continue
		}
		if err := s.copyTable(name); err != nil {
			return err
		}
	}
	return target.Commit()
}

// copyTable copies the rows of a table that SQLite can read, in the order of their IDs.
func (s *salvage) copyTable(table string) error {
	columns, err := values[string](s.ctx, s.to, "SELECT name FROM pragma_table_info(?)", table)
	if err != nil {
		return err
	}
	names := strings.Join(columns, ", ")
	insert, err := s.to.PrepareContext(s.ctx,
		strings.Replace(insertSQL(table, names), "INSERT", "INSERT OR IGNORE", 1))
	if err != nil {
		return err
	}
	defer insert.Close()

	query := "SELECT rowid, " + names + " FROM " + table +
		" NOT INDEXED WHERE rowid >= ? ORDER BY rowid"
	next := int64(math.MinInt64)
	for more := true; more; {
		var failed error // to insert
		err := eachRaw(s.ctx, s.from, query, []any{next}, func(row []any) (bool, error) {
			next = max(next, row[0].(int64)+1) // a damaged tree may be out of order
			_, failed = insert.ExecContext(s.ctx, row[1:]...)
			if primary(failed) == sqlite3.SQLITE_CONSTRAINT { // it is not a row of this table
				failed = nil
			}
			return failed == nil && next > row[0].(int64), nil
		})
		if failed != nil || err == nil || s.ctx.Err() != nil || !isDamage(err) {
			return errors.Join(failed, err)
		}
		if err := s.lose("table "+table, err); err != nil {
			return err
		}
		next, more = s.skip(query, max(next, 0)+1)
	}
	return nil
}

// skip returns the next ID after damage from which on SQLite can read rows, if there is any. It
// passes over rows only if there are fewer than it has already passed over.
func (s *salvage) skip(query string, damaged int64) (int64, bool) {
	readable := func(id int64) bool {
		err := eachRaw(s.ctx, s.from, query+" LIMIT 1", []any{id},
			func([]any) (bool, error) { return false, nil })
		return err == nil
	}
	for step := 1; step < math.MaxInt>>1 && damaged+int64(step) > damaged; step *= 2 {
		if readable(damaged + int64(step)) {
			before := damaged + int64(step/2)
			n := sort.Search(step-step/2, func(n int) bool { return readable(before + int64(n)) })
			return before + int64(n), true
		}
	}
	return 0, false
}
