package adapter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// A value is a JSON value that keeps the order of its members and the spelling of its numbers.
type value struct {
	kind kind
	// text is a string without its quotes, the spelling of a number, or true, false or null.
	text    string
	members []member
	items   []value
}

type kind byte

const (
	object  kind = '{'
	array   kind = '['
	text    kind = '"'
	number  kind = '0'
	boolean kind = 'b'
	null    kind = 'n'
)

type member struct {
	name  string
	value value
}

// deepest is how deep values may be nested. Deeper ones are not read.
const deepest = 500

var errDeep = errors.New("it is nested too deeply")

// parse reads one JSON value.
func parse(s string) (value, error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	v, err := next(d, deepest)
	if err != nil {
		return v, err
	}
	if _, err := d.Token(); err != io.EOF {
		return v, errors.New("text follows the value")
	}
	return v, nil
}

func next(d *json.Decoder, depth int) (v value, err error) {
	t, err := d.Token()
	if err != nil {
		return v, err
	}
	switch t := t.(type) {
	case string:
		return stringOf(t), nil
	case json.Number:
		return value{kind: number, text: string(t)}, nil
	case bool:
		return boolOf(t), nil
	case nil:
		return value{kind: null, text: "null"}, nil
	case json.Delim:
		v.kind = kind(t)
	}
	if depth == 0 {
		return v, errDeep
	}
	for d.More() {
		name := ""
		if v.kind == object {
			t, err := d.Token()
			if err != nil {
				return v, err
			}
			name, _ = t.(string)
		}
		one, err := next(d, depth-1)
		if err != nil {
			return v, err
		}
		if v.kind == object {
			v.members = append(v.members, member{name, one})
		} else {
			v.items = append(v.items, one)
		}
	}
	_, err = d.Token()
	return v, err
}

func stringOf(s string) value { return value{kind: text, text: s} }

func boolOf(b bool) value {
	if b {
		return value{kind: boolean, text: "true"}
	}
	return value{kind: boolean, text: "false"}
}

// objectOf returns an object of names and values in turn.
func objectOf(members ...member) value { return value{kind: object, members: members} }

// String returns the value as compact JSON.
func (v value) String() string {
	var b bytes.Buffer
	v.write(&b)
	return b.String()
}

func (v value) write(b *bytes.Buffer) {
	switch v.kind {
	case object:
		b.WriteByte('{')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			writeString(b, m.name)
			b.WriteByte(':')
			m.value.write(b)
		}
		b.WriteByte('}')
	case array:
		b.WriteByte('[')
		for i, item := range v.items {
			if i > 0 {
				b.WriteByte(',')
			}
			item.write(b)
		}
		b.WriteByte(']')
	case text:
		writeString(b, v.text)
	default:
		b.WriteString(v.text)
	}
}

// writeString writes a string in which <, > and & are not escaped, because a model reads it as text.
func writeString(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("adapter: encode: " + err.Error()) // no string fails
	}
	b.Truncate(b.Len() - 1) // the line break
}

// get returns the member of an object with a name.
func (v value) get(name string) (value, bool) {
	for _, m := range v.members {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// mapped returns the value with other names of members and other values that are neither objects nor
// arrays. A nil function changes nothing.
func (v value) mapped(name func(string) string, scalar func(value) value) value {
	switch v.kind {
	case object:
		members := make([]member, len(v.members))
		for i, m := range v.members {
			members[i] = member{m.name, m.value.mapped(name, scalar)}
			if name != nil {
				members[i].name = name(m.name)
			}
		}
		v.members = members
	case array:
		items := make([]value, len(v.items))
		for i, item := range v.items {
			items[i] = item.mapped(name, scalar)
		}
		v.items = items
	default:
		if scalar != nil {
			return scalar(v)
		}
	}
	return v
}
