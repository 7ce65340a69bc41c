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

	"github.com/assay-eval/assay"
)

type kind byte

const (
	object kind = iota
	array
	text
	number // including NaN, Infinity and -Infinity, which Python writes
	boolean
	null
)

// A node is a JSON value that keeps the order of members, duplicate keys and
// the spelling of numbers. Its methods work on nil, which is a missing value.
type node struct {
	kind    kind
	text    string   // the content of a text, or the spelling of another scalar
	members []member // of an object, or of an array, where keys are empty
}

type member struct {
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

// Limits on the cost of malicious files. Real files are far below them.
const (
	maxValues = 1 << 20
	maxDepth  = 64
	maxKey    = 1 << 10 // bytes, because every finding below a key repeats it
)

// A parser reads JSON text.
type parser struct {
	data   []byte
	at     int // index of the next byte
	values int
	depth  int
}

// parse reads a file that has one JSON value.
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
		return nil, p.fail(p.at, "unexpected text after the end of the value")
	}
	return n, nil
}

// next skips white space and returns the next byte without consuming it. It
// returns 0 at the end, although a broken file may contain that byte too.
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
		return nil, p.fail(p.at, fmt.Sprintf("the file has more than %d values", maxValues))
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

// string reads a text. It refuses invalid Unicode, because readers would
// replace it, and different names could become equal.
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
				return "", p.fail(i, "the text has an unpaired surrogate, which is not a character")
			}
		case r < ' ':
			return "", p.fail(i,
				"the text has a control character or continues after the end of a line")
		case r == utf8.RuneError && size == 1:
			return "", p.fail(i,
				fmt.Sprintf("the text is not UTF-8: it has the byte %#x", p.data[i]))
		}
		i += size
	}
	return "", p.fail(len(p.data), "")
}

// escapeSize returns the length of the escape at the start of b, or 0 for an
// unpaired surrogate. It does not check the escape otherwise.
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

// unicodeEscape returns the code of a \uXXXX escape at the start of b, or 0 without an escape.
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
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '-' || c == '+' || c == '.'
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
