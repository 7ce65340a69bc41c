package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
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
		case *float64:
			if v == nil {
				s.put('n', 0)
			} else {
				s.put('f', math.Float64bits(*v+0))
			}
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
// the values of attemptColumns and the digest of its transcript.
func identify(key trialKey, run string, row []any, transcript []byte) sum {
	s := newSealer("assay attempt 5")
	s.addBytes(key[:])
	s.addText(run)
	s.add(row...)
	if transcript == nil {
		s.add(nil)
	} else {
		s.addBytes(transcript)
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

// sealed lists the rows, or parts of rows, that have a seal in the table seals, and the columns
// that it covers. A run has three seals, because its attempts can be kept without its
// experiment's text or its end, but not without its identity.
var sealed = map[string]struct{ table, id, columns string }{
	"run": {"runs", "seq", `id, experiment, library_path, library_name, library_digest,
		planned, program, host, pid, started_at`},
	"run_spec":       {"runs", "seq", "id, spec, serves, prices"},
	"run_end":        {"runs", "seq", "id, finished_at, summary"},
	"library":        {"libraries", "id", libraryColumns},
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
	row []any // the sealed columns; they are good until the next row
	// broken is the reason not to trust the row, or empty.
	broken string
}

// eachSealed visits the rows of a table in the order of their IDs.
func (db *DB) eachSealed(
	ctx context.Context, of string, visit func(sealedRow) (bool, error),
) error {
	t := sealed[of]
	id := "t." + t.id
	query := "SELECT " + id + ", s.sum, " + columnsOf("t", t.columns) + " FROM " + t.table +
		" t LEFT JOIN seals s ON s.of = ? AND s.id = " + id + " ORDER BY " + id
	return db.wrap(eachRaw(ctx, db.reader, query, []any{of}, func(row []any) (bool, error) {
		r := sealedRow{row: row[2:]}
		r.id, _ = row[0].(int64)
		want, hasSeal := row[1].([]byte)
		got := sealOf(of, r.row)
		isOpenRun := of == "run_end" && row[3] == nil
		switch {
		case hasSeal && !bytes.Equal(got[:], want):
			r.broken = "is not as it was saved"
		case r.id < 1:
			r.broken = "has a row ID that assay never uses"
		case !hasSeal && !isOpenRun:
			r.broken = "has no seal: another program added it, or the seal is lost"
		}
		return visit(r)
	}))
}

// wholeRow returns the kind of row that a part of a row belongs to.
func wholeRow(of string) string {
	base, _, _ := strings.Cut(of, "_")
	return base
}

// sealRow adds the seal of a row that was just written.
func (w *writer) sealRow(of string, id int64) error {
	t := sealed[of]
	var s sum
	query := "SELECT " + t.columns + " FROM " + t.table + " WHERE " + t.id + " = ?"
	err := eachRaw(w.ctx, w.conn, query, []any{id}, func(row []any) (bool, error) {
		s = sealOf(of, row)
		return true, nil
	})
	if err != nil {
		return err
	}
	return w.addSeal(of, id, s)
}

// deletedSums returns, for each deletion, the sum of the records of its rows.
func deletedSums(ctx context.Context, q querier) (map[int64]sum, error) {
	sealers := make(map[int64]*sealer)
	query := "SELECT deletion, of, first, last FROM deleted ORDER BY of, first"
	err := eachRaw(ctx, q, query, nil, func(row []any) (bool, error) {
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

// sealDeleted seals the records of the rows of a deletion, if there are any.
func (w *writer) sealDeleted(deletion int64) error {
	sums, err := deletedSums(w.ctx, w.conn)
	s, ok := sums[deletion]
	if err != nil || !ok {
		return err
	}
	return w.addSeal("deleted", deletion, s)
}

func (w *writer) addSeal(of string, id int64, s sum) error {
	return w.exec(insertSQL("seals", "of, id, sum"), of, id, s[:])
}

func sealOf(of string, row []any) sum {
	s := newSealer("assay " + of + " 1")
	s.add(row...)
	return s.sum()
}
