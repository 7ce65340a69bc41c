package library

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// A jsonFile is a JSON file whose syntax is valid.
type jsonFile struct {
	text []byte            // after the byte order mark
	doc  *yamldoc.Document // for errors
}

// The limits of JSON files: their size, and the memory in bytes that a value may need when it is
// decoded, beside its text.
const (
	maxJSON   = 1 << 30
	valueSize = 300
	maxMemory = 40 << 20
)

// readJSON reads a JSON file of at most a number of bytes. Its values may not be nested deeply, and
// no part of the file that is decoded at once may have too many values: all of it if whole is true,
// or else an element of a list that is the file or a member of it.
func readJSON(path string, most int64, whole bool) (*jsonFile, error) {
	head, err := readHead(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", path)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case bytes.HasPrefix(head, lfsPointer):
		return nil, fmt.Errorf("%s: %w", path, errLFSPointer)
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return nil, fmt.Errorf("%s: this is an SQLite file, not JSON\n"+
			"hint: an Assay library needs no import; name it in the experiment", path)
	}
	if st, err := os.Stat(path); err != nil || st.Size() > most {
		return nil, cmp.Or(err, fmt.Errorf("%s: the file has more than %d bytes\n"+
			"hint: check whether this is the right file, or split it", path, most))
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, byteOrderMark)
	f := &jsonFile{text, yamldoc.Plain(path, text)}
	if err := f.limited(whole); err != nil {
		return nil, err
	}
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(text, new(json.RawMessage)), &syntax) {
		if int(syntax.Offset) == len(text) && strings.HasPrefix(syntax.Error(), "unexpected end") {
			return nil, f.at(len(text), "the file ends in the middle of a value", "")
		}
		return nil, f.at(int(syntax.Offset)-1, syntax.Error(), "")
	}
	return f, nil
}

// at returns an error at a byte of the text.
func (f *jsonFile) at(offset int, message, hint string) error {
	return errors.New(f.doc.AtByte(offset, message, hint).Error())
}

// limited returns an error at the first byte where values are nested too deeply, or too many.
func (f *jsonFile) limited(whole bool) error {
	depth, list := 0, 1     // list is the depth at which commas separate elements
	values, element := 0, 0 // of the current element, and where it begins
	inString, escaped := false, false
	for at, c := range f.text {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '[' || c == '{':
			if depth == 0 && c == '{' {
				list = 2 // the elements are in a member of an object
			}
			depth++
		case c == ']' || c == '}':
			depth--
		case c == ',':
			values++
			if !whole && depth <= list {
				values, element = 0, at
			}
		}
		switch {
		case depth > yamldoc.MaxDepth:
			return f.at(at, yamldoc.TooDeep, yamldoc.FlatHint)
		case values*valueSize > maxMemory+5*(at-element):
			return f.at(at, "too many values",
				"split the file; everything before this place is within the limit")
		}
	}
	return nil
}

// A jsonPart is a member of a JSON object or an element of a list.
type jsonPart struct {
	name string // of a member
	// at is where the part begins in the file, and value where its value does.
	at, value int
	text      json.RawMessage
}

// parts yields the members or the elements of a valid JSON value that begins at a byte of the file.
// It yields no parts for a scalar.
func parts(text []byte, begin int) iter.Seq[jsonPart] {
	return func(yield func(jsonPart) bool) {
		dec := json.NewDecoder(bytes.NewReader(text))
		open, _ := dec.Token() // the text is valid
		for open != nil && dec.More() {
			before := int(dec.InputOffset())
			before += len(text[before:]) - len(bytes.TrimLeft(text[before:], " \t\r\n,"))
			p := jsonPart{at: begin + before}
			if open == json.Delim('{') {
				key, _ := dec.Token()
				p.name, _ = key.(string)
			}
			if dec.Decode(&p.text) != nil {
				return // it has no parts
			}
			p.value = begin + int(dec.InputOffset()) - len(p.text)
			if !yield(p) {
				return
			}
		}
	}
}

// unknownFields returns the names of the fields of an object that a type does not have.
func unknownFields(object json.RawMessage, t reflect.Type) (names []string) {
	seen := make(map[string]bool)
	for p := range parts(object, 0) {
		known := seen[p.name] || slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			return strings.EqualFold(tag, p.name) // as encoding/json does
		})
		if seen[p.name] = true; !known {
			names = append(names, p.name)
		}
	}
	return names
}

// misshapen explains why a valid JSON value of a thing was not decoded. It returns "" for nil.
func misshapen(thing string, err error) string {
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return ""
	case !errors.As(err, &typ):
		return err.Error()
	case typ.Field == "":
		return thing + " must be a JSON object, not " + withArticle(typ.Value)
	}
	want := typ.Type.String()
	switch typ.Type.Kind() {
	case reflect.Slice:
		want = "list"
	case reflect.Struct:
		want = "object"
	case reflect.Float64:
		want = "number"
	}
	return fmt.Sprintf("%s must be %s, not %s",
		strings.TrimPrefix(typ.Field, "Tool."), // the struct embedded in foreignTool
		withArticle(want), withArticle(typ.Value))
}

func withArticle(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
