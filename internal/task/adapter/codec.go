package adapter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A codec translates the arguments that a part of a schema describes. A nil one changes nothing.
type codec struct {
	members map[string]*codec // by their own names; nil if it is no object with listed members
	names   naming            // of the members
	items   *codec            // of a list
	// swap swaps a value with the one that is offered, and lacks says what a value is not that
	// is not offered. Both are nil if values stay as they are.
	swap  func(value) (value, bool)
	lacks func(offered value) string
	// offered changes the rest of the schema. It may be nil.
	change func(schema value) value
}

// schemaOf returns the schema of a tool's arguments.
func schemaOf(t assay.Tool) schema {
	if len(t.Schema) > 0 {
		v, _ := parse(string(t.Schema)) // what is no schema describes nothing
		return schema{v}
	}
	properties := objectOf()
	for _, p := range t.Parameters {
		properties.members = append(properties.members,
			member{p.Name, objectOf(member{"type", stringOf(p.Type)}, member{"description", stringOf(p.Description)})})
	}
	return schema{objectOf(member{"type", stringOf("object")}, member{"properties", properties})}
}

// A schema is a JSON schema, or a part of one.
type schema struct{ value }

// combined are the keywords of schemas whose names are not translated.
var combined = []string{
	"$ref", "$dynamicRef", "if", "patternProperties", "dependencies", "dependentRequired", "dependentSchemas",
	"propertyNames", "not", "allOf",
}

// isPlain reports whether a schema has no keyword that combines others, beside those that only choose
// between a value and null.
func (s schema) isPlain() bool {
	return !slices.ContainsFunc(combined, func(name string) bool {
		_, ok := s.get(name)
		return ok
	})
}

// one returns the schema of the values that are not null, and its type. The type is "" if there are
// several.
func (s schema) one() (schema, string) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		choices, ok := s.get(keyword)
		if !ok {
			continue
		}
		var kept []schema
		for _, c := range choices.items {
			if kind, _ := c.get("type"); kind.text != "null" {
				kept = append(kept, schema{c})
			}
		}
		if _, own := s.get("properties"); len(kept) != 1 || own {
			return s, ""
		}
		return kept[0].one()
	}
	kind, _ := s.get("type")
	kinds := slices.DeleteFunc(slices.Clone(kind.items), func(v value) bool { return v.text == "null" })
	if len(kinds) == 1 {
		kind = kinds[0]
	}
	return s, kind.text
}

// members returns the listed members of an object.
func (s schema) properties() []member {
	if !s.isPlain() {
		return nil
	}
	p, _ := s.get("properties")
	return p.members
}

// each calls a function with all names of members.
func (s schema) each(name func(string)) {
	s, _ = s.one()
	for _, m := range s.properties() {
		name(m.name)
		schema{m.value}.each(name)
	}
	if items, ok := s.get("items"); ok && s.isPlain() {
		schema{items}.each(name)
	}
}

func (a *Adapter) codecOf(s schema) *codec {
	s, kind := s.one()
	if !s.isPlain() || s.value.kind != object {
		return nil
	}
	if members := s.properties(); len(members) > 0 {
		c := &codec{members: make(map[string]*codec)}
		for _, m := range members {
			c.members[m.name] = a.codecOf(schema{m.value})
		}
		c.names = a.names.only(c.members)
		return c
	}
	if items, ok := s.get("items"); ok && kind == "array" {
		return &codec{items: a.codecOf(schema{items})}
	}
	if a.formats == nil {
		return nil
	}
	return a.formats.codecOf(s, kind)
}

// codecOf returns the codec of values that are neither objects nor lists.
func (f *formats) codecOf(s schema, kind string) *codec {
	choices, listed := s.get("enum")
	if !listed {
		if c, ok := s.get("const"); ok {
			choices, listed = value{items: []value{c}}, true
		}
	}
	switch {
	case kind == "number" || kind == "integer":
		return &codec{
			swap: swapNumber, lacks: unless(text, `a number in quotes, such as "12"`, swapNumber),
			change: numberText,
		}
	case kind == "boolean":
		words := fmt.Sprintf("%q or %q", f.yes, f.no)
		return &codec{
			swap: f.swapBoolean, lacks: unless(text, words, f.swapBoolean),
			change: func(s value) value {
				enum := value{kind: array, items: []value{stringOf(f.yes), stringOf(f.no)}}
				if _, listed := s.get("enum"); listed {
					return s.with("type", stringOf("string"))
				}
				return s.with("type", stringOf("string")).with("enum", enum)
			},
		}
	case listed:
		return choice(choices.items)
	case kind == "string":
		return f.textCodec(s)
	}
	return nil
}

// unless returns a function that says what a value is not, unless it is of a kind and a swap knows it.
func unless(want kind, what string, swap func(value) (value, bool)) func(value) string {
	return func(offered value) string {
		if _, ok := swap(offered); offered.kind == null || ok && offered.kind == want {
			return ""
		}
		return what
	}
}

// choice returns the codec of texts that a schema lists: in capitals, or in small letters if they are
// in capitals.
func choice(values []value) *codec {
	known := make(map[string]bool)
	for _, v := range values {
		if v.kind != text {
			return nil
		}
		known[v.text] = true
	}
	swaps := make(naming)
	for _, own := range slices.Sorted(maps.Keys(known)) {
		offered := strings.ToUpper(own)
		if offered == own {
			offered = strings.ToLower(own)
		}
		if _, taken := swaps[offered]; taken || known[offered] {
			continue
		}
		swaps[own], swaps[offered] = offered, own
	}
	var words []string
	for _, v := range values {
		words = append(words, fmt.Sprintf("%q", swaps.offer(v.text)))
	}
	return &codec{
		swap: func(v value) (value, bool) {
			other, ok := swaps[v.text]
			if v.kind != text || !ok {
				return v, false
			}
			return stringOf(other), true
		},
		lacks: func(offered value) string {
			if own := swaps.offer(offered.text); offered.kind != null && !(offered.kind == text && known[own]) {
				return "one of " + strings.Join(words, ", ")
			}
			return ""
		},
	}
}

// textCodec returns the codec of texts, which may be dates or times. Texts of another format stay as
// they are.
func (f *formats) textCodec(s schema) *codec {
	format, hasFormat := s.get("format")
	pattern, hasPattern := s.get("pattern")
	dated := slices.Contains([]string{"date", "date-time", "time"}, format.text)
	if hasFormat && !dated || hasPattern && !dated && !strings.Contains(pattern.text, `\d{4}-\d{2}-\d{2}`) {
		return nil
	}
	return &codec{
		swap: f.swapText,
		lacks: func(offered value) string {
			if offered.kind == text && f.isOwn(offered.text) {
				return fmt.Sprintf("written as the tool writes dates (%s) and times (2:30 PM)", f.dates.named)
			}
			return ""
		},
		change: func(s value) value {
			if dated || hasPattern {
				s = s.without("format", "pattern", "minLength", "maxLength")
			}
			return s
		},
	}
}

// numberText describes a number as a text.
func numberText(s value) value {
	hint := `Written in quotes, such as "12"`
	var bounds []string
	for _, b := range []struct{ keyword, words string }{
		{"minimum", "at least "},
		{"exclusiveMinimum", "more than "},
		{"maximum", "at most "},
		{"exclusiveMaximum", "less than "},
		{"multipleOf", "a multiple of "},
	} {
		if v, ok := s.get(b.keyword); ok && v.kind == number {
			bounds = append(bounds, b.words+v.text)
		}
	}
	if len(bounds) > 0 {
		hint += "; " + strings.Join(bounds, ", ")
	}
	about, _ := s.get("description")
	s = s.without("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "format")
	return s.with("type", stringOf("string")).with("description", stringOf(strings.TrimSpace(about.text+" "+hint+".")))
}

// with returns an object with a member. A type that may be null stays so.
func (v value) with(name string, to value) value {
	v.members = slices.Clone(v.members)
	for i, m := range v.members {
		if m.name != name {
			continue
		}
		if name == "type" && m.value.kind == array {
			to = value{kind: array, items: []value{to, stringOf("null")}}
		}
		v.members[i].value = to
		return v
	}
	v.members = append(v.members, member{name, to})
	return v
}

// without returns an object without members.
func (v value) without(names ...string) value {
	v.members = slices.DeleteFunc(slices.Clone(v.members), func(m member) bool { return slices.Contains(names, m.name) })
	return v
}

// offer returns a value as the interface has it. Names and values that the schema does not know are
// swapped, too, if something else is offered under them, so that what is wrong stays wrong.
func (c *codec) offer(v value) value { return c.translate(v, true, new(reading), "") }

// A reading collects the first mistake in the arguments of a call.
type reading struct{ mistake string }

func (r *reading) note(format string, args ...any) {
	if r.mistake == "" {
		r.mistake = fmt.Sprintf(format, args...)
	}
}

// read is the inverse of offer. The value is at a path.
func (c *codec) read(v value, r *reading, path string) value { return c.translate(v, false, r, path) }

func (c *codec) translate(v value, offers bool, r *reading, path string) value {
	switch {
	case c == nil:
	case c.members != nil && v.kind == object:
		return c.translateMembers(v, offers, r, path)
	case c.items != nil && v.kind == array:
		items := make([]value, len(v.items))
		for i, item := range v.items {
			items[i] = c.items.translate(item, offers, r, path)
		}
		v.items = items
	case c.swap != nil && v.kind != object && v.kind != array:
		if what := c.lacks(v); !offers && what != "" {
			r.note("the argument %s has to be %s", path, what)
		}
		v, _ = c.swap(v)
	case c.swap != nil && !offers:
		if what := c.lacks(v); what != "" {
			r.note("the argument %s has to be %s", path, what)
		}
	}
	return v
}

func (c *codec) translateMembers(v value, offers bool, r *reading, path string) value {
	members := make([]member, len(v.members))
	for i, m := range v.members {
		other := c.names.offer(m.name)
		own := other
		if offers {
			own = m.name
		} else if _, known := c.members[m.name]; known && other != m.name {
			r.note("there is no argument %q; the arguments are %s", join(path, m.name), c.offeredNames(path))
		}
		members[i] = member{other, c.members[own].translate(m.value, offers, r, join(path, m.name))}
	}
	v.members = members
	return v
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (c *codec) offeredNames(path string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.members)) {
		all = append(all, join(path, c.names.offer(name)))
	}
	return strings.Join(all, ", ")
}

// offered returns a schema as the interface has it.
func (a *Adapter) offered(c *codec, s value) value {
	if s.kind != object {
		return s
	}
	out := objectOf()
	for _, m := range s.members {
		switch {
		case m.name == "description" && m.value.kind == text:
			m.value = stringOf(a.Text(m.value.text))
		case m.name == "anyOf" || m.name == "oneOf":
			m.value.items = slices.Clone(m.value.items)
			for i, choice := range m.value.items {
				if kind, _ := choice.get("type"); kind.text != "null" {
					m.value.items[i] = a.offered(c, choice)
				}
			}
		case c == nil:
		case m.name == "properties" && c.members != nil:
			properties := objectOf()
			for _, p := range m.value.members {
				properties.members = append(properties.members,
					member{c.names.offer(p.name), a.offered(c.members[p.name], p.value)})
			}
			m.value = properties
		case m.name == "required" && c.members != nil:
			m.value.items = slices.Clone(m.value.items)
			for i, name := range m.value.items {
				m.value.items[i] = stringOf(c.names.offer(name.text))
			}
		case m.name == "items":
			m.value = a.offered(c.items, m.value)
		case m.name == "default" || m.name == "const":
			m.value = c.offer(m.value)
		case (m.name == "enum" || m.name == "examples") && m.value.kind == array:
			m.value.items = slices.Clone(m.value.items)
			for i, one := range m.value.items {
				m.value.items[i] = c.offer(one)
			}
		}
		out.members = append(out.members, m)
	}
	if _, typed := out.get("type"); typed && c != nil && c.change != nil {
		out = c.change(out)
	}
	return out
}
