package export

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/assay-eval/assay"
)

// Read returns the attempts in a file that [Write] wrote. It recognises the
// format. An empty file has no attempts. The sequence can be iterated once.
//
// The sequence ends after the first error, which comes with a zero attempt and
// contains the line or, in Parquet, the row. These are errors: an unknown
// field, a missing field that every version writes, a value that does not fit,
// and an attempt that is neither an outcome nor a fault, or both.
//
// If r is an [io.ReaderAt] and [io.Seeker], such as an [os.File], Parquet is
// read in place; otherwise Read keeps all of r in memory. The file may have
// been rewritten by another program if it is still compressed with zstd.
func Read(r io.Reader) iter.Seq2[assay.Attempt, error] { return read(r, attempts()) }

// ReadCalls is like [Read] for files that [Origin.WriteCalls] wrote.
func ReadCalls(r io.Reader) iter.Seq2[Call, error] { return read(r, calls()) }

func read[R any](r io.Reader, t *table[R]) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		in := bufio.NewReaderSize(r, chunk)
		var err error
		switch start, e := sniff(in); {
		case e == io.EOF:
		case e != nil:
			err = e
		case start == magic:
			err = readParquet(r, in, t, yield)
		case start[0] == '{':
			err = readJSONL(in, t, yield)
		default:
			err = readCSV(in, t, yield)
		}
		if err != nil {
			var zero R
			yield(zero, fmt.Errorf("read %s: %w", t.name, err))
		}
	}
}

// magic is at the start and the end of Parquet files.
const magic = "PAR1"

// sniff skips a byte order mark and returns the first bytes without consuming
// them. It returns as many as magic has, or fewer if the file is shorter.
func sniff(in *bufio.Reader) (string, error) {
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" {
		if _, err := in.Discard(len(mark)); err != nil {
			return "", err
		}
	}
	b, err := in.Peek(len(magic))
	if len(b) == 0 {
		return "", err
	}
	return string(b), nil
}

func readJSONL[R any](in *bufio.Reader, t *table[R], yield func(R, error) bool) error {
	for number := 1; ; number++ {
		line, end := in.ReadBytes('\n')
		if end != nil && end != io.EOF {
			return end
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			r, err := parseLine(t, line)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if !yield(r, nil) {
				return nil
			}
		}
		if end == io.EOF {
			return nil
		}
	}
}

func parseLine[R any](t *table[R], line []byte) (R, error) {
	var r, zero R
	if err := unmarshal(line, &r); err != nil {
		return zero, err
	}
	if err := hasRequired(line, t.required); err != nil {
		return zero, err
	}
	if err := t.checkNulls(&r, line); err != nil {
		return zero, err
	}
	return t.plain(r), t.check(&r)
}

// hasRequired checks that the required fields are present. It first searches
// for the keys as text, which is safe because quotes inside JSON strings are
// escaped. If a key is not found, another program may have put spaces before
// the colon, so it decodes the object.
func hasRequired(line []byte, required []string) error {
	quick := make([]byte, 0, 32)
	for _, name := range required {
		quick = append(append(append(quick[:0], '"'), name...), '"', ':')
		if bytes.Contains(line, quick) {
			continue
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			return err
		}
		for _, name := range required {
			if _, ok := fields[name]; !ok {
				return fmt.Errorf("missing field %s", name)
			}
		}
		return nil
	}
	return nil
}

func readCSV[R any](in io.Reader, t *table[R], yield func(R, error) bool) error {
	file := csv.NewReader(in)
	file.ReuseRecord = true
	header, err := file.Read()
	if err != nil {
		return err
	}
	order, err := parseHeader(t, header)
	if err != nil {
		return fmt.Errorf("line 1: %w", err)
	}
	for {
		row, err := file.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := file.FieldPos(0)
		r, err := parseRow(t, order, row)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if !yield(r, nil) {
			return nil
		}
	}
}

// parseHeader returns the columns in the order of the file, which may be any.
func parseHeader[R any](t *table[R], header []string) ([]*fieldColumn[R], error) {
	order := make([]*fieldColumn[R], len(header))
	for i, name := range header {
		if order[i] = t.column(name); order[i] == nil {
			return nil, fmt.Errorf("unknown column %q\nhint: check that the file holds %s "+
				"exported by this version of assay", name, t.name)
		}
		if slices.Index(header, name) != i {
			return nil, fmt.Errorf("duplicate column %s", name)
		}
	}
	for _, name := range t.required {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("missing column %s", name)
		}
	}
	return order, nil
}

func parseRow[R any](t *table[R], order []*fieldColumn[R], row []string) (R, error) {
	var r, zero R
	for i, c := range order {
		if err := c.set(&r, row[i]); err != nil {
			return zero, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	for i, c := range order {
		if row[i] == "" {
			if err := c.missing(&r); err != nil {
				return zero, err
			}
		}
	}
	return t.plain(r), t.check(&r)
}
