package export

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"

	"github.com/assay-eval/assay"
)

// chunk is the number of bytes that are buffered before a write.
const chunk = 64 << 10

// A lineWriter writes in chunks.
type lineWriter struct{ *bufio.Writer }

func newLines(w io.Writer) lineWriter { return lineWriter{bufio.NewWriterSize(w, chunk)} }

func (l lineWriter) finish(bool) error { return l.Flush() }

type jsonlWriter[R any] struct {
	lineWriter
	table *table[R]
	line  bytes.Buffer
	json  *json.Encoder
}

func newJSONL[R any](w io.Writer, t *table[R]) *jsonlWriter[R] {
	l := &jsonlWriter[R]{lineWriter: newLines(w), table: t}
	l.json = json.NewEncoder(&l.line)
	l.json.SetEscapeHTML(false)
	return l
}

func (l *jsonlWriter[R]) add(r *R) error {
	l.line.Reset()
	if err := l.json.Encode(r); err != nil {
		return fmt.Errorf("%s: %w", l.table.label(r), err)
	}
	_, err := l.Write(l.table.mark(r, l.line.Bytes()))
	return err
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
	csv   *csv.Writer // writes to the lines without a buffer of its own
	row   []string
}

func newCSV[R any](w io.Writer, t *table[R]) (*csvWriter[R], error) {
	l := &csvWriter[R]{lineWriter: newLines(w), table: t, row: names(t.columns)}
	l.csv = csv.NewWriter(l.Writer)
	return l, l.csv.Write(l.row)
}

func (l *csvWriter[R]) add(r *R) error {
	for i, c := range l.table.columns {
		var err error
		if l.row[i], err = c.get(r); err != nil {
			return fmt.Errorf("%s: %s: %w", l.table.label(r), c.name, err)
		}
	}
	return l.csv.Write(l.row)
}
