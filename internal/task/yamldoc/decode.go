package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
)

// Decode reads the document into a pointer to a struct. It refuses unknown fields, wrong types,
// fractions where a whole number is needed, empty items, and scalars that have no single meaning.
func (d *Document) Decode(into any) error {
	switch {
	case d.root == nil || d.root.Tag == "!!null":
		return assay.WithHint(&Error{File: d.Name, Message: "file is empty"}, d.Help.Empty)
	case d.root.Kind != yaml.MappingNode:
		return d.At("$", "the file must be a mapping of fields, such as `name: my-experiment`", "")
	}
	scalars := &settler{d, make(map[reflect.Type]map[string]reflect.Type)}
	if err := scalars.settle(d.root, reflect.TypeOf(into)); err != nil {
		return err
	}
	// The library compares each name with each other; check has found duplicates.
	err := d.root.Load(into, yaml.WithKnownFields(), yaml.WithUniqueKeys(false))
	if err != nil {
		return d.mistyped(err, fieldPlaces(reflect.TypeOf(into)))
	}
	return nil
}

// malformed returns the error of a file that is not YAML. The YAML library gives the place where it
// could not go on, which may be after the mistake.
func (d *Document) malformed(err error) error {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return &Error{File: d.Name, Message: hideLine(err.Error())}
	}
	at, message := e.Mark, plainSyntax.Replace(e.Message)
	hint := "look here and above for wrong indentation, or a missing bracket, quote or colon"
	char := d.charAt(at)
	switch {
	case e.Message == TooDeep:
		hint = FlatHint
	case char == '\t':
		message, hint = "a tab cannot be used here", "indent with spaces"
	case strings.Contains(message, "cannot start any token"):
		message = fmt.Sprintf("a text cannot begin with %q", char)
		hint = "put the text into quotes"
	case strings.HasPrefix(message, "unknown anchor"):
		return d.noAnchors(&yaml.Node{Line: at.Line, Column: at.Column})
	case strings.HasPrefix(message, "mapping values are not allowed"):
		hint = "look at the indentation of this line; a text with a colon and a space needs " +
			"quotes: \"like: this\""
	case strings.HasSuffix(message, "end of stream"):
		at, message = e.ContextMark, "the quotes that begin here do not end"
	case strings.HasPrefix(message, "could not find expected ':'"):
		at, message = e.ContextMark, "no colon follows this name"
	case e.ContextMark.Line > 0 && e.ContextMark.Line < at.Line:
		message += fmt.Sprintf("%s that begins in line %d", plainSyntax.Replace(e.ContextMsg),
			e.ContextMark.Line)
	}
	if at.Line > bytes.Count(d.source, []byte("\n")) && char == 0 { // the file ends here
		text := bytes.TrimRight(d.source, "\r\n")
		at.Line = 1 + bytes.Count(text, []byte("\n"))
		at.Column = 1 + utf8.RuneCount(text[bytes.LastIndexByte(text, '\n')+1:])
	}
	return d.Here(at.Line, at.Column, message, hint)
}

// charAt returns the character at a place, or 0 at the end of a line.
func (d *Document) charAt(at yaml.Mark) rune {
	e := d.Here(at.Line, at.Column, "", "")
	for _, r := range strings.TrimPrefix(e.Excerpt, firstRunes(e.Excerpt, at.Column-1-e.cut)) {
		return r
	}
	return 0
}

// mistyped returns the error of a file that does not fit its type. It points at the first mistake.
// If that is an unknown field, it names the others, too.
func (d *Document) mistyped(err error, known map[string][]string) error {
	var all *yaml.LoadErrors
	if !errors.As(err, &all) {
		return d.malformed(err)
	}
	first := all.Errors[0]
	e := d.Here(first.Mark.Line, first.Mark.Column, plainMessage(first.Message), "")
	name, ok := unknownField(first)
	if !ok {
		return e
	}
	if hint, gone := d.Help.Gone[name]; gone {
		return d.Here(e.Line, e.Column, fmt.Sprintf("the field %q is gone", name), hint)
	}
	e = d.Here(e.Line, e.Column, fmt.Sprintf("unknown field %q", name), fieldHint(name, known))
	more := 0
	for _, other := range all.Errors[1:] {
		name, ok := unknownField(other)
		if !ok {
			continue
		}
		if more++; more < maxUnknown {
			e.Hint += fmt.Sprintf("\nline %d has an unknown field, too: %q", other.Mark.Line,
				hide(short(name)))
			if hint := fieldHint(name, known); hint != "" {
				e.Hint += "; " + hint
			}
		}
	}
	if more -= maxUnknown - 1; more > 0 {
		e.Hint += fmt.Sprintf("\nand %d more unknown fields", more)
	}
	return e
}

// unknownField returns the name of an unknown field from a message of the YAML library.
func unknownField(e *yaml.LoadError) (name string, ok bool) {
	name, ok = strings.CutPrefix(e.Message, "field ")
	end := strings.LastIndex(name, " not found in type ")
	if !ok || end < 0 {
		return "", false
	}
	return name[:end], true
}

// fieldHint suggests the field that may be meant by an unknown one, or where it belongs.
func fieldHint(name string, known map[string][]string) string {
	places := known[name]
	switch {
	case places == nil:
		return assay.NameHint(name, slices.Sorted(maps.Keys(known)))
	case slices.Contains(places, ""):
		return "it is a field of the file, not of this mapping; move it to the left margin"
	}
	return fmt.Sprintf("it is a field of %s; move it there", strings.Join(places, " or "))
}

// plainMessage rewords a message of the YAML library without Go type names.
func plainMessage(s string) string {
	rest, ok := strings.CutPrefix(s, "cannot construct ")
	into := strings.LastIndex(rest, " into ")
	if !ok || into < 0 {
		return s
	}
	tag, value, _ := strings.Cut(rest[:into], " ")
	found, want := goWord(tag), goWord(rest[into+len(" into "):])
	if tag == "!!float" {
		found = strings.Trim(value, "`")
	}
	return fmt.Sprintf("wrong type: found %s, want %s", found, want)
}

func goWord(typ string) string {
	switch {
	case typ == "time.Duration":
		return "a time with its unit, such as 30s"
	case strings.HasSuffix(typ, " (TextUnmarshaler)"):
		return "a single value"
	case strings.HasPrefix(typ, "[]"), typ == "!!seq":
		return "a list"
	case strings.HasPrefix(typ, "map"), typ == "!!map":
		return "a mapping"
	case strings.HasPrefix(typ, "int"), strings.HasPrefix(typ, "uint"), typ == "!!int":
		return "a whole number"
	case strings.HasPrefix(typ, "float"), typ == "!!float":
		return "a number"
	case typ == "string", typ == "!!str":
		return "text"
	case typ == "bool", typ == "!!bool":
		return "true or false"
	case strings.Contains(typ, "."):
		return "a mapping"
	}
	return typ
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// fieldPlaces returns the mappings that each field of a type belongs to, including nested ones. The
// file itself is "".
func fieldPlaces(t reflect.Type) map[string][]string {
	places := make(map[string][]string)
	inside := make(map[reflect.Type]bool) // a type may contain itself
	var visit func(t reflect.Type, place string)
	visit = func(t reflect.Type, place string) {
		switch t.Kind() {
		case reflect.Map:
			visit(t.Elem(), place+".NAME")
			return
		case reflect.Pointer, reflect.Slice:
			visit(t.Elem(), place)
			return
		case reflect.Struct:
		default:
			return
		}
		if inside[t] {
			return
		}
		inside[t] = true
		defer delete(inside, t)
		for _, f := range reflect.VisibleFields(t) {
			if n := yamlName(f); n != "" && n != "-" {
				places[n] = append(places[n], place)
				visit(f.Type, strings.TrimPrefix(place+"."+n, "."))
			}
		}
	}
	visit(t, "")
	return places
}
