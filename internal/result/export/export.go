// Package export writes attempts and tool calls to files, reads attempts back from JSON lines, and
// describes the files in a manifest.
//
// It defines the three formats and their field names, which are the JSON names
// of [assay.Attempt] and [Call]. It can filter attempts by their fields. It
// does not know the store, and opens no files except those listed in a
// manifest.
//
// The two text formats have one record per line, in UTF-8, with times in RFC
// 3339 UTC. Empty values are "", 0, [] or {}. Fields without a value are null:
// the fields of the outcome if an attempt is a fault, given_adherence if no plan was
// shown, and a call's chance and luck if it is a mistake. A mean over attempts
// is therefore a mean over outcomes. A fault is read back without an outcome,
// and an outcome with null in one of these fields is an error.
//
//   - JSONL: one JSON object per line. pilot is left out if it is empty. All
//     other fields are always present.
//   - CSV: a header and the columns of [Columns] as in RFC 4180, with lines
//     that end in LF. The lists required_tools and executed_tools are JSON
//     arrays, because names may contain any character; sampling and retried are
//     JSON objects. Each field of pilot has its own column, from pilot_executor
//     on. Null is an empty cell, and an empty list is []. In all other text,
//     backslash, line feed and carriage return are written as \\, \n and \r, so
//     that a line is always a record.
//   - Parquet: the columns of CSV with their types, compressed with zstd. Text
//     is STRING, whole numbers including seed are INT64, other numbers are
//     DOUBLE and flags are BOOLEAN. Times are TIMESTAMP(NANOS, UTC), which is
//     the precision of the store. pandas, pyarrow and DuckDB read them
//     directly, but DuckDB needs a cast to TIMESTAMPTZ before it can subtract
//     them. required_tools and executed_tools are LIST<STRING>; sampling and
//     retried have the type JSON, with the same text as in CSV. The zero time is
//     null, too. The file's metadata has assay.table, assay.format_version,
//     assay.program and assay.snapshot.
//
// JSONL and Parquet replace bytes that are not UTF-8. Parquet refuses times outside the years 1678
// to 2262 and seeds from 2^63 on. Attempts read back from JSONL are equal to those written, except
// that lists and maps that were nil are empty.
//
// A [Manifest] is written next to the files as JSON. Its field names are a contract like the names
// in the records: fields are added but never renamed.
package export

import (
	"fmt"
	"io"
	"iter"

	"github.com/assay-eval/assay"
)

// Version is the version of the formats and the manifest. It changes only if a
// reader of the old version would misunderstand a file, so not when a field is
// added.
const Version = 1

// A Table is a kind of record.
type Table string

// The tables. Foreign formats contain trials in their own form, and formats for collections also records
// with figures.
const (
	AttemptTable Table = "attempts"
	CallTable    Table = "calls"
	TrialTable   Table = "trials"
	RecordTable  Table = "records"
)

// An Origin is the version of the exporting program and the snapshot of the
// store. Parquet files contain it.
type Origin struct {
	Program  string
	Snapshot string
}

// Write writes the attempts to w and returns their number. It stops at the
// first error of records or of w, and then returns 0.
//
// In the text formats, the lines before an error are valid. A Parquet file is
// valid only if Write returns no error. Write does not close w.
func (o Origin) Write(
	w io.Writer, format Format, records iter.Seq2[assay.Attempt, error],
) (n int, err error) {
	return write(w, format, attempts(), o, records)
}

// WriteCalls is [Origin.Write] for calls.
func (o Origin) WriteCalls(
	w io.Writer, format Format, records iter.Seq2[Call, error],
) (n int, err error) {
	return write(w, format, calls(), o, records)
}

// Write is [Origin.Write] without an origin.
func Write(w io.Writer, format Format, records iter.Seq2[assay.Attempt, error]) (n int, err error) {
	return Origin{}.Write(w, format, records)
}

// Columns returns the names of the fields of an attempt in the order of all
// formats.
func Columns() []string { return names(attempts().columns) }

// An encoder writes records to a file.
type encoder[R any] interface {
	add(*R) error
	// finish writes buffered records, and completes the file if it has all of them. Otherwise it only
	// writes what can be read in an unfinished file.
	finish(all bool) error
}

func write[R any](
	w io.Writer, format Format, t *table[R], from Origin, records iter.Seq2[R, error],
) (int, error) {
	out, err := newEncoder(w, format, t, from)
	if err != nil {
		return 0, err
	}
	n := 0
	after := func(err error) (int, error) {
		return 0, fmt.Errorf("export: after %d %s: %w", n, t.name, err)
	}
	for r, err := range records {
		if err == nil {
			r = t.canonical(r)
			err = out.add(&r)
		} else if flushed := out.finish(false); flushed != nil {
			err = fmt.Errorf("%w; then: %w", err, flushed)
		}
		if err != nil {
			return after(err)
		}
		n++
	}
	if err := out.finish(true); err != nil {
		return after(err)
	}
	return n, nil
}

func newEncoder[R any](w io.Writer, format Format, t *table[R], from Origin) (encoder[R], error) {
	switch format {
	case JSONL:
		return newJSONL(w, t), nil
	case CSV:
		return newCSV(w, t)
	case Parquet:
		return newParquet(w, t, from), nil
	}
	return nil, unknown(string(format))
}
