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

// A lineWriter writes in chunks and counts the lines that were written.
type lineWriter struct {
	*bufio.Writer
	to     lineCounter
	header int // number of header lines
}

func newLines(w io.Writer, header int) *lineWriter {
	l := &lineWriter{to: lineCounter{w: w}, header: header}
	l.Writer = bufio.NewWriterSize(&l.to, chunk)
	return l
}

func (l *lineWriter) flush() error { return l.Flush() }

func (l *lineWriter) close() error { return l.Flush() }

func (l *lineWriter) records() int { return max(0, l.to.lines-l.header) }

// A lineCounter counts the ends of lines that a writer accepts.
type lineCounter struct {
	w     io.Writer
	lines int
}

func (c *lineCounter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.lines += bytes.Count(p[:min(n, len(p))], []byte{'\n'})
	return n, err
}

type jsonlWriter[R any] struct {
	*lineWriter
	table *table[R]
	line  bytes.Buffer
	json  *json.Encoder
}

func newJSONL[R any](w io.Writer, t *table[R]) *jsonlWriter[R] {
	l := &jsonlWriter[R]{lineWriter: newLines(w, 0), table: t}
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
	*lineWriter
	table *table[R]
	csv   *csv.Writer // writes to the lines without a buffer of its own
	row   []string
}

func newCSV[R any](w io.Writer, t *table[R]) (*csvWriter[R], error) {
	l := &csvWriter[R]{lineWriter: newLines(w, 1), table: t, row: names(t.columns)}
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
