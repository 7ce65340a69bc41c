package toolkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.starlark.net/starlark"
)

// A Change is an operation of a JSON Patch (RFC 6902): add, remove or replace.
type Change struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`

	at location
}

// A location has the names and indexes that lead to a value of the state.
type location []any

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// below returns the location of a member or an element.
func (p location) below(name any) location { return append(slices.Clip(p), name) }

func (p location) pointer() string {
	var b strings.Builder
	for _, name := range p {
		b.WriteString("/" + escapes.Replace(fmt.Sprint(name)))
	}
	return b.String()
}

// Changes returns how the state differs from the library's base.
func (s *Session) Changes() ([]Change, error) {
	d := &differ{in: s.state, all: []Change{}}
	v, ok := s.root().(view)
	if ok {
		v.differ(d, nil)
	}
	for i := range d.all {
		d.all[i].Path = d.all[i].at.pointer()
	}
	return d.all, d.err
}

type differ struct {
	in  *overlay
	all []Change
	err error
}

func elements(list *starlark.List) []starlark.Value { return slices.Collect(list.Elements()) }

// replaced reports whether a change has the whole value at a location.
func (d *differ) replaced(at location) bool {
	return slices.ContainsFunc(d.all, func(c Change) bool {
		return c.Op != "remove" && slices.Equal(c.at, at)
	})
}

// replace adds a change unless the values are equal.
func (d *differ) replace(at location, before, now starlark.Value) {
	was, err := encodeWithin(anySize, before)
	n := len(d.all)
	if d.add("replace", at, now); err == nil && d.err == nil && bytes.Equal(was, d.all[n].Value) {
		d.all = d.all[:n]
	}
}

// anySize is no limit.
const anySize = 1 << 40

func (d *differ) add(op string, at location, now starlark.Value) {
	c := Change{Op: op, at: at}
	if now != nil && d.err == nil {
		now, d.err = (&flattener{left: anySize}).settled(d.in, now, 0)
		if d.err == nil {
			c.Value, d.err = encodeWithin(anySize, now)
		}
	}
	d.all = append(d.all, c)
}

// After returns a session with the state that another one had in the end; see [Session.State].
func (k *Kit) After(state json.RawMessage) (*Session, error) {
	if k.base == nil {
		s := k.Begin(state)
		return s, s.err
	}
	s := k.Begin(nil)
	var changes []Change
	if len(state) > 0 && s.err == nil {
		s.err = json.Unmarshal(state, &changes)
	}
	for _, c := range changes {
		if s.err == nil {
			s.err = s.apply(c)
		}
	}
	if s.err != nil {
		return nil, fmt.Errorf("the state cannot be read: %w", s.err)
	}
	s.size = 0
	return s, s.state.end(true, func(int) error { return nil })
}

var plain = strings.NewReplacer("~1", "/", "~0", "~")

// apply carries out a change.
func (s *Session) apply(c Change) error {
	names := strings.Split(c.Path, "/")[1:]
	missing := fmt.Errorf("there is nothing at %s", c.Path)
	v := s.root()
	for i, name := range names {
		name = plain.Replace(name)
		in, ok := v.(view)
		if ok && i == len(names)-1 {
			return in.alter(name, c)
		}
		if v, ok = partOf(v, name); !ok {
			return missing
		}
	}
	return missing
}

// partOf returns a part of a value by its name or index.
func partOf(v starlark.Value, name string) (starlark.Value, bool) {
	if v, ok := v.(view); ok {
		return v.part(name)
	}
	return nil, false
}

// A Difference is a value that differs between two states. A value that one of them lacks is nil.
// The path has names of members and indexes of elements.
type Difference struct {
	Path          []any
	Before, After json.RawMessage
}

// Since returns how the state differs from an earlier one.
func (s *Session) Since(start *Session) (all []Difference, err error) {
	now, err := s.Changes()
	if err != nil {
		return nil, err
	}
	before, err := start.Changes()
	if err != nil {
		return nil, err
	}
	var seen []location
	for _, c := range append(now, before...) {
		at := c.at
		if _, element := at[len(at)-1].(int); element && c.Op != "replace" {
			at = at[:len(at)-1] // the other elements have moved
		}
		if slices.ContainsFunc(seen, func(p location) bool {
			return len(p) <= len(at) && slices.Equal(p, at[:len(p)])
		}) {
			continue
		}
		seen = append(seen, at)
		d := Difference{Path: at}
		if d.Before, err = start.at(at); err == nil {
			d.After, err = s.at(at)
		}
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(d.Before, d.After) {
			all = append(all, d)
		}
	}
	return all, nil
}

// at returns the value at a location, or nil if there is none.
func (s *Session) at(p location) (json.RawMessage, error) {
	v := s.root()
	for _, name := range p {
		var ok bool
		if v, ok = partOf(v, fmt.Sprint(name)); !ok {
			return nil, nil
		}
	}
	return encodeWithin(anySize, v)
}

// Part returns the part of the state that another value names: the members of its objects. It is
// nil if the state lacks it.
func (s *Session) Part(want json.RawMessage) (json.RawMessage, error) {
	w, err := decode(want)
	if err != nil {
		return nil, err
	}
	var part func(v, w starlark.Value) starlark.Value
	part = func(v, w starlark.Value) starlark.Value {
		d, ok := v.(*dictView)
		names, object := w.(*starlark.Dict)
		if !ok || !object {
			return v
		}
		out := new(starlark.Dict)
		for name, w := range names.Entries() {
			if v, found, _ := d.Get(name); found {
				_ = out.SetKey(name, part(v, w)) // it is a key
			}
		}
		return out
	}
	return encodeWithin(anySize, part(s.root(), w))
}
