package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// An absence is a run of JSON fields that are null in records without a value for them.
type absence[R any] struct {
	has         func(*R) bool
	empty, null []byte // the fields as encoding/json writes them, and with null
}

// newAbsence returns the absence of all fields of a struct with zero values.
func newAbsence[R any](zero any, has func(*R) bool) absence[R] {
	text, err := json.Marshal(zero)
	if err != nil {
		panic("export: " + err.Error()) // the type is wrong
	}
	text = bytes.Trim(text, "{}")
	return absence[R]{has, text, zeroValue.ReplaceAll(text, []byte(":null"))}
}

// zeroValue matches a value that has neither a comma nor a colon.
var zeroValue = regexp.MustCompile(`:[^,:]+`)

// mark replaces the fields that r has no values for by null in its JSON.
func (t *table[R]) mark(r *R, line []byte) []byte {
	for _, a := range t.absences {
		if !a.has(r) {
			line = bytes.Replace(line, a.empty, a.null, 1)
		}
	}
	return line
}

// having makes a column null in records without a value for it.
func having[R any](when string, has func(*R) bool, c column[R]) column[R] {
	c.doc = strings.TrimSuffix(c.doc, ".") + "; " + when + "."
	if c.node.Optional() { // by a stricter rule of its own
		return c
	}
	get, set, put, take := c.get, c.set, c.put, c.take
	c.node = parquet.Optional(c.node)
	c.get = func(r *R) (string, error) {
		if !has(r) {
			return "", nil
		}
		return get(r)
	}
	c.set = func(r *R, s string) error {
		if s == "" {
			return nil
		}
		return set(r, s)
	}
	c.put = func(cells *cells, r *R) error {
		if !has(r) {
			cells.null()
			return nil
		}
		return put(cells, r)
	}
	c.take = func(r *R, values []parquet.Value) error {
		if isNull(values) {
			return nil
		}
		return take(r, values)
	}
	return c
}

// missing returns an error if the column of r cannot be null, but was null in the file.
func (c *column[R]) missing(r *R) error {
	if text, err := c.get(r); err == nil && text != "" {
		return fmt.Errorf("column %s: missing value", c.name)
	}
	return nil
}

// checkNulls refuses null in a field that cannot be null. It decodes the object only if the line
// has such a null, or a text that looks like one.
func (t *table[R]) checkNulls(r *R, line []byte) error {
	nulls := bytes.Count(line, []byte("null"))
	if nulls > 0 && bytes.Contains(line, []byte(`"given_adherence":null`)) {
		nulls--
	}
	if nulls == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return err
	}
	for i := range t.columns {
		c := &t.columns[i]
		if string(fields[c.name]) != "null" {
			continue
		}
		if err := c.missing(r); err != nil {
			return err
		}
	}
	return nil
}
