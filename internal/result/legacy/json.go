package legacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-eval/assay"
)

type jsonKind byte

const (
	object jsonKind = iota
	array
	text
	number
	boolean
	null
)

// A node is a JSON value that keeps the order of members, duplicate keys and
// the spelling of numbers. Its methods work on nil, which is a missing value.
type node struct {
	kind    jsonKind
	text    string       // the content of a text, or the spelling of another scalar
	members []jsonMember // of an object, or of an array, where keys are empty
}

type jsonMember struct {
	key   string
	value *node
}

// get returns the last member with a name, like most JSON readers.
func (n *node) get(key string) *node {
	if n == nil || n.kind != object {
		return nil
	}
	for i := len(n.members) - 1; i >= 0; i-- {
		if n.members[i].key == key {
			return n.members[i].value
		}
	}
	return nil
}

// string returns the content of a text, and "" for other values.
func (n *node) string() string {
	if n == nil || n.kind != text {
		return ""
	}
	return n.text
}

// describe describes a value briefly for a message.
func (n *node) describe() string {
	switch {
	case n == nil:
		return "nothing"
	case n.kind == object:
		return fmt.Sprintf("an object of %d members", len(n.members))
	case n.kind == array:
		return fmt.Sprintf("an array of %d values", len(n.members))
	case n.kind == text:
		return fmt.Sprintf("%q", short(n.text))
	}
	return short(n.text)
}

// short shortens text from a file to fit into a message.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return assay.Head(s, most) + "…"
}

// maxKey is the maximum length of a key in bytes, because every finding below a key repeats it.
const maxKey = 1 << 10

// pythonWord matches a text of JSON, or a number that only Python writes.
var pythonWord = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// A parser reads JSON text.
type parser struct {
	data []byte
	*json.Decoder
}

// parse reads a file that has one JSON value. Numbers that only Python writes become texts.
func parse(data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.Contains(data, []byte("NaN")) || bytes.Contains(data, []byte("Infinity")) {
		data = pythonWord.ReplaceAllFunc(data, func(word []byte) []byte {
			if word[0] == '"' {
				return word
			}
			return fmt.Appendf(nil, "%q", word)
		})
	}
	p := &parser{data, json.NewDecoder(bytes.NewReader(data))}
	if err := p.check(); err != nil {
		return nil, err
	}
	p.UseNumber()
	return p.value()
}

// check refuses a file that is not one JSON value in UTF-8.
func (p *parser) check() error {
	d := json.NewDecoder(bytes.NewReader(p.data))
	var syntax *json.SyntaxError
	switch err := d.Decode(new(json.RawMessage)); {
	case err == io.EOF:
		return errors.New("the file is empty")
	case errors.As(err, &syntax):
		return p.fail(int(syntax.Offset)-1, syntax.Error())
	case err != nil:
		return p.fail(len(p.data), "")
	}
	end := int(d.InputOffset())
	if rest := bytes.TrimLeft(p.data[end:], " \t\r\n"); len(rest) > 0 {
		return p.fail(len(p.data)-len(rest), "unexpected text after the end of the value")
	}
	for at, r := range string(p.data) {
		if r == utf8.RuneError && !bytes.HasPrefix(p.data[at:], []byte("\uFFFD")) {
			return p.fail(at, fmt.Sprintf("the text is not UTF-8: it has the byte %#x", p.data[at]))
		}
	}
	return nil
}

// value reads a value.
func (p *parser) value() (*node, error) {
	start := p.InputOffset()
	t, err := p.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		return p.container(t)
	case string:
		return &node{kind: text, text: t}, p.checkText(t, start)
	case json.Number:
		return &node{kind: number, text: t.String()}, nil
	case bool:
		return &node{kind: boolean, text: fmt.Sprint(t)}, nil
	}
	return &node{kind: null, text: "null"}, nil
}

// container reads the rest of an object or an array.
func (p *parser) container(start json.Delim) (n *node, err error) {
	n = &node{kind: array}
	if start == '{' {
		n.kind = object
	}
	for p.More() {
		var m jsonMember
		if n.kind == object {
			key, err := p.value()
			if err != nil {
				return nil, err
			}
			if m.key = key.text; len(m.key) > maxKey {
				return nil, p.fail(int(p.InputOffset())-1,
					fmt.Sprintf("the key that ends here has more than %d bytes", maxKey))
			}
		}
		if m.value, err = p.value(); err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
	}
	_, err = p.Token()
	return n, err
}

// checkText refuses a text with half of a surrogate pair, because readers would replace it, and
// different names could become equal.
func (p *parser) checkText(read string, start int64) error {
	written := bytes.ToLower(p.data[start:p.InputOffset()])
	if !strings.ContainsRune(read, utf8.RuneError) || !bytes.Contains(written, []byte(`\ud`)) {
		return nil
	}
	at := int(start) + bytes.Index(written, []byte(`\ud`))
	return p.fail(at, "the text has an unpaired surrogate, which is not a character")
}

// conflictMarkers start the lines that git inserts if it cannot merge versions
// of a file. Valid JSON has no such lines.
var conflictMarkers = []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"}

// A SyntaxError is a position, from 1, at which a file is not valid JSON, with
// an excerpt.
type SyntaxError struct {
	Line, Column int // in characters
	Text         string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text)
}

// fail returns an error at a byte.
func (p *parser) fail(at int, message string) error {
	before := p.data[:at]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	line, _, _ := bytes.Cut(p.data[lineStart:], []byte("\n"))
	hint := ""
	switch {
	case bytes.HasPrefix(p.data, []byte("version https://git-lfs")):
		message = "the file is a Git LFS pointer, not the file itself"
		hint = "\nhint: fetch the content with `git lfs pull`"
	case beginsConflict(line):
		message = "unresolved merge conflict: this line is a conflict marker"
		hint = "\nhint: keep one of the versions between the markers, " +
			"or restore the file from before the merge"
	case at == len(p.data):
		message = "the file is truncated: it ends in the middle of a value"
	}
	shown, caret := excerpt(p.data[lineStart:at], p.data[at:lineStart+len(line)])
	return &SyntaxError{
		Line:   bytes.Count(before, []byte("\n")) + 1,
		Column: utf8.RuneCount(p.data[lineStart:at]) + 1,
		Text:   fmt.Sprintf("%s\n  %s\n  %s^%s", message, shown, strings.Repeat(" ", caret), hint),
	}
}

func beginsConflict(line []byte) bool {
	for _, m := range conflictMarkers {
		if bytes.HasPrefix(line, []byte(m)) {
			return true
		}
	}
	return false
}

// excerpt returns the part of a line around a byte, and the number of
// characters in it before that byte.
func excerpt(before, after []byte) (shown string, caret int) {
	before = before[max(0, len(before)-60):]
	after = after[:min(30, len(after))]
	plain := func(b []byte) string {
		return strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return ' '
			}
			return r
		}, strings.ToValidUTF8(string(b), ""))
	}
	head := plain(before)
	return strings.TrimRight(head+plain(after), " "), utf8.RuneCountInString(head)
}
