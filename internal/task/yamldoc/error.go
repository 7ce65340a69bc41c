package yamldoc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

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
