// Package export writes attempts to files and reads them back.
//
// It owns the two text formats and their field names, which are the JSON names
// of [assay.Attempt]. It does not choose or count attempts, opens no files and
// knows no store.
//
// Both formats hold one attempt a line, in UTF-8, with times in RFC 3339 UTC.
// What is empty is "", 0, [] or {}.
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
//
// What is written reads back equal, except that empty lists and maps become
// nil and that JSONL has no bytes that are not UTF-8.
package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/assay-eval/assay"
)

// chunk is how many bytes are gathered before they are written.
const chunk = 64 << 10

// Write writes the attempts to w and returns how many of them w has taken
// whole. It stops at the first error, of attempts or of w; the lines before it
// are good. Closing w is the caller's.
func Write(w io.Writer, format Format, attempts iter.Seq2[assay.Attempt, error]) (n int, err error) {
	out := &lineWriter{w: w}
	encode, err := encoder(out, format)
	if err != nil {
		return 0, err
	}
	for a, err := range attempts {
		if err == nil {
			a = canonical(a)
			err = encode(&a)
		} else if flushed := out.flush(); flushed != nil {
			err = fmt.Errorf("%w; then: %w", err, flushed)
		}
		if err != nil {
			return out.records(format), fmt.Errorf("export: after %d attempts: %w", out.records(format), err)
		}
	}
	if err := out.flush(); err != nil {
		return out.records(format), fmt.Errorf("export: after %d attempts: %w", out.records(format), err)
	}
	return out.records(format), nil
}

// encoder returns what adds one attempt to out.
func encoder(out *lineWriter, format Format) (func(*assay.Attempt) error, error) {
	switch format {
	case JSONL:
		e := json.NewEncoder(&out.buf)
		e.SetEscapeHTML(false)
		return func(a *assay.Attempt) error {
			if err := e.Encode(a); err != nil {
				return fmt.Errorf("trial %s: %w", a.ID, err)
			}
			return out.full()
		}, nil
	case CSV:
		e := csv.NewWriter(&out.buf)
		row := Columns()
		if err := addRow(e, row); err != nil {
			return nil, err
		}
		return func(a *assay.Attempt) error {
			for i, c := range columns {
				var err error
				if row[i], err = c.get(a); err != nil {
					return fmt.Errorf("trial %s: %s: %w", a.ID, c.name, err)
				}
			}
			if err := addRow(e, row); err != nil {
				return err
			}
			return out.full()
		}, nil
	}
	return nil, unknown(string(format))
}

func addRow(e *csv.Writer, row []string) error {
	if err := e.Write(row); err != nil {
		return err
	}
	e.Flush()
	return e.Error()
}

// canonical returns a with UTC times and without nil lists.
func canonical(a assay.Attempt) assay.Attempt {
	a.StartedAt, a.FinishedAt = a.StartedAt.UTC().Round(0), a.FinishedAt.UTC().Round(0)
	if a.RequiredTools == nil {
		a.RequiredTools = []string{}
	}
	if a.ExecutedTools == nil {
		a.ExecutedTools = []string{}
	}
	if a.Retried == nil {
		a.Retried = map[assay.FaultKind]int{}
	}
	return a
}

// plain undoes what canonical did to lists.
func plain(a assay.Attempt) assay.Attempt {
	if len(a.RequiredTools) == 0 {
		a.RequiredTools = nil
	}
	if len(a.ExecutedTools) == 0 {
		a.ExecutedTools = nil
	}
	if len(a.Retried) == 0 {
		a.Retried = nil
	}
	a.StartedAt, a.FinishedAt = a.StartedAt.UTC(), a.FinishedAt.UTC()
	return a
}

// A lineWriter writes whole chunks and counts the lines that arrived.
type lineWriter struct {
	w     io.Writer
	buf   bytes.Buffer
	lines int
}

// full writes the buffer when it holds a chunk.
func (l *lineWriter) full() error {
	if l.buf.Len() < chunk {
		return nil
	}
	return l.flush()
}

func (l *lineWriter) flush() error {
	b := l.buf.Bytes()
	if len(b) == 0 {
		return nil
	}
	n, err := l.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	l.lines += bytes.Count(b[:min(n, len(b))], []byte{'\n'})
	l.buf.Reset()
	return err
}

// records is the number of lines without the header.
func (l *lineWriter) records(format Format) int {
	if format == CSV {
		return max(0, l.lines-1)
	}
	return l.lines
}

func formatTime(t time.Time) (string, error) {
	b, err := t.MarshalText()
	return string(b), err
}
