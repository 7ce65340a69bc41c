// Package yamldoc reads the YAML files that users write. It is strict: an unknown field, a wrong
// type or a duplicate key is an [Error] with its place, the line and the nearest known name.
//
// It does not know what the files mean.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/assay-eval/assay"
	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// An Error is a mistake in a file that the user wrote. It gives the position,
// shows the line and suggests a correction.
type Error struct {
	File         string
	Line, Column int // from 1, or 0 if the error concerns the whole file
	Message      string
	Excerpt      string // the line without its line break, or a part of a long one
	Hint         string

	cut int // characters of the line before the excerpt
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + clip(e.Message))
	if e.Excerpt != "" {
		number := strconv.Itoa(e.Line)
		gutter := strings.Repeat(" ", len(number))
		before := firstRunes(e.Excerpt, e.Column-1-e.cut)
		after := assay.Visible(strings.TrimPrefix(e.Excerpt, before))
		before = assay.Visible(before)
		excerpt, column := window(before+after, utf8.RuneCountInString(before)+1)
		// Keep tabs, so that the caret is below its character.
		pad := strings.Map(func(r rune) rune {
			if r == '\t' {
				return r
			}
			return ' '
		}, firstRunes(excerpt, column-1))
		fmt.Fprintf(&b, "\n  %s | %s\n  %s | %s^", number, excerpt, gutter, pad)
	}
	if e.Hint != "" {
		b.WriteString("\nhint: " + clip(e.Hint))
	}
	return assay.Brief(b.String())
}

// The limits of what an error shows. A file may hold all of its data in one line.
const (
	maxExcerpt = 120     // columns
	maxAround  = 4 << 10 // bytes of the line before and after the column that are looked at
	maxText    = 300     // bytes of a line of a message or a hint
	maxUnknown = 5       // unknown fields
)

// window returns the part of a line around a column, and the column in it.
func window(line string, column int) (string, int) {
	r := []rune(line)
	if len(r) <= maxExcerpt {
		return line, column
	}
	const before = maxExcerpt / 2
	start := max(0, min(column-1-before, len(r)-maxExcerpt))
	end := min(len(r), start+maxExcerpt)
	text := string(r[start:end])
	if start > 0 {
		text = "…" + string(r[start+1:end])
	}
	if end < len(r) {
		text += "…"
	}
	return text, column - start
}

// around returns the part of a line around a column, and how many characters come before it.
func around(line []byte, column int) (text string, cut int) {
	at := 0
	for n := 1; n < column && at < len(line); n++ {
		_, size := utf8.DecodeRune(line[at:])
		at += size
	}
	before := assay.Tail(string(line[max(0, at-maxAround-1):at]), maxAround)
	after := assay.Head(string(line[at:min(len(line), at+maxAround+1)]), maxAround)
	return before + after, utf8.RuneCount(line[:at-len(before)])
}

// clip shortens each line of a text.
func clip(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = assay.Visible(assay.Head(line, maxText))
		if len(lines[i]) > maxText || len(line) > maxText {
			line = assay.Head(line, maxText) + "…"
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// firstRunes returns the beginning of a text with n characters.
func firstRunes(s string, n int) string {
	for i := range s {
		if n <= 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// A Document is a parsed YAML file with its source, which errors point into.
type Document struct {
	Name   string // as given by the user
	Dir    string // relative paths in the file start here
	Help   Help
	source []byte
	file   *ast.File
}

// Help holds the hints of errors that concern a whole file.
type Help struct{ Missing, Empty string }

// Absent returns a document without content, for errors that have no place.
func Absent(name string) *Document { return &Document{Name: name, file: new(ast.File)} }

// maxFile is the size limit of files, which are written by hand.
const maxFile = 2 << 20

// Read reads and parses a file.
func Read(path string, help Help) (*Document, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, &Error{
			File: path, Message: "file not found",
			Hint: help.Missing,
		}
	case err != nil:
		return nil, &Error{File: path, Message: err.Error()}
	case info.IsDir():
		return nil, &Error{File: path, Message: "is a directory, not a YAML file"}
	case info.Size() > maxFile:
		return nil, &Error{
			File: path,
			Message: fmt.Sprintf("file has %d bytes, more than the limit of %d", info.Size(),
				maxFile),
			Hint: "check whether this is the right file",
		}
	}
	source, err := readAtMost(path, maxFile+1)
	switch {
	case err != nil:
		return nil, &Error{File: path, Message: err.Error()}
	case len(source) > maxFile: // a pipe has no size
		return nil, &Error{
			File: path, Message: fmt.Sprintf("file has more than %d bytes", maxFile),
			Hint: "check whether this is the right file",
		}
	}
	return Parse(path, source, help)
}

// readAtMost returns the first n bytes of a file.
func readAtMost(path string, n int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, n))
}

// Parse parses the content of a file. The name is for errors.
func Parse(name string, source []byte, help Help) (d *Document, err error) {
	d = &Document{Name: name, Dir: filepath.Dir(name), Help: help, source: source}
	defer d.recoverPanic(&err)
	tokens, err := d.scan()
	if err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, d.malformed(err)
	}
	d.file = file
	var anchors anchorFinder
	for _, doc := range file.Docs {
		ast.Walk(&anchors, doc)
	}
	if anchors.found != nil {
		pos := anchors.found.GetToken().Position
		return nil, d.Here(pos.Line, pos.Column,
			"anchors and aliases are not supported", "write the value in full")
	}
	if len(file.Docs) > 1 {
		return nil, &Error{
			File: name, Message: fmt.Sprintf("file has %d YAML documents, want one",
				len(file.Docs)),
			Hint: "remove the `---` lines and everything after the first document",
		}
	}
	return d, nil
}

// recoverPanic turns a panic of the YAML library, which some broken files
// cause, into an error.
func (d *Document) recoverPanic(err *error) {
	if v := recover(); v != nil {
		*err = &Error{
			File: d.Name, Message: "cannot read the file as YAML",
			Hint: "look for wrong indentation or a missing bracket or colon",
		}
	}
}

// anchorFinder finds the first anchor or alias. Files this short do not need
// them, and a file that refers to itself would never end.
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

// Decode reads the document into a pointer to a struct. It refuses unknown
// fields, duplicate fields, wrong types, and fractions where a whole number is
// needed.
func (d *Document) Decode(into any) (err error) {
	defer d.recoverPanic(&err)
	if len(d.file.Docs) == 0 || d.file.Docs[0].Body == nil {
		return &Error{
			File: d.Name, Message: "file is empty",
			Hint: d.Help.Empty,
		}
	}
	if _, ok := d.file.Docs[0].Body.(*ast.MappingNode); !ok {
		if _, ok := d.file.Docs[0].Body.(*ast.MappingValueNode); !ok {
			return d.At("$", "the file must be a mapping of fields, such as `name: my-experiment`",
				"")
		}
	}
	if err := yaml.NodeToValue(d.file.Docs[0].Body, into, yaml.Strict()); err != nil {
		return d.wrap(err, into)
	}
	return d.wholeNumbers(d.file.Docs[0].Body, reflect.TypeOf(into).Elem())
}

// malformed returns the error of a file that is not YAML. The YAML library gives the place where it
// could not go on, which may be after the mistake.
func (d *Document) malformed(err error) error {
	err = d.wrap(err, nil)
	var e *Error
	if !errors.As(err, &e) || e.Hint != "" {
		return err
	}
	e.Hint = "look here and above for wrong indentation, or a missing bracket, quote or colon"
	switch {
	case strings.Contains(e.Message, "'\t'"):
		e.Message = "a tab cannot be used here"
		e.Hint = "indent with spaces"
	case strings.HasPrefix(e.Message, "mapping value is not allowed"):
		e.Hint = "look at the indentation of the next line; a text with a colon and a space needs " +
			"quotes: \"like: this\""
	}
	return e
}

// wrap converts an error of the YAML library into an Error. For an unknown
// field it suggests the most similar known one. The library reports any of several
// unknown fields, so the first one is shown, and the others are named.
func (d *Document) wrap(err error, into any) error {
	var ye yaml.Error
	if !errors.As(err, &ye) || ye.GetToken() == nil {
		return &Error{File: d.Name, Message: hideLine(err.Error())}
	}
	tok := ye.GetToken()
	e := d.Here(tok.Position.Line, tok.Position.Column, plainMessage(ye.GetMessage()), "")
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) && into != nil {
		all := unknownKeys(d.file.Docs[0].Body, reflect.TypeOf(into).Elem())
		isIt := func(k *token.Token) bool { return *k.Position == *tok.Position }
		if slices.ContainsFunc(all, isIt) {
			tok = all[0]
		} else { // a type that reads itself has it
			all = nil
		}
		known := fieldNames(reflect.TypeOf(into))
		e = d.Here(tok.Position.Line, tok.Position.Column, fmt.Sprintf("unknown field %q", tok.Value),
			fieldHint(tok.Value, known))
		for _, other := range all[min(1, len(all)):min(maxUnknown, len(all))] {
			e.Hint += fmt.Sprintf("\nline %d has an unknown field, too: %q; %s", other.Position.Line,
				other.Value, fieldHint(other.Value, known))
		}
		if more := len(all) - maxUnknown; more > 0 {
			e.Hint += fmt.Sprintf("\nand %d more unknown fields", more)
		}
	}
	return e
}

// fieldHint suggests the field that may be meant by an unknown one.
func fieldHint(name string, known []string) string {
	if slices.Contains(known, name) {
		return "it is a field of another mapping of this file; move it there"
	}
	return assay.NameHint(name, known)
}

// unknownKeys returns the keys of mappings that their types do not have, in order. It
// does not look into types that read themselves.
func unknownKeys(node ast.Node, t reflect.Type) (unknown []*token.Token) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if _, ok := reflect.PointerTo(t).MethodByName("UnmarshalYAML"); ok {
		return nil
	}
	switch n := node.(type) {
	case *ast.SequenceNode:
		for _, v := range n.Values {
			if t.Kind() == reflect.Slice {
				unknown = append(unknown, unknownKeys(v, t.Elem())...)
			}
		}
	case *ast.MappingNode:
		for _, v := range n.Values {
			unknown = append(unknown, unknownKeys(v, t)...)
		}
	case *ast.MappingValueNode:
		switch ft, known := fieldType(t, n.Key.GetToken().Value); {
		case known:
			return unknownKeys(n.Value, ft)
		case t.Kind() == reflect.Struct:
			return []*token.Token{n.Key.GetToken()}
		}
	}
	return unknown
}

// plainMessage rewords a message of the YAML library without Go type names.
func plainMessage(s string) string {
	if found, want, ok := strings.Cut(s, " was used where "); ok {
		want = strings.TrimSuffix(want, " is expected")
		return wrongType(goWord(found), goWord(want))
	}
	s = strings.TrimPrefix(s, "cannot unmarshal ")
	if from, to, ok := strings.Cut(s, " into Go "); ok {
		_, typ, _ := strings.Cut(to, "of type ")
		if typ == "" {
			typ = strings.TrimPrefix(to, "value of type ")
		}
		return wrongType(goWord(from), goWord(typ))
	}
	return s
}

func wrongType(found, want string) string {
	return fmt.Sprintf("wrong type: found %s, want %s", found, want)
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

// Node returns the value at a YAML path such as $.reliabilities[0], or nil if
// there is none.
func (d *Document) Node(path string) ast.Node {
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

// At returns an error that points at the value at a YAML path.
//
// If the file has no such value, the error points at the nearest mapping or list that would have it.
func (d *Document) At(path, message, hint string) *Error {
	node := d.Node(path)
	for end := len(path); node == nil && end > 0; node = d.Node(path[:end]) {
		end = strings.LastIndexAny(path[:end], ".[")
		if end < 0 {
			break
		}
	}
	if node == nil {
		return &Error{File: d.Name, Message: message, Hint: hint}
	}
	tok := node.GetToken()
	// The token of a mapping is the first colon; point at the first field
	// instead.
	if mapping, ok := node.(ast.MapNode); ok && tok.Value == ":" {
		if fields := mapping.MapRange(); fields.Next() {
			tok = fields.Key().GetToken()
		}
	}
	return d.Here(tok.Position.Line, tok.Position.Column, message, hint)
}

// AtKey returns an error that points at the name of a field in the mapping at a
// YAML path.
func (d *Document) AtKey(path, key, message, hint string) *Error {
	if mapping, ok := d.Node(path).(ast.MapNode); ok {
		for fields := mapping.MapRange(); fields.Next(); {
			if t := fields.Key().GetToken(); t.Value == key {
				return d.Here(t.Position.Line, t.Position.Column, message, hint)
			}
		}
	}
	return d.At(path, message, hint)
}

// Here returns an error at a line and a column, both counted from 1. It shows no key that is written
// into the file.
func (d *Document) Here(line, column int, message, hint string) *Error {
	e := &Error{File: d.Name, Line: line, Column: column, Message: hide(short(message)), Hint: hide(short(hint))}
	n := 0
	for text := range bytes.Lines(d.source) {
		if n++; n == line {
			e.Excerpt, e.cut = around(bytes.TrimRight(text, "\r\n"), column)
			e.Excerpt = hideLine(e.Excerpt)
			break
		}
	}
	return e
}

// short returns the part of a message that may be shown, with some context.
func short(message string) string { return assay.Head(message, maxAround) }

// wholeNumbers refuses a fraction where the type needs a whole number. The YAML
// library would truncate it.
func (d *Document) wholeNumbers(node ast.Node, t reflect.Type) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.FloatNode:
		if k := t.Kind(); k >= reflect.Int && k <= reflect.Uint64 {
			pos := n.GetToken().Position
			return d.Here(pos.Line, pos.Column, wrongType(n.GetToken().Value, "a whole number"), "")
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

// fieldNames lists the names of all fields of a type, including nested ones.
func fieldNames(t reflect.Type) []string {
	var names []string
	seen := make(map[reflect.Type]bool)
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(t.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[t] { // a type may contain itself
			return
		}
		seen[t] = true
		for _, f := range reflect.VisibleFields(t) {
			if n := yamlName(f); n != "" && n != "-" {
				names = append(names, n)
				visit(f.Type)
			}
		}
	}
	visit(t)
	return names
}
