package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// An Error is a mistake in a file that the user wrote. It names the place,
// shows the line and says what to do.
type Error struct {
	File         string
	Line, Column int // from 1; 0 where the whole file is meant
	Message      string
	Excerpt      string // the line, without its end
	Hint         string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.Message)
	if e.Excerpt != "" {
		number := strconv.Itoa(e.Line)
		gutter := strings.Repeat(" ", len(number))
		// Tabs stay tabs, so that the caret stands below its character.
		pad := strings.Map(func(r rune) rune {
			if r == '\t' {
				return r
			}
			return ' '
		}, firstRunes(e.Excerpt, e.Column-1))
		fmt.Fprintf(&b, "\n  %s | %s\n  %s | %s^", number, e.Excerpt, gutter, pad)
	}
	if e.Hint != "" {
		b.WriteString("\nhint: " + e.Hint)
	}
	return b.String()
}

func firstRunes(s string, n int) string {
	r := []rune(s)
	return string(r[:max(0, min(n, len(r)))])
}

// document is a YAML file that was read, with what is needed to point into it.
type document struct {
	name   string // as the user wrote it
	dir    string // that relative paths in it are relative to
	source []byte
	file   *ast.File
}

// maxFile bounds a file that people write by hand.
const maxFile = 4 << 20

func readDocument(path string) (*document, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, &Error{File: path, Message: "no such file", Hint: "without a file, `assay run` runs the built-in quickstart"}
	case err != nil:
		return nil, &Error{File: path, Message: err.Error()}
	case info.IsDir():
		return nil, &Error{File: path, Message: "is a directory, not a YAML file"}
	case info.Size() > maxFile:
		return nil, &Error{File: path, Message: fmt.Sprintf("is %d bytes long, which is more than any experiment needs (%d)", info.Size(), maxFile)}
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, &Error{File: path, Message: err.Error()}
	}
	return parseDocument(path, source)
}

func parseDocument(name string, source []byte) (d *document, err error) {
	d = &document{name: name, dir: filepath.Dir(name), source: source}
	defer d.unreadable(&err)
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil, d.wrap(err, nil)
	}
	d.file = file
	var anchors anchorFinder
	for _, doc := range file.Docs {
		ast.Walk(&anchors, doc)
	}
	if anchors.found != nil {
		pos := anchors.found.GetToken().Position
		return nil, d.here(pos.Line, pos.Column, "anchors and aliases are not read", "write the value out")
	}
	if len(file.Docs) > 1 {
		return nil, &Error{File: name, Message: fmt.Sprintf("holds %d YAML documents, want one", len(file.Docs)), Hint: "remove the `---` lines and what follows the first document"}
	}
	return d, nil
}

// unreadable turns a panic of the YAML library, which some broken files cause,
// into an error.
func (d *document) unreadable(err *error) {
	if v := recover(); v != nil {
		*err = &Error{File: d.name, Message: "cannot be read as YAML", Hint: "look for an odd indentation, bracket or colon"}
	}
}

// anchorFinder finds the first anchor or alias. Nobody needs them in so short
// a file, and a file that refers to itself has no end.
type anchorFinder struct{ found ast.Node }

func (f *anchorFinder) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		if f.found == nil {
			f.found = n
		}
		return nil
	}
	return f
}

// decode reads the document into a pointer to a struct. Unknown fields,
// repeated fields, wrong types and fractions for whole numbers are errors.
func (d *document) decode(into any) (err error) {
	defer d.unreadable(&err)
	if len(d.file.Docs) == 0 || d.file.Docs[0].Body == nil {
		return &Error{File: d.name, Message: "is empty"}
	}
	if _, ok := d.file.Docs[0].Body.(*ast.MappingNode); !ok {
		if _, ok := d.file.Docs[0].Body.(*ast.MappingValueNode); !ok {
			return d.at("$", "has to be a mapping of fields, such as `name: my-experiment`", "")
		}
	}
	if err := yaml.UnmarshalWithOptions(d.source, into, yaml.Strict()); err != nil {
		return d.wrap(err, into)
	}
	return d.wholeNumbers(d.file.Docs[0].Body, reflect.TypeOf(into).Elem())
}

// wrap gives a YAML library's error the form of ours. For an unknown field it
// names the nearest known one.
func (d *document) wrap(err error, into any) error {
	var ye yaml.Error
	if !errors.As(err, &ye) || ye.GetToken() == nil {
		return &Error{File: d.name, Message: err.Error()}
	}
	tok := ye.GetToken()
	e := d.here(tok.Position.Line, tok.Position.Column, plainMessage(ye.GetMessage()), "")
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && into != nil {
		known := fieldNames(reflect.TypeOf(into))
		e.Message = fmt.Sprintf("unknown field %q", tok.Value)
		e.Hint = assay.NameHint(tok.Value, known)
	}
	return e
}

// plainMessage turns what the YAML library says of Go types into words.
func plainMessage(s string) string {
	if found, want, ok := strings.Cut(s, " was used where "); ok {
		return fmt.Sprintf("wrong type: found %s, want %s", goWord(found), goWord(strings.TrimSuffix(want, " is expected")))
	}
	s = strings.TrimPrefix(s, "cannot unmarshal ")
	if from, to, ok := strings.Cut(s, " into Go "); ok {
		_, typ, _ := strings.Cut(to, "of type ")
		if typ == "" {
			typ = strings.TrimPrefix(to, "value of type ")
		}
		return fmt.Sprintf("wrong type: found %s, want %s", goWord(from), goWord(typ))
	}
	return s
}

func goWord(typ string) string {
	switch {
	case strings.HasPrefix(typ, "[]"), typ == "sequence":
		return "a list"
	case strings.HasPrefix(typ, "map"), typ == "mapping":
		return "a mapping"
	case strings.HasPrefix(typ, "int"), strings.HasPrefix(typ, "uint"):
		return "a whole number"
	case strings.HasPrefix(typ, "float"):
		return "a number"
	case typ == "string":
		return "text"
	case typ == "bool":
		return "true or false"
	case strings.Contains(typ, "."):
		return "a mapping"
	}
	return typ
}

// node returns the value at a YAML path such as $.reliabilities[0], nil
// without one.
func (d *document) node(path string) ast.Node {
	p, err := yaml.PathString(path)
	if err != nil {
		return nil
	}
	node, err := p.FilterFile(d.file)
	if err != nil {
		return nil
	}
	return node
}

// at returns an error at the value at a YAML path.
func (d *document) at(path, message, hint string) *Error {
	node := d.node(path)
	if node == nil {
		return &Error{File: d.name, Message: message, Hint: hint}
	}
	tok := node.GetToken()
	if mapping, ok := node.(ast.MapNode); ok && tok.Value == ":" { // that of its first field
		if fields := mapping.MapRange(); fields.Next() {
			tok = fields.Key().GetToken()
		}
	}
	return d.here(tok.Position.Line, tok.Position.Column, message, hint)
}

// atKey returns an error at the name of a field of the mapping at a YAML path.
func (d *document) atKey(path, key, message, hint string) *Error {
	if mapping, ok := d.node(path).(ast.MapNode); ok {
		for fields := mapping.MapRange(); fields.Next(); {
			if t := fields.Key().GetToken(); t.Value == key {
				return d.here(t.Position.Line, t.Position.Column, message, hint)
			}
		}
	}
	return d.at(path, message, hint)
}

func (d *document) here(line, column int, message, hint string) *Error {
	lines := strings.Split(string(d.source), "\n")
	e := &Error{File: d.name, Line: line, Column: column, Message: message, Hint: hint}
	if line >= 1 && line <= len(lines) {
		e.Excerpt = strings.TrimSuffix(lines[line-1], "\r")
	}
	return e
}

// wholeNumbers refuses a fraction where the type wants a whole number; the
// YAML library would cut it off.
func (d *document) wholeNumbers(node ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.FloatNode:
		if k := t.Kind(); k >= reflect.Int && k <= reflect.Uint64 {
			pos := n.GetToken().Position
			return d.here(pos.Line, pos.Column, fmt.Sprintf("wrong type: found %s, want a whole number", n.GetToken().Value), "")
		}
	case *ast.SequenceNode:
		if t.Kind() == reflect.Slice {
			for _, v := range n.Values {
				if err := d.wholeNumbers(v, t.Elem()); err != nil {
					return err
				}
			}
		}
	case *ast.MappingNode:
		for _, v := range n.Values {
			if err := d.wholeNumbers(v, t); err != nil {
				return err
			}
		}
	case *ast.MappingValueNode:
		if ft, ok := fieldType(t, n.Key.GetToken().Value); ok {
			return d.wholeNumbers(n.Value, ft)
		}
	}
	return nil
}

func fieldType(t reflect.Type, name string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if yamlName(f) == name {
				return f.Type, true
			}
		}
	}
	return nil, false
}

func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

// fieldNames lists the names of all fields of a type and of the types in it.
func fieldNames(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return fieldNames(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if n := yamlName(f); n != "" && n != "-" {
			names = append(names, n)
			names = append(names, fieldNames(f.Type)...)
		}
	}
	return names
}
