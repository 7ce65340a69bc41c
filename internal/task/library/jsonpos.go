package library

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/assay-eval/assay"
)

// A position describes a byte of a text file to people.
type position struct {
	line, column int // from 1; columns count characters
	// excerpt is the part of the line around the byte. Caret is the number of its characters
	// before the byte.
	excerpt string
	caret   int
}

// The limits of an excerpt, in bytes before and after the position. Machine-made JSON is often a
// single line of many megabytes.
const (
	shownBefore = 60
	shownAfter  = 30
)

// locate returns the position of the byte at offset. It reads the file from the start, because it
// is needed only once per error.
func locate(path string, offset int64) (position, error) {
	f, err := os.Open(path)
	if err != nil {
		return position{}, err
	}
	defer f.Close()
	p := position{line: 1, column: 1}
	var lineStart int64
	r := bufio.NewReader(f)
	i, mark := int64(0), int64(len(byteOrderMark))
	if head, _ := r.Peek(len(byteOrderMark)); bytes.Equal(head, byteOrderMark) && offset >= mark {
		if _, err := r.Discard(len(byteOrderMark)); err != nil {
			return position{}, err
		}
		i, lineStart = mark, mark // editors don't count the mark as a column
	}
	for ; i < offset; i++ {
		c, err := r.ReadByte()
		if err == io.EOF {
			offset = i
			break
		}
		if err != nil {
			return position{}, err
		}
		switch {
		case c == '\n':
			p.line, p.column, lineStart = p.line+1, 1, i+1
		case utf8.RuneStart(c):
			p.column++
		}
	}
	from := max(lineStart, offset-shownBefore)
	window := make([]byte, offset-from+shownAfter)
	n, err := f.ReadAt(window, from)
	if err != nil && err != io.EOF {
		return position{}, err
	}
	before := min(int(offset-from), n)
	p.excerpt, p.caret = excerpt(window[:before], window[before:n])
	return p, nil
}

func excerpt(before, after []byte) (text string, caret int) {
	after, _, _ = bytes.Cut(after, []byte("\n"))
	for len(before) > 0 && !utf8.RuneStart(before[0]) { // drop the rest of a character
		before = before[1:]
	}
	head := assay.Visible(string(before))
	text = strings.TrimRight(head+assay.Visible(strings.ToValidUTF8(string(after), "")), " ")
	return text, utf8.RuneCountInString(head)
}

// errorAt adds the file, line, column and an excerpt to err.
func errorAt(path string, offset int64, err error) error {
	p, lerr := locate(path, offset)
	if lerr != nil {
		return fmt.Errorf("%s: %w", path, errors.Join(err, lerr))
	}
	indent := strings.Repeat(" ", p.caret)
	return fmt.Errorf("%s:%d:%d: %w\n  %s\n  %s^", path, p.line, p.column, err, p.excerpt, indent)
}

// A slot describes the part of a JSON text that the decoder expects next.
type slot struct {
	separator string // must come first, unless empty
	key       bool   // an object key must follow, not just any value
}

// jsonErrorAt adds the position to an error of a streaming decoder that continued at start to fill
// the slot. It decodes the value again, because a decoder that also reads tokens doesn't know the
// offset of its errors.
func jsonErrorAt(path string, start int64, s slot, err error) error {
	f, openErr := os.Open(path)
	if openErr != nil {
		return openErr
	}
	defer f.Close()
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return err
	}
	r := bufio.NewReader(f)
	at := start + skip(r, white, math.MaxInt64)
	separated := skip(r, s.separator, 1)
	at += separated
	at += skip(r, white, math.MaxInt64)
	next, _ := r.Peek(1)
	missingSeparator := s.separator != "" && separated == 0
	if len(next) > 0 && (missingSeparator || s.key && next[0] != '"') {
		return errorAt(path, at, errors.New(err.Error()))
	}
	var skipped json.RawMessage
	again := json.NewDecoder(r).Decode(&skipped)
	var syntax *json.SyntaxError
	switch {
	case errors.As(again, &syntax):
		return errorAt(path, at+syntax.Offset-1, errors.New(syntax.Error()))
	case errors.Is(again, io.EOF) || errors.Is(again, io.ErrUnexpectedEOF):
		st, err := f.Stat()
		if err != nil {
			return err
		}
		return errorAt(path, st.Size(), errors.New("the file ends in the middle of a value"))
	case again != nil:
		return again
	}
	return errorAt(path, at, errors.New(err.Error()))
}

const white = " \t\r\n"

// skip discards at most limit bytes that are in chars, and returns their number.
func skip(r *bufio.Reader, chars string, limit int64) (n int64) {
	for ; n < limit; n++ {
		c, err := r.ReadByte()
		if err != nil {
			break
		}
		if strings.IndexByte(chars, c) < 0 {
			r.UnreadByte() // cannot fail right after ReadByte
			break
		}
	}
	return n
}

// markLength returns the length of the byte order mark at the start of a file. It returns an error
// if the file is obviously not JSON.
func markLength(path string) (int64, error) {
	head, err := readHead(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, fmt.Errorf("%s: no such file", path)
	case err != nil:
		return 0, fmt.Errorf("%s: %w", path, err)
	case bytes.HasPrefix(head, lfsPointer):
		return 0, fmt.Errorf("%s: %w", path, errLFSPointer)
	case bytes.HasPrefix(head, []byte("SQLite format 3\x00")):
		return 0, fmt.Errorf("%s: this is an SQLite file, not JSON\n"+
			"hint: an Assay library needs no import; name it in the experiment", path)
	case bytes.HasPrefix(head, byteOrderMark):
		return int64(len(byteOrderMark)), nil
	}
	return 0, nil
}
