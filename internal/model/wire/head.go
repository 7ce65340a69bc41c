package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// headEnd ends the head of a response.
const headEnd = "\r\n\r\n"

// readPlain reads the head of a response of the ordinary form, whose body has a length, in less
// time than net/http takes. It returns false, and has read nothing, if anything is out of the
// ordinary or if the head is not in the buffer of r yet. Otherwise the response is that of
// [http.ReadResponse].
func readPlain(r *bufio.Reader, req *http.Request) (*http.Response, bool) {
	if _, err := r.Peek(1); err != nil {
		return nil, false
	}
	buffered, _ := r.Peek(r.Buffered())
	end := bytes.Index(buffered, []byte(headEnd))
	if end < 0 {
		return nil, false
	}
	resp, ok := parsePlainHead(string(buffered[:end]))
	if !ok {
		return nil, false
	}
	_, _ = r.Discard(end + len(headEnd))
	resp.Request, resp.Body = req, http.NoBody
	if resp.ContentLength > 0 {
		resp.Body = &plainBody{r, resp.ContentLength}
	}
	return resp, true
}

// parsePlainHead parses a head without its end.
func parsePlainHead(head string) (*http.Response, bool) {
	line, rest, _ := strings.Cut(head, "\r\n")
	const proto = "HTTP/1.1 "
	status, ok := strings.CutPrefix(line, proto)
	if !ok || len(status) < len("200 ") || status[3] != ' ' || hasControl(status) {
		return nil, false
	}
	code, ok := digits(status[:3])
	if !ok || code < 200 || code == http.StatusNoContent || code == http.StatusNotModified {
		return nil, false
	}
	resp := &http.Response{
		Status: status, StatusCode: int(code),
		Proto: proto[:len(proto)-1], ProtoMajor: 1, ProtoMinor: 1,
	}
	if resp.Header, ok = parsePlainHeader(rest); !ok {
		return nil, false
	}
	length := resp.Header["Content-Length"]
	if len(length) != 1 {
		return nil, false
	}
	resp.ContentLength, ok = digits(length[0])
	return resp, ok
}

// parsePlainHeader parses the lines of a header. It returns false if they say how to read the
// response, except for its length.
func parsePlainHeader(text string) (http.Header, bool) {
	n := 1 + strings.Count(text, "\r\n")
	header, values := make(http.Header, n), make([]string, 0, n)
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || hasControl(value) {
			return nil, false
		}
		name = http.CanonicalHeaderKey(name)
		switch name {
		case "Connection", "Transfer-Encoding", "Trailer", "Pragma":
			return nil, false
		}
		value = strings.Trim(value, " \t")
		if earlier, ok := header[name]; ok {
			header[name] = append(earlier, value)
			continue
		}
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	return header, true
}

// digits parses a number that has only digits and no more than fit.
func digits(text string) (int64, bool) {
	if text == "" || len(text) > 15 {
		return 0, false
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// plainBody is a body of a known length.
type plainBody struct {
	from *bufio.Reader
	left int64
}

// Read returns [io.EOF] together with the last bytes, as the bodies of net/http do.
func (b *plainBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	n, err := b.from.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	switch {
	case b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (*plainBody) Close() error { return nil }
