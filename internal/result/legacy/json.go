package legacy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// short shortens text from a file to fit into a message.
func short(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return assay.Head(s, most) + "…"
}

// pythonWord matches a text of JSON, or a number that only Python writes.
var pythonWord = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?Infinity|NaN`)

// checked returns a named file that is one JSON value in UTF-8. Numbers that only Python writes become
// texts.
func checked(name string, data []byte) ([]byte, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	data = pythonWord.ReplaceAllFunc(data, func(word []byte) []byte {
		if word[0] == '"' {
			return word
		}
		return fmt.Appendf(nil, "%q", word)
	})
	for at, r := range string(data) {
		if r == utf8.RuneError && !bytes.HasPrefix(data[at:], []byte("\uFFFD")) {
			return nil, syntaxError(name, data, at,
				fmt.Sprintf("the text is not UTF-8: it has the byte %#x", data[at]))
		}
	}
	d := json.NewDecoder(bytes.NewReader(data))
	var syntax *json.SyntaxError
	switch err := d.Decode(new(json.RawMessage)); {
	case err == io.EOF:
		return nil, errors.New("the file is empty")
	case errors.As(err, &syntax):
		return nil, syntaxError(name, data, int(syntax.Offset)-1, syntax.Error())
	case err != nil:
		return nil, syntaxError(name, data, len(data), "")
	}
	if rest := bytes.TrimSpace(data[d.InputOffset():]); len(rest) > 0 {
		return nil, syntaxError(name, data, bytes.LastIndex(data, rest),
			"unexpected text after the end of the value")
	}
	return data, nil
}

// compact returns JSON without white space.
func compact(value json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return value // not reached, because value is JSON
	}
	return b.Bytes()
}

// eachMember calls f for the members of an object in order, also for duplicate keys. Path leads to
// the object.
func eachMember(object json.RawMessage, path string, f func(string, json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return fmt.Errorf("%s is not an object", path)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
		if err := f(key.(string), value); err != nil {
			return err
		}
	}
	return nil
}

// conflictMarkers start the lines that git inserts if it cannot merge versions
// of a file. Valid JSON has no such lines.
var conflictMarkers = []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"}

// syntaxError returns an error at a byte.
func syntaxError(name string, data []byte, at int, message string) error {
	line, _, _ := bytes.Cut(data[bytes.LastIndexByte(data[:at], '\n')+1:], []byte("\n"))
	hint := ""
	switch {
	case bytes.HasPrefix(data, []byte("version https://git-lfs")):
		message = "the file is a Git LFS pointer, not the file itself"
		hint = "fetch the content with `git lfs pull`"
	case beginsConflict(line):
		message = "unresolved merge conflict: this line is a conflict marker"
		hint = "keep one of the versions between the markers, " +
			"or restore the file from before the merge"
	case at == len(data):
		message = "the file is truncated: it ends in the middle of a value"
	}
	return yamldoc.Plain(name, data).AtByte(at, message, hint)
}

func beginsConflict(line []byte) bool {
	return slices.ContainsFunc(conflictMarkers, func(m string) bool { return bytes.HasPrefix(line, []byte(m)) })
}
