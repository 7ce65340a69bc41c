package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"sync"
)

// A sum is half a SHA-256. 128 bits are enough to find every accident.
type sum [16]byte

// A sealer encodes values as SQLite stores them, each with its type and length. sum ends its use.
type sealer struct{ text []byte }

// idleSealers are kept, because each save needs two.
var idleSealers = sync.Pool{New: func() any { return &sealer{make([]byte, 0, 1024)} }}

func newSealer(of string) *sealer {
	s := idleSealers.Get().(*sealer)
	s.text = s.text[:0]
	s.addText(of)
	return s
}

func (s *sealer) put(kind byte, n uint64) {
	s.text = binary.BigEndian.AppendUint64(append(s.text, kind), n)
}

func (s *sealer) addText(text string) {
	s.put('t', uint64(len(text)))
	s.text = append(s.text, text...)
}

func (s *sealer) addBytes(b []byte) {
	s.put('b', uint64(len(b)))
	s.text = append(s.text, b...)
}

// add takes the types that SQLite returns, and arguments that it stores as these types.
func (s *sealer) add(values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			s.put('n', 0)
		case int:
			s.put('i', uint64(v))
		case int64:
			s.put('i', uint64(v))
		case float64:
			s.put('f', math.Float64bits(v+0)) // adding 0 turns -0 into 0, as it is on disk
		case string:
			s.addText(v)
		case []byte:
			s.addBytes(v)
		default:
			panic(fmt.Sprintf("store: seal of a %T", v))
		}
	}
}

func (s *sealer) sum() sum {
	h := sha256.Sum256(s.text)
	if cap(s.text) <= 64<<10 {
		idleSealers.Put(s)
	}
	return sum(h[:len(sum{})])
}

// digest returns the digest of a transcript's JSON, or nil if there is no transcript.
func digest(transcript []byte) []byte {
	if transcript == nil {
		return nil
	}
	d := sha256.Sum256(transcript)
	return d[:len(sum{})]
}

// identify returns a sum that identifies an attempt in any store. It covers its trial, its run,
// the values of attemptColumns, the digest of its transcript, and each later column that differs from
// its zero. So it is the same in stores with and without later columns.
func (c *columns) identify(key trialKey, run string, row []any, transcript []byte) sum {
	s := newSealer("assay attempt 5")
	s.addBytes(key[:])
	s.addText(run)
	s.add(row[:c.first]...)
	if transcript == nil {
		s.add(nil)
	} else {
		s.addBytes(transcript)
	}
	for i, f := range c.later() {
		if v := row[c.first+i]; !f.isZero(v) {
			s.addText(f.name)
			s.add(v)
		}
	}
	return s.sum()
}

// sealAttempt returns an attempt's seal, which covers its identity and its place in the store.
func sealAttempt(identity sum, id, number int64) sum {
	s := newSealer("assay place 1")
	s.addBytes(identity[:])
	s.put('i', uint64(id))
	s.put('i', uint64(number))
	return s.sum()
}

// sealed lists the tables whose rows have a seal in the table seals, each with the columns that it
// covers.
var sealed = map[string]string{
	"runs":            runColumns,
	"specs":           "run, " + specColumns,
	"ends":            "run, " + endColumns + ", attempts",
	"libraries":       "digest, body",
	"dictionaries":    "bytes, body",
	"controls":        "run, at, command",
	"scores":          "attempt, scored_at, program, body",
	"classifications": classificationColumns,
	"costs":           "attempt, priced_at, program, file, sha256, prices, " + costColumns,
	"imports":         importColumns,
	"deletions":       "at, program, what",
}

// A sealedRow was compared with its seal.
type sealedRow struct {
	id  int64
	row []any // the sealed columns; they are good until the next row
	// broken is the reason not to trust the row, or empty.
	broken string
}

// eachSealed visits the rows of a table in the order of their IDs.
func (db *DB) eachSealed(
	ctx context.Context, table string, visit func(sealedRow) (bool, error),
) error {
	if lacks, err := db.lacks(ctx, table); err != nil || lacks {
		return err
	}
	query := "SELECT t.rowid, s.sum, " + columnsOf("t", sealed[table]) + " FROM " + table +
		" t LEFT JOIN seals s ON s.of = ? AND s.id = t.rowid ORDER BY t.rowid"
	return db.wrap(eachRaw(ctx, db.reader, query, []any{table}, func(row []any) (bool, error) {
		r := sealedRow{row: row[2:]}
		r.id, _ = row[0].(int64)
		want, hasSeal := row[1].([]byte)
		got := sealOf(table, r.row)
		switch {
		case hasSeal && !bytes.Equal(got[:], want):
			r.broken = "is not as it was saved"
		case r.id < 1:
			r.broken = "has a row ID that assay never uses"
		case !hasSeal:
			r.broken = "has no seal: another program added it, or the seal is lost"
		}
		return visit(r)
	}))
}

// add adds a row with the values of its sealed columns, and its seal. It returns the row's ID.
func (w *writer) add(table string, values ...any) (id int64, err error) {
	return w.addAt(nil, table, values...)
}

// addAt is add for a row with an ID, unless that is nil.
func (w *writer) addAt(at any, table string, values ...any) (id int64, err error) {
	insert := insertSQL(table, "rowid, "+sealed[table])
	if err := w.exec(insert, append([]any{at}, values...)...); err != nil {
		return 0, err
	}
	if err := w.get("SELECT last_insert_rowid()", nil, &id); err != nil {
		return 0, err
	}
	return id, w.seal(table, id)
}

// seal adds the seal of a row that was just written.
func (w *writer) seal(table string, id int64) error {
	var s sum
	query := "SELECT " + sealed[table] + " FROM " + table + " WHERE rowid = ?"
	err := eachRaw(w.ctx, w.conn, query, []any{id}, func(row []any) (bool, error) {
		s = sealOf(table, row)
		return true, nil
	})
	if err != nil {
		return err
	}
	return w.exec(insertSQL("seals", "of, id, sum"), table, id, s[:])
}

func sealOf(table string, row []any) sum {
	s := newSealer("assay " + table + " 1")
	s.add(row...)
	return s.sum()
}
