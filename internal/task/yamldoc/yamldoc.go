// Package yamldoc reads the YAML files that users write. It is strict: an unknown field, a wrong
// type or a duplicate key is an [Error] with its place, the line and the nearest known name.
//
// It does not know the meaning of the files.
package yamldoc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
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
	b.WriteString(clip(e.File))
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

// The limits of the text that an error shows. A file may hold all of its data in one line.
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
	root   *yaml.Node // nil if the file has no value
}

// Help holds the hints of errors that concern a whole file.
type Help struct{ Missing, Empty string }

// Absent returns a document without content, for errors that have no place.
func Absent(name string) *Document { return &Document{Name: name} }

// Plain returns a document for errors that point into the text of a file that is not YAML.
func Plain(name string, source []byte) *Document { return &Document{Name: name, source: source} }

// maxFile is the size limit of files.
const maxFile = 16 << 20

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
		return nil, &Error{File: path, Message: cause(err)}
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
		return nil, &Error{File: path, Message: cause(err)}
	case len(source) > maxFile: // a pipe has no size
		return nil, &Error{
			File: path, Message: fmt.Sprintf("file has more than %d bytes", maxFile),
			Hint: "check whether this is the right file",
		}
	}
	return Parse(path, source, help)
}

// cause returns the message of an error without the path.
func cause(err error) string {
	var e *fs.PathError
	if errors.As(err, &e) {
		err = e.Err
	}
	return err.Error()
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
func Parse(name string, source []byte, help Help) (*Document, error) {
	source = bytes.TrimPrefix(source, []byte("\ufeff"))
	d := &Document{Name: name, Dir: filepath.Dir(name), Help: help, source: source}
	if err := cmp.Or(d.unprintable(), d.crowded()); err != nil {
		return nil, err
	}
	loader, err := yaml.NewLoader(bytes.NewReader(source), yaml.WithPlugin(limits))
	if err != nil {
		return nil, err
	}
	var first, second yaml.Node
	switch err := loader.Load(&first); {
	case errors.Is(err, io.EOF):
		return d, nil
	case err != nil:
		return nil, d.malformed(err)
	}
	d.root = first.Content[0]
	if err := d.check(d.root, 1); err != nil {
		return nil, err
	}
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
		return d, nil
	case err != nil:
		return nil, d.malformed(err)
	}
	return nil, d.Here(second.Line, second.Column, "the file has several YAML documents, want one",
		"remove the `---` lines and everything after the first document")
}

// wholeText matches whole numbers, of which the library rounds those above 64 bits.
var wholeText = regexp.MustCompile(`^[-+]?[0-9_]{2,}$`)

// check refuses what the YAML library permits: deep values, anchors, rounded numbers, and fields
// that a mapping has twice. It also makes names of fields and dates texts.
func (d *Document) check(n *yaml.Node, depth int) *Error {
	switch {
	case n.Kind != yaml.ScalarNode && depth > MaxDepth:
		return d.tooDeep(n.Line, n.Column)
	case n.Kind == yaml.AliasNode, n.Anchor != "":
		return d.noAnchors(n)
	case n.Kind == yaml.MappingNode:
		if err := d.checkNames(n); err != nil {
			return err
		}
	case n.Tag == "!!timestamp", n.Tag == "!!merge":
		n.Tag = "!!str"
	case n.Tag == "!!float" && wholeText.MatchString(n.Value):
		return d.Here(n.Line, n.Column, "the number has too many digits to stay exact",
			"put it in quotes if it is text")
	}
	for _, child := range n.Content {
		if err := d.check(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (d *Document) noAnchors(n *yaml.Node) *Error {
	return d.Here(n.Line, n.Column, "anchors and aliases are not supported",
		"write the value in full")
}

// checkNames checks the names of the fields of a mapping.
func (d *Document) checkNames(n *yaml.Node) *Error {
	lines := make(map[string]int, len(n.Content)/2)
	for name := range fields(n) {
		switch before, ok := lines[name.Value]; {
		case name.Tag == "!!merge", name.Kind == yaml.AliasNode:
			return d.noAnchors(name)
		case name.Kind != yaml.ScalarNode:
			return d.Here(name.Line, name.Column, "the name of a field must be text",
				"brackets in a text need quotes")
		case ok:
			return d.Here(name.Line, name.Column, fmt.Sprintf("field %q is already set in line %d",
				name.Value, before), "remove one of them")
		}
		name.Tag = "!!str"
		lines[name.Value] = name.Line
	}
	return nil
}

// fields yields the names and values of a mapping, and no pairs for other nodes.
func fields(n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		if n == nil || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			if !yield(n.Content[i], n.Content[i+1]) {
				return
			}
		}
	}
}

// Decode reads the document into a pointer to a struct. It refuses unknown fields, wrong types, and
// fractions where a whole number is needed.
func (d *Document) Decode(into any) error {
	switch {
	case d.root == nil || d.root.Tag == "!!null":
		return &Error{File: d.Name, Message: "file is empty", Hint: d.Help.Empty}
	case d.root.Kind != yaml.MappingNode:
		return d.At("$", "the file must be a mapping of fields, such as `name: my-experiment`", "")
	}
	// The library compares each name with each other; check has found duplicates.
	err := d.root.Load(into, yaml.WithKnownFields(), yaml.WithUniqueKeys(false))
	if err != nil {
		return d.mistyped(err, fieldNames(reflect.TypeOf(into)))
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

// plainSyntax rewords the YAML library's errors about syntax.
var plainSyntax = strings.NewReplacer(
	"did not find expected key", "a field is expected here",
	"did not find expected '-' indicator", "a `-` is expected here",
	"did not find expected node content", "a value is expected here",
	"did not find expected ", "missing ",
	"while parsing a block mapping", ", in the mapping",
	"while parsing a flow mapping", ", in the mapping",
	"while parsing a block collection", ", in the list",
	"while parsing a flow sequence", ", in the list",
	"while scanning a", ", in the",
)

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
func (d *Document) mistyped(err error, known []string) error {
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
	e = d.Here(e.Line, e.Column, fmt.Sprintf("unknown field %q", name), fieldHint(name, known))
	more := 0
	for _, other := range all.Errors[1:] {
		name, ok := unknownField(other)
		if !ok {
			continue
		}
		if more++; more < maxUnknown {
			e.Hint += fmt.Sprintf("\nline %d has an unknown field, too: %q; %s", other.Mark.Line,
				hide(short(name)), fieldHint(name, known))
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

// fieldHint suggests the field that may be meant by an unknown one.
func fieldHint(name string, known []string) string {
	if slices.Contains(known, name) {
		return "it is a field of another mapping of this file; move it there"
	}
	return assay.NameHint(name, known)
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
	case strings.HasSuffix(typ, " (TextUnmarshaler)"):
		return "a single value"
	case strings.HasPrefix(typ, "[]"), typ == "!!seq":
		return "a list"
	case strings.HasPrefix(typ, "map"), typ == "!!map":
		return "a mapping"
	case strings.HasPrefix(typ, "int"), strings.HasPrefix(typ, "uint"), typ == "!!int":
		return "a whole number"
	case strings.HasPrefix(typ, "float"):
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

// Node returns the value at a path such as $.reliabilities[0] or $.models."a b", or nil if there is
// no such value.
func (d *Document) Node(path string) *yaml.Node {
	n := d.root
	path = strings.TrimPrefix(path, "$")
	for path != "" && n != nil {
		step := pathStep.FindStringSubmatch(path)
		if step == nil {
			return nil
		}
		path = path[len(step[0]):]
		switch {
		case step[3] != "":
			n = element(n, step[3])
		case step[2] != "":
			name, _ := strconv.Unquote(step[2])
			_, n = field(n, name)
		default:
			_, n = field(n, step[1])
		}
	}
	return n
}

// Fields yields the names in the mapping at a path, in order.
func (d *Document) Fields(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range fields(d.Node(path)) {
			if !yield(name.Value) {
				return
			}
		}
	}
}

// pathStep matches a field, a field in quotes, or an index.
var pathStep = regexp.MustCompile(`^(?:\.([^."\[]+)|\.("(?:[^"\\]|\\.)*")|\[(\d+)\])`)

func element(n *yaml.Node, index string) *yaml.Node {
	i, err := strconv.Atoi(index)
	if err != nil || n.Kind != yaml.SequenceNode || i >= len(n.Content) {
		return nil
	}
	return n.Content[i]
}

func field(n *yaml.Node, name string) (key, value *yaml.Node) {
	for key, value := range fields(n) {
		if key.Value == name {
			return key, value
		}
	}
	return nil, nil
}

// At returns an error that points at the value at a path.
//
// If the file has no such value, the error points at the nearest mapping or list that would have
// it.
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
	return d.Here(node.Line, node.Column, message, hint)
}

// AtKey returns an error that points at the name of a field in the mapping at a path.
func (d *Document) AtKey(path, name, message, hint string) *Error {
	if key, _ := field(d.Node(path), name); key != nil {
		return d.Here(key.Line, key.Column, message, hint)
	}
	return d.At(path, message, hint)
}

// AtByte returns an error at a byte of the text.
func (d *Document) AtByte(offset int, message, hint string) *Error {
	before := d.source[:min(offset, len(d.source))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return d.Here(1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(line), message, hint)
}

// Here returns an error at a line and a column, both counted from 1. It shows no key that is
// written into the file.
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
