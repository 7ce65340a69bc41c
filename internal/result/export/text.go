package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"github.com/assay-eval/assay"
)

// chunk is the number of bytes that are buffered before a write.
const chunk = 64 << 10

// A lineWriter writes in chunks and counts the lines that were written.
type lineWriter struct {
	w      io.Writer
	buf    bytes.Buffer
	header int // number of header lines
	lines  int
}

// full writes the buffer if it holds a chunk.
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

func (l *lineWriter) close() error { return l.flush() }

func (l *lineWriter) records() int { return max(0, l.lines-l.header) }

type jsonlWriter[R any] struct {
	lineWriter
	table *table[R]
	line  bytes.Buffer
	json  *json.Encoder
}

func newJSONL[R any](w io.Writer, t *table[R]) *jsonlWriter[R] {
	l := &jsonlWriter[R]{lineWriter: lineWriter{w: w}, table: t}
	l.json = json.NewEncoder(&l.line)
	l.json.SetEscapeHTML(false)
	return l
}

func (l *jsonlWriter[R]) add(r *R) error {
	l.line.Reset()
	if err := l.json.Encode(r); err != nil {
		return fmt.Errorf("%s: %w", l.table.label(r), err)
	}
	l.buf.Write(l.table.mark(r, l.line.Bytes()))
	return l.full()
}

// JSON returns an attempt as [JSONL] has it.
func JSON(a assay.Attempt) (json.RawMessage, error) {
	var line bytes.Buffer
	_, err := Write(&line, JSONL, func(yield func(assay.Attempt, error) bool) { yield(a, nil) })
	return bytes.TrimSpace(line.Bytes()), err
}

type csvWriter[R any] struct {
	lineWriter
	table *table[R]
	csv   *csv.Writer
	row   []string
}

func newCSV[R any](w io.Writer, t *table[R]) (*csvWriter[R], error) {
	l := &csvWriter[R]{lineWriter: lineWriter{w: w, header: 1}, table: t, row: names(t.columns)}
	l.csv = csv.NewWriter(&l.buf)
	return l, l.addRow()
}

func (l *csvWriter[R]) add(r *R) error {
	for i, c := range l.table.columns {
		var err error
		if l.row[i], err = c.get(r); err != nil {
			return fmt.Errorf("%s: %s: %w", l.table.label(r), c.name, err)
		}
	}
	if err := l.addRow(); err != nil {
		return err
	}
	return l.full()
}

func (l *csvWriter[R]) addRow() error {
	if err := l.csv.Write(l.row); err != nil {
		return err
	}
	l.csv.Flush()
	return l.csv.Error()
}
