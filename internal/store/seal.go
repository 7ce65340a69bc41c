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
}

// A sealedRow was compared with its seal.
type sealedRow struct {
	id  int64
	row []any // the columns that are sealed, good until the next row
	// broken says why the row is not to be trusted; empty for one that is.
	broken string
}

// eachSealed visits the rows of a table, in the order of their IDs.
func (db *DB) eachSealed(ctx context.Context, of string, visit func(sealedRow) (bool, error)) error {
	t := sealed[of]
	var unsealed int64
	err := db.reader.QueryRowContext(ctx, "SELECT ifnull((SELECT last FROM unsealed WHERE of = ?), 0)", wholeRow(of)).Scan(&unsealed)
	if err != nil {
		return db.readError(err)
	}
	text := "SELECT t." + t.id + ", s.sum, t." + strings.Join(columnNames(t.columns), ", t.") + " FROM " + t.table +
		" t LEFT JOIN seals s ON s.of = ? AND s.id = t." + t.id + " ORDER BY t." + t.id
	err = eachRaw(ctx, db.reader, text, []any{of}, func(row []any) (bool, error) {
		r := sealedRow{row: row[2:]}
		r.id, _ = row[0].(int64)
		want, ok := row[1].([]byte)
		is := sealOf(of, r.row)
		open := of == "run_end" && row[3] == nil
		switch {
		case ok && !bytes.Equal(is[:], want):
			r.broken = "is not what was saved"
		case !ok && !open && r.id > unsealed:
			r.broken = "has no seal: another program added it, or the seal is lost"
		}
		return visit(r)
	})
	if err != nil {
		return db.readError(err)
	}
	return nil
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
	_, err = w.conn.ExecContext(w.ctx, "INSERT INTO seals (of, id, sum) VALUES (?, ?, ?)", of, id, s[:])
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
