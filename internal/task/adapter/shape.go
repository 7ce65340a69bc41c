package adapter

import (
	"math/rand/v2"
	"strings"
)

// A shape is how results are arranged: in an envelope, and either with their members in two groups or
// with the members of inner objects beside their own.
type shape struct {
	envelope envelope
	groups   [2]string // of plain members and of objects and arrays; "" if results are flattened
}

// An envelope holds a result beside a member of its own, or one member further in.
type envelope struct {
	path []string
	// beside is the member beside the last one.
	beside member
	first  bool // it comes before the last one
}

var envelopes = []envelope{
	{[]string{"data"}, member{"status", stringOf("ok")}, true},
	{[]string{"response", "body"}, member{"code", value{kind: number, text: "200"}}, true},
	{[]string{"result"}, member{"ok", boolOf(true)}, true},
	{[]string{"payload"}, member{"api_version", stringOf("v2")}, false},
}

var groups = [][2]string{
	{"attributes", "relations"},
	{"summary", "details"},
	{"fields", "objects"},
}

func drawShape(dice *rand.Rand) *shape {
	s := &shape{envelope: envelopes[dice.IntN(len(envelopes))]}
	if g := groups[dice.IntN(len(groups))]; dice.IntN(2) == 0 {
		s.groups = g
	}
	return s
}

func (s *shape) nests() bool { return s.groups[0] != "" }

// wrap arranges a result.
func (s *shape) wrap(v value) value {
	if s.nests() {
		v = s.group(v)
	} else {
		v = flat(v)
	}
	e := s.envelope
	for i := len(e.path) - 1; i >= 0; i-- {
		inner := member{e.path[i], v}
		switch {
		case i < len(e.path)-1:
			v = objectOf(inner)
		case e.first:
			v = objectOf(e.beside, inner)
		default:
			v = objectOf(inner, e.beside)
		}
	}
	return v
}

// unwrap is the inverse of wrap, up to the order of members.
func (s *shape) unwrap(v value) value {
	for _, name := range s.envelope.path {
		v, _ = v.get(name)
	}
	if s.nests() {
		return s.ungroup(v)
	}
	return unflat(v)
}

// path returns the path of a field of a result.
func (s *shape) path(name string, compound bool) string {
	steps := append([]string{}, s.envelope.path...)
	switch {
	case s.nests() && compound:
		steps = append(steps, s.groups[1])
	case s.nests():
		steps = append(steps, s.groups[0])
	}
	return strings.Join(append(steps, name), ".")
}

// group puts the members of an object into two groups.
func (s *shape) group(v value) value {
	if v.kind != object {
		return v
	}
	plain, compound := objectOf(), objectOf()
	for _, m := range v.members {
		to := &plain
		if m.value.kind == object || m.value.kind == array {
			to = &compound
		}
		to.members = append(to.members, m)
	}
	return objectOf(member{s.groups[0], plain}, member{s.groups[1], compound})
}

func (s *shape) ungroup(v value) value {
	if v.kind != object {
		return v
	}
	whole := objectOf()
	for _, name := range s.groups {
		group, _ := v.get(name)
		whole.members = append(whole.members, group.members...)
	}
	return whole
}

// joint joins the names of a member and of a member within it. In names of their own, it has a
// backslash in front.
const joint = "."

var (
	escapeName   = strings.NewReplacer(`\`, `\\`, joint, `\`+joint)
	unescapeName = strings.NewReplacer(`\\`, `\`, `\`+joint, joint)
)

// flat puts the members of inner objects beside those of the outer ones, except in lists, whose
// elements are flat themselves. Empty objects stay.
func flat(v value) value {
	switch v.kind {
	case array:
		items := make([]value, len(v.items))
		for i, item := range v.items {
			items[i] = flat(item)
		}
		v.items = items
	case object:
		out := objectOf()
		for _, m := range v.members {
			name, inner := escapeName.Replace(m.name), flat(m.value)
			if inner.kind != object || len(inner.members) == 0 {
				out.members = append(out.members, member{name, inner})
				continue
			}
			for _, n := range inner.members {
				out.members = append(out.members, member{name + joint + n.name, n.value})
			}
		}
		return out
	}
	return v
}

// unflat is the inverse of flat.
func unflat(v value) value {
	switch v.kind {
	case array:
		items := make([]value, len(v.items))
		for i, item := range v.items {
			items[i] = unflat(item)
		}
		v.items = items
	case object:
		out := objectOf()
		for _, m := range v.members {
			out.put(split(m.name), unflat(m.value))
		}
		return out
	}
	return v
}

// put sets the value at a path.
func (v *value) put(path []string, to value) {
	if len(path) == 1 {
		v.members = append(v.members, member{path[0], to})
		return
	}
	for i := range v.members {
		if inner := &v.members[i]; inner.name == path[0] && inner.value.kind == object {
			inner.value.put(path[1:], to)
			return
		}
	}
	inner := objectOf()
	inner.put(path[1:], to)
	v.members = append(v.members, member{path[0], inner})
}

// split returns the names that a joined name is made of.
func split(name string) (path []string) {
	from := 0
	for i := 0; i < len(name); i++ {
		switch name[i] {
		case '\\':
			i++
		case joint[0]:
			path = append(path, unescapeName.Replace(name[from:i]))
			from = i + 1
		}
	}
	return append(path, unescapeName.Replace(name[from:]))
}
