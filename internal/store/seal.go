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
	"slices"
	"strconv"
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

// sealedFields are how many of attemptFields the earlier formats of an attempt's seal cover. The
// latest format covers all.
var sealedFields = [...]int{39, 52, 53}

// identify returns a sum that identifies an attempt in any store. It covers its trial, its run,
// the values of attemptFields and the digest of its transcript. Fields that were added later are
// covered if any of them is set, so an attempt of an earlier format keeps its sum.
func identify(key trialKey, run string, row []any, transcript []byte) sum {
	format := len(sealedFields) + 1
	for format > 1 && !slices.ContainsFunc(row[sealedFields[format-2]:], isSet) {
		format--
		row = row[:sealedFields[format-1]]
	}
	s := newSealer("assay attempt " + strconv.Itoa(format))
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

// isSet reports whether a value of a column differs from the column's default.
func isSet(value any) bool { return value != "" && value != int64(0) && value != 0.0 }

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
	row []any // the sealed columns; they are good until the next row
	// broken is the reason not to trust the row, or empty.
	broken string
}

// eachSealed visits the rows of a table in the order of their IDs.
func (db *DB) eachSealed(
	ctx context.Context, of string, visit func(sealedRow) (bool, error),
) error {
	t := sealed[of]
	unsealed, err := db.unsealed(ctx, wholeRow(of))
	if err != nil {
		return err
	}
	id := "t." + t.id
	query := "SELECT " + id + ", s.sum, t." + strings.Join(columnNames(t.columns), ", t.") +
		" FROM " +
		t.table + " t LEFT JOIN seals s ON s.of = ? AND s.id = " + id + " ORDER BY " + id
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
		case !hasSeal && !isOpenRun && r.id > unsealed:
			r.broken = "has no seal: another program added it, or the seal is lost"
		}
		return visit(r)
	}))
}

// unsealed returns the row ID up to which rows are older than seals. If the table that holds it
// is not as it was saved, only the rows before the first seal count as older.
func (db *DB) unsealed(ctx context.Context, of string) (last int64, err error) {
	query := "SELECT ifnull((SELECT last FROM unsealed WHERE of = ?), 0)"
	if proved, err := db.unsealedProved(ctx); err != nil || !proved {
		first := "min(id) FROM seals WHERE of = ?"
		if of == "attempt" {
			first = "min(attempt) FROM attempt_seals WHERE ? <> ''"
		}
		query = fmt.Sprintf("SELECT ifnull((SELECT %s), %d) - 1", first, int64(math.MaxInt64))
	}
	err = db.reader.QueryRowContext(ctx, query, of).Scan(&last)
	return last, db.wrap(err)
}

// unsealedProved reports whether the table of rows without seals is as it was saved.
func (db *DB) unsealedProved(ctx context.Context) (proved bool, err error) {
	got, err := unsealedSum(ctx, db.reader)
	if err != nil {
		return false, err
	}
	query := "SELECT sum FROM seals WHERE of = 'unsealed' AND id = 0"
	want, err := values[[]byte](ctx, db.reader, query)
	return len(want) == 1 && bytes.Equal(got[:], want[0]), err
}

// wholeRow returns the kind of row that a part of a row belongs to.
func wholeRow(of string) string {
	base, _, _ := strings.Cut(of, "_")
	return base
}

func columnNames(list string) []string {
	return strings.Split(strings.Join(strings.Fields(list), " "), ", ")
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

// ledgerFormat is the first format in which the rows that excuse others are sealed.
const ledgerFormat = 6

// sealLedger seals the rows of an older store that excuse others from existing, or from having
// a seal.
func sealLedger(ctx context.Context, conn *sql.Conn) (err error) {
	w := newWriter(ctx, conn)
	defer func() { err = errors.Join(err, w.finalize()) }()
	deletions, err := values[int64](ctx, conn, "SELECT id FROM deletions")
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

// unsealedSum returns the sum of the table of rows without seals.
func unsealedSum(ctx context.Context, q querier) (sum, error) {
	s := newSealer("assay unsealed 1")
	query := "SELECT of, last FROM unsealed ORDER BY of"
	err := eachRaw(ctx, q, query, nil, func(row []any) (bool, error) {
		s.add(row...)
		return true, nil
	})
	return s.sum(), err
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
