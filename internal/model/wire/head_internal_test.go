package wire

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A parsed is everything that is read of a response.
type parsed struct {
	Status, Proto                string
	Code, ProtoMajor, ProtoMinor int
	Header, Trailer              http.Header
	Encoding                     []string
	Length                       int64
	Close                        bool
	Body, Failed, Rest           string
}

func parsedFrom(r *bufio.Reader, resp *http.Response) parsed {
	body, err := io.ReadAll(resp.Body)
	rest, _ := io.ReadAll(r)
	return parsed{
		resp.Status, resp.Proto, resp.StatusCode, resp.ProtoMajor, resp.ProtoMinor,
		resp.Header, resp.Trailer, resp.TransferEncoding, resp.ContentLength, resp.Close,
		string(body), fmt.Sprint(err), string(rest),
	}
}

var plainHeads = []struct {
	name, text string
	plain      bool
}{
	{"Ordinary", "HTTP/1.1 200 OK\r\nContent-Type: a/b\r\ncontent-length:  2 \r\n\r\n{}", true},
	{
		"Repeated",
		"HTTP/1.1 429 No\r\nX-A: 1\r\nX-A: 2\r\nx-b:\r\nContent-Length: 2\r\n\r\n{}", true,
	},
	{"NoReason", "HTTP/1.1 500 \r\nContent-Length: 0\r\n\r\n", true},
	{"Spaces", "HTTP/1.1 200  OK \r\nContent-Length: 1\r\n\r\n{}", true},
	{"TooShort", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", true},
	{"Chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", false},
	{
		"Both", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" +
			"0\r\n\r\n", false,
	},
	{"TwoLengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}", false},
	{"Signed", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}", false},
	{"Closes", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}", false},
	{"UntilClosed", "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n{}", false},
	{"Continued", "HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\nContent-Length: 2\r\n\r\n{}", false},
	{"LineFeeds", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}\r\n\r\n", false},
	{"SpaceBeforeColon", "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}", false},
	{"NoColon", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX\r\n\r\n{}", false},
	{"Control", "HTTP/1.1 200 OK\r\nX: \x01\r\nContent-Length: 2\r\n\r\n{}", false},
	{"Old", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", false},
	{"Provisional", "HTTP/1.1 100 Continue\r\nContent-Length: 2\r\n\r\n{}", false},
	{"NoContent", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}", false},
	{"NoHeader", "HTTP/1.1 200 OK\r\n\r\n{}", false},
	{"Cut", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", false},
	{"Nothing", "", false},
}

func TestPlainHead(t *testing.T) {
	t.Parallel()
	for _, test := range plainHeads {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := checkHead(t, test.text); got != test.plain {
				t.Errorf("readPlain() = %v, want %v", got, test.plain)
			}
		})
	}
}

// FuzzPlainHead compares what is read of responses with what net/http reads.
func FuzzPlainHead(f *testing.F) {
	for _, test := range plainHeads {
		f.Add(test.text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkHead(t, text) })
}

// checkHead compares a response that readPlain reads with that of net/http, and reports whether
// there is one. Otherwise it checks that nothing was read.
func checkHead(t *testing.T, text string) (plain bool) {
	t.Helper()
	req := &http.Request{Method: http.MethodPost}
	own := bufio.NewReader(strings.NewReader(text))
	resp, plain := readPlain(own, req)
	if !plain {
		if rest, _ := io.ReadAll(own); string(rest) != text {
			t.Errorf("%d of %d bytes are left", len(rest), len(text))
		}
		return false
	}
	std := bufio.NewReader(strings.NewReader(text))
	want, err := http.ReadResponse(std, req)
	if err != nil {
		t.Fatalf("net/http: %v", err)
	}
	if resp.Request != req {
		t.Error("the response does not name its request")
	}
	if diff := cmp.Diff(parsedFrom(std, want), parsedFrom(own, resp)); diff != "" {
		t.Errorf("-net/http +own:\n%s", diff)
	}
	return true
}

// TestDirectDecodes checks that bodies in the encoding that direct asks for reach the caller as
// text, in one piece and in chunks.
func TestDirectDecodes(t *testing.T) {
	t.Parallel()
	const text = `{"a":"some text that compresses, some text that compresses"}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, text)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, chunks := range []bool{false, true} {
		t.Run(fmt.Sprint("Chunks=", chunks), func(t *testing.T) {
			t.Parallel()
			answer := func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Accept-Encoding") != "gzip" {
					http.Error(w, "no encoding was asked for", http.StatusNotAcceptable)
					return
				}
				w.Header().Set("Content-Encoding", "gzip")
				if chunks {
					w.(http.Flusher).Flush()
				}
				_, _ = w.Write(packed.Bytes())
			}
			server := httptest.NewServer(http.HandlerFunc(answer))
			t.Cleanup(server.Close)
			client := NewClient(ClientOptions{})
			t.Cleanup(client.CloseIdleConnections)
			for range 2 { // the second request uses the connection of the first
				req := post(t, t.Context(), server.URL, `{}`)
				if !client.Transport.(*guard).next.(*direct).takes(req) {
					t.Fatal("the request is not taken")
				}
				resp, body, err := client.Transport.(*guard).fetch(req)
				if err != nil || resp.StatusCode != http.StatusOK || string(body) != text {
					t.Errorf("fetch() = %v, %q, %v", resp, body, err)
				}
			}
		})
	}
}
