package mcp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// meter watches the output of a server. It ends a stream that is too long, and remembers the first
// line that no message can begin with.
type meter struct {
	n atomic.Int64

	mu    sync.Mutex
	wrong []byte // the beginning of the wrong line
	line  int    // bytes of the current line so far
	long  bool   // a line was longer than a message may be
}

var (
	errFlood   = errors.New("the server sends too much")
	errTooLong = fmt.Errorf("it sent a message of more than %d MB", mostMessage/megabyte)
)

func (m *meter) flooded() bool { return m.n.Load() > mostOutput }

// breach describes how the server broke the protocol of its standard output. It returns "" if it
// did not.
func (m *meter) breach() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(m.wrong) > 0:
		text, _, _ := strings.Cut(strings.ToValidUTF8(string(m.wrong), ""), "\n")
		return fmt.Sprintf("it wrote a line to its standard output that is not a message: %q", text)
	case m.long:
		return errTooLong.Error()
	}
	return ""
}

// tooLong reports whether the server has sent a line that is longer than a message may be.
func (m *meter) tooLong() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.long
}

// check looks at the lines in p.
func (m *meter) check(p []byte) {
	const shown = 80
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		first := bytes.TrimSpace(line)
		if m.line == 0 && len(first) > 0 && first[0] != '{' && first[0] != '[' && m.wrong == nil {
			m.wrong = bytes.Clone(first[:min(len(first), shown)])
		}
		m.line += len(line)
		m.long = m.long || m.line > mostMessage
		if ended {
			m.line = 0
		}
		p = rest
	}
}

// reader returns r until the limit is reached. lines is true if each line is a message.
func (m *meter) reader(r io.ReadCloser, lines bool) io.ReadCloser { return &metered{r, m, lines} }

type metered struct {
	io.ReadCloser
	meter *meter
	lines bool
}

func (r *metered) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.meter.n.Add(int64(n))
	if r.lines {
		r.meter.check(p[:n])
	}
	if r.meter.flooded() {
		return 0, errFlood
	}
	return n, err
}

// client returns a client that counts replies and sends a key as a bearer token, unless the key is
// empty. It follows no redirects, because the key is for one host.
func (m *meter) client(key string) *http.Client {
	send := func(r *http.Request) (*http.Response, error) {
		if key != "" {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			resp.Body = m.reader(resp.Body, false)
		}
		return resp, err
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: roundTrip(send), CheckRedirect: stay}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
