package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	sqlite3 "modernc.org/sqlite/lib"
)

// A salvage collects the rows of a damaged store from every page of its file that can be read,
// wherever that page is, and puts them into a new file with whole tables and indexes. It leaves the
// proof of the rows to [Recover], except that it lets a proved row win against another row with the
// same ID. The file does not contain rows that users deleted, because the writer overwrites them.
type salvage struct {
	ctx    context.Context
	page   *sql.Stmt // returns a page of the file by its number
	pages  int64
	to     *DB
	tx     *sql.Tx // fills to
	shapes []*tableShape
	rivals []rival
}

// A rival is a row that has the same ID, or the same place in an index, as one that came before it.
type rival struct {
	table *tableShape
	row   []any
}

// salvage returns a store in dir with the rows of the file at path.
func (b *rebuilder) salvage(path, dir string) (*DB, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	name, refused := findReadable(b.ctx, path)
	mend := []error{ErrNotStore, ErrNewer, ErrOlder}
	if isDamage(refused) ||
		slices.ContainsFunc(mend, func(of error) bool { return errors.Is(refused, of) }) {
		name, err = mendHeader(path, dir)
	} else {
		err = refused
	}
	if err != nil {
		return nil, err
	}
	from, err := newDB(path, name+"&_pragma=writable_schema(1)") // a damaged schema does no harm
	if err != nil {
		return nil, err
	}
	s := salvage{ctx: b.ctx}
	if refused == nil {
		err = b.checkFile(from)
	}
	if err == nil {
		err = s.create(filepath.Join(dir, fmt.Sprint(len(b.sources), ".db")))
	}
	if err == nil {
		err = s.read(from, func(n int) { b.progress("reading pages of "+path, n, int(s.pages)) })
	}
	if err == nil && refused != nil {
		err = s.confirm(refused)
	}
	if err = errors.Join(err, from.Close()); err != nil && s.to != nil {
		return nil, errors.Join(err, s.to.Close())
	}
	if s.to != nil {
		s.to.path = path
	}
	return s.to, err
}

// confirm returns the reason why the file was refused, unless it has a run that proves it a store.
func (s *salvage) confirm(refused error) error {
	err := s.to.eachSealed(s.ctx, "runs", func(r sealedRow) (bool, error) {
		if r.broken == "" {
			refused = nil
		}
		return refused != nil, nil
	})
	return errors.Join(err, refused)
}

// checkFile reports the problems that SQLite finds in a file.
func (b *rebuilder) checkFile(s *DB) (failed error) {
	v := newVerifier(b.ctx, s)
	v.found = func(p Problem) {
		if failed == nil {
			failed = b.lose(s, p)
		}
	}
	err := v.file()
	if isDamage(err) && b.ctx.Err() == nil {
		return errors.Join(failed, b.lose(s, Problem{"file", s.path, firstLine(err), doRestore, true}))
	}
	return errors.Join(failed, err)
}

// mendHeader copies a file whose header is damaged, and its log, and gives the copy the header of a
// store. It returns the copy's data source name.
func mendHeader(path, dir string) (string, error) {
	// See "Database File Format" at sqlite.org.
	header := make([]byte, 100)
	copy(header, "SQLite format 3\x00\x10\x00\x02\x02\x00\x40\x20\x20") // 4096 bytes a page, a log
	header[47], header[59] = 4, 1                                       // the schema's format, UTF-8
	binary.BigEndian.PutUint32(header[60:], format)
	binary.BigEndian.PutUint32(header[68:], applicationID)
	header[95] = 1 // so that the file's size in the header is not valid

	var err error
	mended := filepath.Join(dir, "mended.db")
	for _, suffix := range []string{"", "-wal"} {
		if err == nil {
			err = copyFile(path+suffix, mended+suffix, header)
		}
		header = nil
	}
	return readDSN(mended), err
}

// copyFile copies a file, if it exists, and overwrites the beginning of the copy.
func copyFile(from, to string, beginning []byte) error {
	f, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) && beginning == nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	c, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(c, f)
	if err == nil {
		_, err = c.WriteAt(beginning, 0)
	}
	return errors.Join(err, c.Close())
}

// create makes the new file. In it, only indexes and the types of columns are checked.
func (s *salvage) create(path string) error {
	db, err := newDB(path, dsn(path, "mode=rwc", "journal_mode(MEMORY)", "synchronous(OFF)",
		"ignore_check_constraints(1)", readCache))
	if err != nil {
		return err
	}
	s.to = db
	if _, err = db.reader.ExecContext(s.ctx, schema); err != nil {
		return err
	}
	triggers, err := values[string](s.ctx, db.reader,
		"SELECT name FROM sqlite_schema WHERE type = 'trigger'")
	for _, name := range triggers {
		if err == nil {
			_, err = db.reader.ExecContext(s.ctx, "DROP TRIGGER "+name)
		}
	}
	if err == nil {
		s.shapes, err = shapesOf(s.ctx, db.reader)
	}
	return err
}

// read reads all pages of one state of the file.
func (s *salvage) read(from *DB, progress func(n int)) error {
	source, err := from.reader.BeginTx(s.ctx, nil)
	if err != nil {
		return from.wrap(err)
	}
	defer source.Rollback()
	query := "SELECT max(pgno) FROM sqlite_dbpage"
	if err := source.QueryRowContext(s.ctx, query).Scan(&s.pages); err != nil {
		return from.wrap(err)
	}
	query = "SELECT data FROM sqlite_dbpage WHERE pgno = ?"
	if s.page, err = source.PrepareContext(s.ctx, query); err != nil {
		return from.wrap(err)
	}
	defer s.page.Close()
	if s.tx, err = s.to.reader.BeginTx(s.ctx, nil); err != nil {
		return err
	}
	defer s.tx.Rollback()
	err = s.scan(progress)
	if err == nil {
		err = s.tx.Commit()
	}
	if err == nil {
		err = s.settle()
	}
	return err
}

// scan adds the rows of all pages of tables.
func (s *salvage) scan(progress func(n int)) error {
	for n := int64(1); n <= s.pages; n++ {
		if n%page == 0 {
			progress(int(n))
		}
		b, err := s.load(n)
		if s.ctx.Err() != nil {
			return context.Cause(s.ctx)
		}
		if err != nil || b[0] != tableLeaf {
			continue
		}
		for _, row := range rowsIn(b, s.load) {
			if err := s.add(row); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *salvage) load(n int64) (b []byte, err error) {
	err = s.page.QueryRowContext(s.ctx, n).Scan(&b)
	if err == nil && len(b) < 512 {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}

// add adds a row to the table that has such rows.
func (s *salvage) add(row []any) error {
	for _, t := range s.shapes {
		if !t.fits(row) {
			continue
		}
		n, err := s.insert(t, row)
		if primary(err) == sqlite3.SQLITE_CONSTRAINT {
			return nil
		}
		if err == nil && n == 0 {
			s.rivals = append(s.rivals, rival{t, row})
		}
		return err
	}
	return nil
}

// insert adds a row unless its place is taken. It returns how many rows were added.
func (s *salvage) insert(t *tableShape, row []any) (n int64, err error) {
	if t.statement == nil {
		t.statement, err = s.tx.PrepareContext(s.ctx, "INSERT OR IGNORE "+t.insert)
		if err != nil {
			return 0, err
		}
	}
	result, err := t.statement.ExecContext(s.ctx, row...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// settle lets rivals that are proved take the places of the rows that came before them.
func (s *salvage) settle() error {
	for _, r := range s.rivals {
		var old []any
		key := r.row[:r.table.keys]
		query := "SELECT " + r.table.names + r.table.where
		err := eachRaw(s.ctx, s.to.reader, query, key, func(row []any) (bool, error) {
			old = slices.Clone(row)
			return false, nil
		})
		if err == nil {
			err = s.replace(r.table, key, r.row)
		}
		if err != nil {
			return err
		}
		proved, err := s.proved(r)
		if err == nil && !proved {
			err = s.replace(r.table, key, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// replace puts a row into the place with a key.
func (s *salvage) replace(t *tableShape, key, row []any) error {
	_, err := s.to.reader.ExecContext(s.ctx, "DELETE"+t.where, key...)
	if err == nil && row != nil {
		_, err = s.to.reader.ExecContext(s.ctx, "INSERT OR IGNORE "+t.insert, row...)
	}
	return err
}

// proved reports whether the rows that a rival belongs to are as they were saved.
func (s *salvage) proved(r rival) (bool, error) {
	id, _ := r.row[0].(int64)
	switch r.table.name {
	case "trials":
		query := "SELECT ifnull(min(id), 0) FROM attempts WHERE trial = ?"
		if err := s.to.reader.QueryRowContext(s.ctx, query, r.row[0]).Scan(&id); err != nil {
			return false, err
		}
		fallthrough
	case "attempts", "attempt_seals", "transcripts":
		v := newVerifier(s.ctx, s.to)
		v.inspect = func(*Stored) []Problem { return nil }
		rows, err := v.read(s.ctx, id, id)
		return err == nil && len(rows) == 1 && rows[0].intact() &&
			(r.table.name != "transcripts" || len(rows[0].problems) == 0), err
	}
	of := r.table.name
	if of == "seals" {
		of, _ = r.row[0].(string)
		id, _ = r.row[1].(int64)
	}
	if sealed[of] == "" { // it is recorded elsewhere, or is no seal of ours
		return true, nil
	}
	proved := true
	err := s.to.eachSealed(s.ctx, of, func(row sealedRow) (bool, error) {
		proved = proved && (row.id != id || row.broken == "")
		return true, nil
	})
	return proved, err
}
