package export

import (
	"bytes"
	"encoding/json"
	"reflect"
	"regexp"
)

// An absence is a run of JSON fields that are null in records without a value for them.
type absence[R any] struct {
	columns     []string
	when        string // for the columns' descriptions
	has         func(*R) bool
	empty, null []byte // the fields as encoding/json writes them, and with null
}

// newAbsence returns the absence of all fields of a struct with zero values.
func newAbsence[R any](zero any, when string, has func(*R) bool) absence[R] {
	text, err := json.Marshal(zero)
	if err != nil {
		panic("export: " + err.Error()) // the type is wrong
	}
	text = bytes.Trim(text, "{}")
	a := absence[R]{when: when, has: has, empty: text}
	a.null = zeroValue.ReplaceAll(text, []byte(":null"))
	for _, f := range fieldsOf(reflect.TypeOf(zero)) {
		a.columns = append(a.columns, f.name)
	}
	return a
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
