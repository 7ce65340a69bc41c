package export

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/assay-eval/assay"
)

// Read returns the attempts in a file that [Write] wrote. It tells the formats
// apart itself. A file without content holds no attempts. The sequence ends
// after the first error, which comes with a zero attempt and names the line: a
// field that is unknown or, of those that every version writes, missing; a
// value that does not fit; an attempt that is neither outcome nor fault, or
// both. The sequence can be walked once.
func Read(r io.Reader) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		in := bufio.NewReaderSize(r, chunk)
		var err error
		switch first, e := sniff(in); {
		case e == io.EOF:
		case e != nil:
			err = e
		case first == '{':
			err = readJSONL(in, yield)
		default:
			err = readCSV(in, yield)
		}
		if err != nil {
			yield(assay.Attempt{}, fmt.Errorf("read attempts: %w", err))
		}
	}
}

// sniff drops a byte order mark and returns the first byte without taking it.
func sniff(in *bufio.Reader) (byte, error) {
	if mark, err := in.Peek(3); err == nil && string(mark) == "\ufeff" {
		if _, err := in.Discard(len(mark)); err != nil {
			return 0, err
		}
	}
	b, err := in.Peek(1)
	if err != nil {
		return 0, err
	}
	return b[0], nil
}

func readJSONL(in *bufio.Reader, yield func(assay.Attempt, error) bool) error {
	for number := 1; ; number++ {
		line, end := in.ReadBytes('\n')
		if end != nil && end != io.EOF {
			return end
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			a, err := parseLine(line)
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if !yield(a, nil) {
				return nil
			}
		}
		if end == io.EOF {
			return nil
		}
	}
}

func parseLine(line []byte) (assay.Attempt, error) {
	var a assay.Attempt
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&a); err != nil {
		return assay.Attempt{}, err
	}
	if _, err := d.Token(); err != io.EOF {
		return assay.Attempt{}, errors.New("more than one object on the line")
	}
	if err := hasRequired(line); err != nil {
		return assay.Attempt{}, err
	}
	return plain(a), check(&a)
}

// hasRequired looks for the fields' keys. Inside a JSON string the quotes of
// such a key would be escaped; spacing that other programs may have put before
// the colon takes the slower way.
func hasRequired(line []byte) error {
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
				return fmt.Errorf("field %s is missing", name)
			}
		}
		return nil
	}
	return nil
}

func readCSV(in io.Reader, yield func(assay.Attempt, error) bool) error {
	r := csv.NewReader(in)
	r.ReuseRecord = true
	header, err := r.Read()
	if err != nil {
		return err
	}
	order, err := parseHeader(header)
	if err != nil {
		return err
	}
	for {
		row, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		a, err := parseRow(order, row)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		if !yield(a, nil) {
			return nil
		}
	}
}

// parseHeader returns the columns in the file's order, which is free.
func parseHeader(header []string) ([]column, error) {
	order := make([]column, len(header))
	for i, name := range header {
		at := slices.IndexFunc(columns, func(c column) bool { return c.name == name })
		if at < 0 {
			return nil, fmt.Errorf("line 1: column %q is unknown\nhint: the file is neither JSONL nor CSV of \"assay export\", or of a newer assay", name)
		}
		if slices.Index(header, name) != i {
			return nil, fmt.Errorf("line 1: column %s is there twice", name)
		}
		order[i] = columns[at]
	}
	for _, name := range required {
		if !slices.Contains(header, name) {
			return nil, fmt.Errorf("line 1: column %s is missing", name)
		}
	}
	return order, nil
}

func parseRow(order []column, row []string) (assay.Attempt, error) {
	var a assay.Attempt
	for i, c := range order {
		if err := c.set(&a, row[i]); err != nil {
			return assay.Attempt{}, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return plain(a), check(&a)
}

// check refuses what would count as something that it is not.
func check(a *assay.Attempt) error {
	switch {
	case a.ID == "":
		return errors.New("trial is empty")
	case a.Number < 1:
		return fmt.Errorf("attempt is %d, but attempts count from 1", a.Number)
	}
	return a.Check()
}
