// Package export writes attempts and their calls of tools to files, reads them
// back, and describes the files in a manifest.
//
// It owns the three formats and their field names, which are the JSON names of
// [assay.Attempt] and [Call]. It chooses attempts by what a user asks of their
// fields, opens no files but those that a manifest names and knows no store.
//
// The two text formats hold one record a line, in UTF-8, with times in RFC 3339
// UTC. What is empty is "", 0, [] or {}.
//
//   - JSONL: one JSON object a line. given_adherence is null where no plan was
//     shown, and pilot is left out where there is none; no other field is.
//   - CSV: a header and the columns of [Columns], as RFC 4180 says, with LF as
//     the end of a line. The lists required_tools and executed_tools are JSON
//     arrays, for names may hold any character; sampling and retried are JSON
//     objects. The fields of pilot have columns of their own, from
//     pilot_executor on; these and given_adherence are empty where there is
//     none. In all other text a backslash, a line feed and a carriage return
//     are written \\, \n and \r, so that a line is always a record.
//   - Parquet: the columns of CSV with their types, compressed with zstd. Text
//     is STRING; whole numbers, seed too, are INT64; other numbers are DOUBLE
//     and flags BOOLEAN. Times are TIMESTAMP(NANOS, UTC), for that is how
//     precise they are stored; pandas, pyarrow and DuckDB read them as such,
//     and DuckDB wants a cast to TIMESTAMPTZ before it subtracts them.
//     required_tools and executed_tools are LIST<STRING>; sampling and retried
//     are of the type JSON, which is the text that CSV has. Null are
//     given_adherence and the fields of pilot where CSV has nothing, and the
//     zero time; nothing else is. The file's metadata holds assay.table,
//     assay.format_version, assay.program and assay.snapshot.
//
// What is written reads back equal, except that empty lists and maps become
// nil, that JSONL and Parquet have no bytes that are not UTF-8, and that
// Parquet has no times outside the years 1678 to 2262 and no seeds from 2^63
// on, which it refuses.
//
// Beside the files lies the JSON of a [Manifest]. Its field names are as much a
// contract as those of the records: fields are added, never renamed.
package export

import (
	"fmt"
	"io"
	"iter"

	"github.com/assay-eval/assay"
)

// Version numbers the formats and the manifest. A field more leaves it as it
// is: it changes when a reader of the old one would misunderstand a file.
const Version = 1

// A Table is a kind of record.
type Table string

// The tables. Formats of other systems hold trials, in ways of their own.
const (
	AttemptTable Table = "attempts"
	CallTable    Table = "calls"
	TrialTable   Table = "trials"
)

// An Origin tells where records come from: the version of the program that
// exports them and the snapshot of the store. Parquet files carry it.
type Origin struct {
	Program  string
	Snapshot string
}

// Write writes the attempts to w and returns how many of them w has taken
// whole. It stops at the first error, of attempts or of w. In the text formats
// the lines before it are good; a Parquet file is good when Write has returned
// without an error, and holds nothing before. Closing w is the caller's.
func (o Origin) Write(w io.Writer, format Format, records iter.Seq2[assay.Attempt, error]) (n int, err error) {
	return write(w, format, &attempts, o, records)
}

// WriteCalls is [Origin.Write] for calls.
func (o Origin) WriteCalls(w io.Writer, format Format, records iter.Seq2[Call, error]) (n int, err error) {
	return write(w, format, &calls, o, records)
}

// Write is [Origin.Write] without an origin.
func Write(w io.Writer, format Format, records iter.Seq2[assay.Attempt, error]) (n int, err error) {
	return Origin{}.Write(w, format, records)
}

// WriteCalls is [Origin.WriteCalls] without an origin.
func WriteCalls(w io.Writer, format Format, records iter.Seq2[Call, error]) (n int, err error) {
	return Origin{}.WriteCalls(w, format, records)
}

// Columns returns the names of the fields of an attempt, in the order of all
// formats.
func Columns() []string { return names(attemptColumns) }

// An encoder turns records into the bytes of a file.
type encoder[R any] interface {
	add(*R) error
	// flush writes what add keeps back, as far as it can be read in a file
	// without an end.
	flush() error
	// close flushes and ends the file.
	close() error
	// records counts those that have reached the file so that they can be read.
	records() int
}

func write[R any](w io.Writer, format Format, t *table[R], from Origin, records iter.Seq2[R, error]) (int, error) {
	out, err := newEncoder(w, format, t, from)
	if err != nil {
		return 0, err
	}
	after := func(err error) (int, error) {
		return out.records(), fmt.Errorf("export: after %d %s: %w", out.records(), t.name, err)
	}
	for r, err := range records {
		if err == nil {
			r = t.canonical(r)
			err = out.add(&r)
		} else if flushed := out.flush(); flushed != nil {
			err = fmt.Errorf("%w; then: %w", err, flushed)
		}
		if err != nil {
			return after(err)
		}
	}
	if err := out.close(); err != nil {
		return after(err)
	}
	return out.records(), nil
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
