package export

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// An Object is a JSON object whose members keep their order: pairs of a name and a value.
type Object [][2]any

// MarshalJSON writes the members in order, without those that are [OrOmit].
func (o Object) MarshalJSON() ([]byte, error) {
	b := bytes.NewBufferString("{")
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	for _, m := range o {
		if m[1] == any(omitted{}) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		if err := e.Encode(m[0]); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := e.Encode(m[1]); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

type omitted struct{}

// OrOmit returns a value, or a mark that an [Object] leaves out if it is the zero value or empty.
func OrOmit(value any) any {
	v := reflect.ValueOf(value)
	if !v.IsValid() || v.IsZero() || v.Kind() == reflect.Slice && v.Len() == 0 {
		return omitted{}
	}
	return value
}
