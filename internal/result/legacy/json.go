package legacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

type kind byte

const (
	object kind = iota
	array
	text
	number // also NaN, Infinity and -Infinity, as Python writes them
	boolean
	null
)

// A node is a JSON value with everything that a file can say: the order of
// members, keys that come twice, and numbers as they are spelt. The methods
// work on nil, a value that is missing.
type node struct {
	kind    kind
	text    string   // what a text says, or how any other scalar is spelt
	members []member // of an object; of an array, without keys
}

type member struct {
	key   string
	value *node
}

// get returns the last member of that name, as most readers of JSON do.
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

// string returns what a text says; "" for all else.
func (n *node) string() string {
	if n == nil || n.kind != text {
		return ""
	}
	return n.text
}

// describe words a value for a message, in a few characters.
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

// short cuts what a file says to a length that fits into a message.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Limits that no real file comes near; they bound what a made one costs.
const (
	maxValues = 1 << 20
	maxDepth  = 64
	maxKey    = 1 << 10 // bytes; every finding below repeats it
)

// A parser reads JSON text.
type parser struct {
	data   []byte
	at     int // the next byte
	values int
	depth  int
}

// parse reads a file that is one JSON value.
func parse(data []byte) (*node, error) {
	p := &parser{data: data}
	if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
		p.at = 3
	}
	if p.next(); p.at == len(p.data) {
		return nil, errors.New("the file is empty")
	}
	n, err := p.value()
	if err != nil {
		return nil, err
	}
	if p.next(); p.at < len(p.data) {
		return nil, p.fail(p.at, "there is more after the end of the value")
	}
	return n, nil
}

// next skips white space and returns the byte after it without taking it; 0 at
// the end, but a broken file may hold that byte too.
func (p *parser) next() byte {
	for ; p.at < len(p.data); p.at++ {
		if c := p.data[p.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

func (p *parser) value() (*node, error) {
	if p.values++; p.values > maxValues {
		return nil, p.fail(p.at, fmt.Sprintf("the file holds more than %d values", maxValues))
	}
	switch p.next() {
	case '{', '[':
		return p.container()
	case '"':
		s, err := p.string()
		return &node{kind: text, text: s}, err
	}
	return p.word()
}

// container reads an object or an array.
func (p *parser) container() (*node, error) {
	n, end := &node{kind: object}, byte('}')
	if p.data[p.at] == '[' {
		n.kind, end = array, ']'
	}
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail(p.at, fmt.Sprintf("values are nested more than %d deep", maxDepth))
	}
	defer func() { p.depth-- }()
	p.at++
	for p.next() != end {
		if len(n.members) > 0 {
			if p.next() != ',' {
				return nil, p.fail(p.at, fmt.Sprintf("expected , or %c", end))
			}
			p.at++
		}
		m, err := p.member(n.kind)
		if err != nil {
			return nil, err
		}
		n.members = append(n.members, m)
	}
	p.at++
	return n, nil
}

func (p *parser) member(of kind) (m member, err error) {
	if of == object {
		if p.next() != '"' {
			return m, p.fail(p.at, "expected a key in quotation marks")
		}
		start := p.at
		if m.key, err = p.string(); err != nil {
			return m, err
		}
		if len(m.key) > maxKey {
			return m, p.fail(start, fmt.Sprintf("a key has more than %d bytes", maxKey))
		}
		if p.next() != ':' {
			return m, p.fail(p.at, "expected a colon")
		}
		p.at++
	}
	m.value, err = p.value()
	return m, err
}

// string refuses what is no text in Unicode: readers would replace it, and names
// that differ in it would become one.
func (p *parser) string() (string, error) {
	start := p.at
	for i := start + 1; i < len(p.data); {
		r, size := utf8.DecodeRune(p.data[i:])
		switch {
		case r == '"':
			var s string
			if err := json.Unmarshal(p.data[start:i+1], &s); err != nil {
				return "", p.fail(start, "the text has an invalid escape")
			}
			p.at = i + 1
			return s, nil
		case r == '\\':
			if size = escapeSize(p.data[i:]); size == 0 {
				return "", p.fail(i, "the text has half of a surrogate pair, which stands for no character")
			}
		case r < ' ':
			return "", p.fail(i, "a text goes over the end of a line, or holds a control character")
		case r == utf8.RuneError && size == 1:
			return "", p.fail(i, fmt.Sprintf("the text is not UTF-8: it holds the byte %#x", p.data[i]))
		}
		i += size
	}
	return "", p.fail(len(p.data), "")
}

// escapeSize returns how many bytes the escape takes with which b begins; 0 for half
// of a surrogate pair. Whether it is valid otherwise is left to others.
func escapeSize(b []byte) int {
	first := unicodeEscape(b)
	if !utf16.IsSurrogate(first) {
		return 2
	}
	const size = len(`\uXXXX`)
	if utf16.DecodeRune(first, unicodeEscape(b[size:])) == utf8.RuneError {
		return 0
	}
	return 2 * size
}

// unicodeEscape returns the code that b begins with as \uXXXX; 0 where it does not.
func unicodeEscape(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	v, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(v)
}

func (p *parser) word() (*node, error) {
	start := p.at
	for p.at < len(p.data) && isWordByte(p.data[p.at]) {
		p.at++
	}
	word := string(p.data[start:p.at])
	switch word {
	case "true", "false":
		return &node{kind: boolean, text: word}, nil
	case "null":
		return &node{kind: null, text: word}, nil
	case "NaN", "Infinity", "-Infinity":
		return &node{kind: number, text: word}, nil
	}
	if !json.Valid([]byte(word)) {
		if p.at == len(p.data) {
			start = p.at
		}
		return nil, p.fail(start, "expected a value")
	}
	return &node{kind: number, text: word}, nil
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

// conflictMarkers begin the lines that git leaves where versions of a file
// could not be merged. Valid JSON has no such line.
var conflictMarkers = []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"}

// A SyntaxError says where a file is no JSON that is read, from 1, and shows the place.
type SyntaxError struct {
	Line, Column int // in characters
	Text         string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Text) }

// fail makes the error that the text is broken at a byte.
func (p *parser) fail(at int, message string) error {
	before := p.data[:at]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	line, _, _ := bytes.Cut(p.data[lineStart:], []byte("\n"))
	hint := ""
	switch {
	case bytes.HasPrefix(p.data, []byte("version https://git-lfs")):
		message, hint = "it is a Git LFS pointer, not the file itself", "\nhint: fetch the content with `git lfs pull`"
	case beginsConflict(line):
		message = "a merge conflict was committed unresolved: this line is a conflict marker"
		hint = "\nhint: keep one of the versions between the markers, or take the file from before the merge"
	case at == len(p.data):
		message = "the file is truncated: it ends in the midst of a value"
	}
	shown, caret := excerpt(p.data[lineStart:at], p.data[at:lineStart+len(line)])
	return &SyntaxError{
		Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(p.data[lineStart:at]) + 1,
		Text: fmt.Sprintf("%s\n  %s\n  %s^%s", message, shown, strings.Repeat(" ", caret), hint),
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

// excerpt returns the part of a line around a byte, and how many characters of
// it come before that byte.
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
