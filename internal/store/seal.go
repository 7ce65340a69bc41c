package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

// A sum is half a SHA-256: 128 bits, enough to find every accident.
type sum [16]byte

// A sealer gathers values as SQLite stores them, each with its type and length.
type sealer struct{ text []byte }

func newSealer(of string) *sealer {
	s := &sealer{make([]byte, 0, 1024)}
	s.add(of)
	return s
}

// add takes int64, float64, string, []byte and nil as SQLite gives them, and the
// types of arguments that it stores as these.
func (s *sealer) add(values ...any) {
	put := func(kind byte, n uint64) {
		s.text = binary.BigEndian.AppendUint64(append(s.text, kind), n)
	}
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			put('n', 0)
		case int:
			put('i', uint64(v))
		case int64:
			put('i', uint64(v))
		case float64:
			put('f', math.Float64bits(v+0)) // so that -0 is 0, as it is on disk
		case *float64:
			if v == nil {
				put('n', 0)
			} else {
				put('f', math.Float64bits(*v+0))
			}
		case string:
			put('t', uint64(len(v)))
			s.text = append(s.text, v...)
		case []byte:
			put('b', uint64(len(v)))
			s.text = append(s.text, v...)
		default:
			panic(fmt.Sprintf("store: seal of a %T", v))
		}
	}
}

func (s *sealer) sum() sum {
	h := sha256.Sum256(s.text)
	return sum(h[:len(sum{})])
}

// digest is that of a transcript's JSON; nil stands for no transcript.
func digest(transcript []byte) []byte {
	if transcript == nil {
		return nil
	}
	d := sha256.Sum256(transcript)
	return d[:len(sum{})]
}

// identify makes of an attempt's columns from program on, and of what it refers to,
// what tells it from all others, in any store. Columns that later formats add need
// another name here.
func identify(key trialKey, run string, row []any, transcript []byte) sum {
	s := newSealer("assay attempt 1")
	s.add(key[:], run)
	s.add(row...)
	if transcript == nil {
		s.add(nil)
	} else {
		s.add(transcript)
	}
	return s.sum()
}

// sealAttempt makes an attempt's seal of what it is and of its place in the store.
func sealAttempt(identity sum, id, number int64) sum {
	s := newSealer("assay place 1")
	s.add(identity[:], id, number)
	return s.sum()
}

// sealed are the rows, or parts of rows, that have seals in the table seals, with
// the columns that these cover. A run has three, for its parts have different
// worth: without its identity its attempts are nobody's.
var sealed = map[string]struct{ table, id, columns string }{
	"run": {"runs", "seq", `id, experiment, library_path, library_name, library_digest,
		planned, program, host, pid, started_at`},
	"run_spec":       {"runs", "seq", "id, spec, serves"},
	"run_end":        {"runs", "seq", "id, finished_at, summary"},
	"score":          {"scores", "id", scoreColumns},
	"classification": {"classifications", "id", classificationColumns},
	"dictionary":     {"dictionaries", "id", "body"},
	"import":         {"imports", "id", importColumns},
	"run_count":      {"run_counts", "run", "run, attempts"},
	"deletion":       {"deletions", "id", "at, program, what"},
}

// A sealedRow was compared with its seal.
type sealedRow struct {
	id  int64
	row []any // the columns that are sealed, good until the next row
	// broken says why the row is not to be trusted; empty for one that is.
	broken string
}

// eachSealed visits the rows of a table, in the order of their IDs. Where seals cannot
// be read, rows pass for whole: what says so is the look at the seals themselves.
func (db *DB) eachSealed(ctx context.Context, of string, visit func(sealedRow) (bool, error)) error {
	t := sealed[of]
	unsealed, err := db.unsealed(ctx, wholeRow(of))
	if err != nil {
		return err
	}
	next := int64(math.MinInt64)
	look := func(proved bool) func(row []any) (bool, error) {
		return func(row []any) (bool, error) {
			r := sealedRow{row: row[2:]}
			r.id, _ = row[0].(int64)
			next = r.id + 1
			want, ok := row[1].([]byte)
			is := sealOf(of, r.row)
			open := of == "run_end" && row[3] == nil
			switch {
			case ok && !bytes.Equal(is[:], want):
				r.broken = "is not what was saved"
			case r.id < 1:
				r.broken = "has a row ID that nothing was saved with"
			case !ok && !open && proved && r.id > unsealed:
				r.broken = "has no seal: another program added it, or the seal is lost"
			}
			return visit(r)
		}
	}
	columns := "t." + strings.Join(columnNames(t.columns), ", t.") + " FROM " + t.table + " t "
	err = eachRaw(ctx, db.reader, "SELECT t."+t.id+", s.sum, "+columns+"LEFT JOIN seals s ON s.of = ? AND s.id = t."+t.id+" ORDER BY t."+t.id,
		[]any{of}, look(true))
	if err == nil || !isDamage(err) || ctx.Err() != nil || db.readable(ctx, "SELECT count(*) FROM seals WHERE of = '"+of+"'") {
		return db.wrap(err)
	}
	return db.wrap(eachRaw(ctx, db.reader, "SELECT t."+t.id+", NULL, "+columns+"WHERE t."+t.id+" >= ? ORDER BY t."+t.id, []any{next}, look(false)))
}

// unsealed returns up to which row ID rows are older than seals. Where that cannot be
// read, or is not what was saved, it is what lies before the first that has a seal.
func (db *DB) unsealed(ctx context.Context, of string) (last int64, err error) {
	first := "SELECT ifnull(min(id), " + fmt.Sprint(math.MaxInt64) + ") - 1 FROM seals WHERE of = ?"
	if of == "attempt" {
		first = "SELECT ifnull(min(attempt), " + fmt.Sprint(math.MaxInt64) + ") - 1 FROM attempt_seals WHERE ? <> ''"
	}
	texts := []string{"SELECT ifnull((SELECT last FROM unsealed WHERE of = ?), 0)", first}
	if proved, err := db.unsealedProved(ctx); err == nil && !proved {
		texts = texts[1:]
	}
	for _, text := range texts {
		err = db.reader.QueryRowContext(ctx, text, of).Scan(&last)
		if err == nil || !isDamage(err) || ctx.Err() != nil {
			return last, db.wrap(err)
		}
	}
	return 0, nil
}

// unsealedProved tells whether the rows that say what has no seals are as they were saved.
func (db *DB) unsealedProved(ctx context.Context) (proved bool, err error) {
	is, err := unsealedSum(ctx, db.reader)
	if err != nil {
		return false, err
	}
	err = eachRaw(ctx, db.reader, "SELECT sum FROM seals WHERE of = 'unsealed' AND id = 0", nil, func(row []any) (bool, error) {
		want, _ := row[0].([]byte)
		proved = bytes.Equal(is[:], want)
		return true, nil
	})
	return proved, err
}

// readable tells whether a query can be carried out to its end.
func (db *DB) readable(ctx context.Context, text string) bool {
	return eachRaw(ctx, db.reader, text, nil, func([]any) (bool, error) { return true, nil }) == nil
}

// wholeRow is the kind of row that a part belongs to.
func wholeRow(of string) string {
	base, _, _ := strings.Cut(of, "_")
	return base
}

func columnNames(list string) []string {
	return strings.Split(strings.Join(strings.Fields(list), " "), ", ")
}

// A querier is a pool of connections, or one.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// sealRow adds the seal of a row that was just written.
func (w *writer) sealRow(of string, id int64) error {
	t := sealed[of]
	var s sum
	err := eachRaw(w.ctx, w.conn, "SELECT "+t.columns+" FROM "+t.table+" WHERE "+t.id+" = ?", []any{id}, func(row []any) (bool, error) {
		s = sealOf(of, row)
		return true, nil
	})
	if err != nil {
		return err
	}
	return w.addSeal(of, id, s)
}

// ledgerFormat is the first format in which the rows that excuse others are sealed.
const ledgerFormat = 6

// sealLedger seals the rows of an older store that say which rows may be missing, or
// have no seals.
func sealLedger(ctx context.Context, conn *sql.Conn) error {
	w := &writer{conn: conn, ctx: ctx}
	var deletions []int64
	err := eachRaw(ctx, conn, "SELECT id FROM deletions", nil, func(row []any) (bool, error) {
		id, _ := row[0].(int64)
		deletions = append(deletions, id)
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, id := range deletions {
		if err := errors.Join(w.sealRow("deletion", id), w.sealDeleted(id)); err != nil {
			return err
		}
	}
	s, err := unsealedSum(ctx, conn)
	if err != nil {
		return err
	}
	return w.addSeal("unsealed", 0, s)
}

// unsealedSum is that of all rows that say what has no seals.
func unsealedSum(ctx context.Context, q querier) (sum, error) {
	s := newSealer("assay unsealed 1")
	err := eachRaw(ctx, q, "SELECT of, last FROM unsealed ORDER BY of", nil, func(row []any) (bool, error) {
		s.add(row...)
		return true, nil
	})
	return s.sum(), err
}

// deletedSums are those of the rows that went with each deletion.
func deletedSums(ctx context.Context, q querier) (map[int64]sum, error) {
	sealers := make(map[int64]*sealer)
	err := eachRaw(ctx, q, "SELECT deletion, of, first, last FROM deleted ORDER BY of, first", nil, func(row []any) (bool, error) {
		id, _ := row[0].(int64)
		if sealers[id] == nil {
			sealers[id] = newSealer("assay deleted 1")
		}
		sealers[id].add(row...)
		return true, nil
	})
	sums := make(map[int64]sum)
	for id, s := range sealers {
		sums[id] = s.sum()
	}
	return sums, err
}

// sealDeleted seals the rows that went with a deletion, if there are any.
func (w *writer) sealDeleted(deletion int64) error {
	sums, err := deletedSums(w.ctx, w.conn)
	s, ok := sums[deletion]
	if err != nil || !ok {
		return err
	}
	return w.addSeal("deleted", deletion, s)
}

func (w *writer) addSeal(of string, id int64, s sum) error {
	_, err := w.conn.ExecContext(w.ctx, "INSERT INTO seals (of, id, sum) VALUES (?, ?, ?)", of, id, s[:])
	return err
}

// sealNew seals what an insertion added, unless that failed.
func (w *writer) sealNew(of string, res sql.Result, err error) error {
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil || of != "run" {
		return errors.Join(err, w.sealRow(of, id))
	}
	return errors.Join(w.sealRow(of, id), w.sealRow("run_spec", id))
}

func sealOf(of string, row []any) sum {
	s := newSealer("assay " + of + " 1")
	s.add(row...)
	return s.sum()
}

// eachRaw visits rows as SQLite gives them. The slice is good until the next.
func eachRaw(ctx context.Context, db querier, text string, args []any, visit func([]any) (bool, error)) (err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		to[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(to...); err != nil {
			return err
		}
		if more, err := visit(row); err != nil || !more {
			return err
		}
	}
	return rows.Err()
}
