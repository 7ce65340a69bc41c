package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"
)

// tidy removes the things that may precede a document: a byte order mark, white space, and the
// comments with which gateways keep a connection open.
func tidy(body []byte) []byte {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	for {
		body = bytes.TrimLeft(body, " \t\r\n")
		if !bytes.HasPrefix(body, []byte(":")) {
			return body
		}
		_, body, _ = bytes.Cut(body, []byte("\n"))
	}
}

// Unmarshal is [json.Unmarshal] that reads NaN and infinities as null. JSON has no such numbers,
// but Python writes them.
func Unmarshal(doc []byte, v any) error {
	err := json.Unmarshal(doc, v)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		if plain := withoutNaN(doc); plain != nil {
			return json.Unmarshal(plain, v)
		}
	}
	return err
}

// withoutNaN returns doc with null in place of numbers that JSON does not have, or nil without such
// numbers.
func withoutNaN(doc []byte) []byte {
	var out []byte
	inString, from := false, 0
	for i := 0; i < len(doc); i++ {
		switch {
		case inString && doc[i] == '\\':
			i++
		case doc[i] == '"':
			inString = !inString
		case !inString:
			if n := oddNumber(doc[i:]); n > 0 {
				out = append(append(out, doc[from:i]...), "null"...)
				i += n - 1
				from = i + 1
			}
		}
	}
	if out == nil {
		return nil
	}
	return append(out, doc[from:]...)
}

// oddNumber returns the length of the NaN or infinity at the start of doc, or 0.
func oddNumber(doc []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(doc, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// TextOf returns the text of a string, "" for null, and the JSON of any other value.
func TextOf(raw json.RawMessage) string {
	var s string
	switch {
	case len(raw) == 0 || raw[0] != '"' && raw[0] != 'n':
		return string(raw)
	case raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 && utf8.Valid(raw):
		return string(raw[1 : len(raw)-1]) // most texts of short fields
	case json.Unmarshal(raw, &s) != nil:
		return string(raw)
	}
	return s
}

// A Text is a text that an endpoint may send as a value of another type; see [TextOf].
type Text string

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (t *Text) UnmarshalJSON(raw []byte) error {
	*t = Text(TextOf(raw))
	return nil
}

// A List is a list of objects. It is empty if the value is not a list or has other entries.
type List[T any] []T

// UnmarshalJSON implements [json.Unmarshaler]. It never fails.
func (l *List[T]) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, (*[]T)(l)) != nil && json.Unmarshal(raw, new([]struct{})) != nil {
		*l = nil // else fields of another type count as missing
	}
	return nil
}

// isStream reports whether a body is a stream of events, which some endpoints send although the
// request did not ask for one.
func isStream(body []byte) bool {
	for _, field := range []string{"data:", "event:", "id:", "retry:"} {
		if bytes.HasPrefix(body, []byte(field)) {
			return true
		}
	}
	return false
}

// events returns the data of each event of a stream.
func events(stream []byte) (all [][]byte) {
	var data []byte
	end := func() {
		if data != nil {
			all = append(all, data)
		}
		data = nil
	}
	for line := range bytes.Lines(stream) {
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			end()
			continue
		}
		text, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok {
			continue
		}
		if data != nil {
			data = append(data, '\n')
		}
		data = append(data, bytes.TrimPrefix(text, []byte(" "))...)
	}
	end()
	return all
}

// decoded returns a reader of a response's content. The transport only decodes gzip, and only if
// it asked for it.
func decoded(resp *http.Response) (content io.Reader, err error) {
	switch strings.ToLower(resp.Header.Get("Content-Encoding")) {
	case "gzip", "x-gzip":
		content, err = gzip.NewReader(resp.Body)
	case "deflate":
		content, err = inflate(resp.Body)
	default:
		return resp.Body, nil
	}
	if err == io.EOF { // an empty body is empty in every encoding
		return bytes.NewReader(nil), nil
	}
	return content, err
}

// inflate reads deflate with or without the header of zlib, which many servers leave out.
func inflate(body io.Reader) (io.Reader, error) {
	var head [2]byte
	if _, err := io.ReadFull(body, head[:]); err != nil {
		return nil, err
	}
	whole := io.MultiReader(bytes.NewReader(head[:]), body)
	const method, deflated = 0x0f, 8
	if head[0]&method == deflated && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(whole)
	}
	return flate.NewReader(whole), nil
}
